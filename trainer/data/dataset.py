"""From a request to a batch: reads the utterances of a micro-batch and pads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from schemas.errors import FormatError, VoxloomError
from trainer.data.batch import BadSample, Batch
from trainer.data.buffers import BatchBuffers
from trainer.data.collection import ShardMix
from trainer.data.sampler import BatchRequest


class ShardDataset(Dataset[Batch | VoxloomError]):
    """Reads micro-batches; its items are addressed by `BatchRequest`.

    Copies in worker processes, forked or spawned, open the shards for themselves. What it returns depends on the
    request alone.
    """

    def __init__(self, shards: ShardMix) -> None:
        self.shards = shards
        self._buffers = BatchBuffers()

    def __getitem__(self, request: BatchRequest) -> Batch | VoxloomError:
        """The requested micro-batch, or the error that reading it gave.

        An error that is raised in a worker would reach the training process as a message with a traceback in it.
        """
        try:
            return self.read(request)
        except VoxloomError as error:
            return error

    def read(self, request: BatchRequest) -> Batch:
        """The requested micro-batch, on the CPU.

        What cannot be read is left out and listed in `bad`. Where nothing is left, or nothing was asked for, a made-up
        utterance of weight zero stands in, so that the rank takes part in all that ranks share.

        Raises:
            MachineError: the shards cannot be reached.
        """
        rows = request.rows
        if not len(rows):
            return self._made_up(request, ())
        lengths = self.shards.frames_of(rows)
        num_mels = self.shards.manifest.feature_spec.num_mels
        mels = self._buffers.empty(len(rows), num_mels, int(lengths.max()))
        found = self.shards.read_padded(rows, list(mels.numpy()))
        places = np.full(len(rows), -1) if request.places is None else request.places
        bad = tuple(
            BadSample(row=row, key=self.shards.key(row), message=str(item), place=place)
            for row, place, item in zip(rows.tolist(), places.tolist(), found, strict=True)
            if isinstance(item, FormatError)
        )
        good = [place for place, item in enumerate(found) if not isinstance(item, FormatError)]
        if not good:
            return self._made_up(request, bad)
        ids = [item for item in found if not isinstance(item, FormatError)]
        symbols = np.array([len(item) for item in ids], dtype=np.int64)
        if bad:
            mels = mels[good, :, : int(lengths[good].max())]
        return Batch(
            keys=tuple(self.shards.keys(rows[good])),
            symbol_ids=padded_ids(ids, symbols),
            symbol_lengths=torch.from_numpy(symbols),
            mels=mels,
            mel_lengths=torch.from_numpy(lengths[good]),
            speakers=torch.from_numpy(self.shards.speakers_of(rows[good])),
            weights=torch.from_numpy(request.weights[good]),
            group_frames=float(request.group_frames),
            group_symbols=float(request.group_symbols),
            num_slots=request.num_slots,
            epoch=request.epoch,
            group=request.group,
            places=tuple(places[good].tolist()),
            bad=bad,
        )

    def _made_up(self, request: BatchRequest, bad: tuple[BadSample, ...]) -> Batch:
        num_mels = self.shards.manifest.feature_spec.num_mels
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
            bad=bad,
        )


def padded_ids(ids: Sequence[NDArray[np.int64]], lengths: NDArray[np.int64]) -> Tensor:
    """The ids as one tensor, int64 `[B, longest]`, zeros at the end; `lengths` `[B]` are theirs."""
    padded = np.zeros((len(ids), int(lengths.max())), np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(ids)
    return torch.from_numpy(padded)


def as_it_is(item: Batch | VoxloomError) -> Batch | VoxloomError:
    """What a loader does to an item of the dataset; a named function, so that it can be spawned."""
    return item
