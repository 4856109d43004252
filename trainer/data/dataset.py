"""From a request to a batch: reads the utterances of a micro-batch and pads them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from dataprep.shards.reader import IndexColumns, ShardSet
from schemas.errors import VoxloomError
from trainer.data.batch import Batch
from trainer.data.sampler import BatchRequest


class ShardDataset(Dataset[Batch | VoxloomError]):
    """Reads micro-batches; its items are addressed by `BatchRequest`.

    Copies in worker processes, forked or spawned, open the shards for themselves. What it returns depends on the
    request alone.
    """

    def __init__(self, shards: ShardSet) -> None:
        self.shards = shards

    @cached_property
    def _columns(self) -> IndexColumns:
        """Columns of the index, taken out once by each process that reads: 0.1 s for 10 M rows."""
        return self.shards.columns

    def __getitem__(self, request: BatchRequest) -> Batch | VoxloomError:
        """The requested micro-batch, or the error that reading it gave.

        An error that is raised in a worker would reach the training process as a message with a traceback in it.
        """
        try:
            return self.read(request)
        except VoxloomError as error:
            return error

    def read(self, request: BatchRequest) -> Batch:
        """The requested micro-batch, on the CPU. Raises FormatError where a shard is damaged."""
        rows = request.rows.tolist()
        if not rows:
            return _filler(request, self.shards.manifest.feature_spec.num_mels)
        infos = [self.shards.read_info(row) for row in rows]
        mels = [self.shards.read_mel(row) for row in rows]
        ids = [np.array(info.phoneme_ids, np.int64) for info in infos]
        return Batch(
            keys=tuple(self.shards.key(row) for row in rows),
            symbol_ids=pad_last(ids, torch.int64),
            symbol_lengths=torch.tensor([len(symbols) for symbols in ids], dtype=torch.int64),
            mels=pad_last(mels, torch.float32),
            mel_lengths=torch.tensor([mel.shape[-1] for mel in mels], dtype=torch.int64),
            speakers=torch.from_numpy(self._columns.speaker[request.rows].astype(np.int64)),
            weights=torch.from_numpy(request.weights.copy()),
            group_frames=float(request.group_frames),
            group_symbols=float(request.group_symbols),
            num_slots=request.num_slots,
            epoch=request.epoch,
            group=request.group,
            places=() if request.places is None else tuple(request.places.tolist()),
        )


def _filler(request: BatchRequest, num_mels: int) -> Batch:
    """A made-up utterance of weight zero, for a rank with nothing to compute: it takes part in all that is shared."""
    return Batch(
        keys=("",),
        symbol_ids=torch.ones(1, 1, dtype=torch.int64),
        symbol_lengths=torch.ones(1, dtype=torch.int64),
        mels=torch.zeros(1, num_mels, 3),
        mel_lengths=torch.full((1,), 3, dtype=torch.int64),
        speakers=torch.zeros(1, dtype=torch.int64),
        weights=torch.zeros(1),
        group_frames=float(request.group_frames),
        group_symbols=float(request.group_symbols),
        num_slots=request.num_slots,
        epoch=request.epoch,
        group=request.group,
        places=(-1,),
    )


def pad_last(arrays: Sequence[NDArray[Any]], dtype: torch.dtype) -> Tensor:
    """The arrays `[..., length]` as one tensor `[B, ..., longest]`, zeros at the end."""
    padded = torch.zeros(len(arrays), *arrays[0].shape[:-1], max(array.shape[-1] for array in arrays), dtype=dtype)
    for place, array in enumerate(arrays):
        padded[place, ..., : array.shape[-1]] = torch.from_numpy(np.ascontiguousarray(array))
    return padded


def as_it_is(item: Batch | VoxloomError) -> Batch | VoxloomError:
    """What a loader does to an item of the dataset; a named function, so that it can be spawned."""
    return item
