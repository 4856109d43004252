"""From a request to a batch: reads the utterances of a micro-batch and pads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from dataprep.shards.reader import LoadedSample
from schemas.errors import VoxloomError
from trainer.data.batch import BadSample, Batch
from trainer.data.collection import ShardMix
from trainer.data.sampler import BatchRequest


@dataclass(frozen=True, slots=True)
class _Read:
    """An utterance that was read, and what the request says of it."""

    row: int
    place: int
    weight: float
    sample: LoadedSample


class ShardDataset(Dataset[Batch | VoxloomError]):
    """Reads micro-batches; its items are addressed by `BatchRequest`.

    Copies in worker processes, forked or spawned, open the shards for themselves. What it returns depends on the
    request alone.
    """

    def __init__(self, shards: ShardMix) -> None:
        self.shards = shards

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
        rows = request.rows.tolist()
        places = [-1] * len(rows) if request.places is None else request.places.tolist()
        good: list[_Read] = []
        bad: list[BadSample] = []
        for row, place, weight, sample in zip(
            rows, places, request.weights.tolist(), self.shards.read_batch(request.rows), strict=True
        ):
            if isinstance(sample, LoadedSample):
                good.append(_Read(row, place, weight, sample))
            else:
                bad.append(BadSample(row=row, key=self.shards.key(row), message=str(sample), place=place))
        if not good:
            return self._made_up(request, tuple(bad))
        return self._batch(request, good, tuple(bad))

    def _batch(self, request: BatchRequest, good: Sequence[_Read], bad: tuple[BadSample, ...]) -> Batch:
        ids = [item.sample.phoneme_ids for item in good]
        mels = [item.sample.mel for item in good if item.sample.mel is not None]
        rows = [item.row for item in good]
        return Batch(
            keys=tuple(self.shards.key(row) for row in rows),
            symbol_ids=pad_last(ids, torch.int64),
            symbol_lengths=torch.tensor([len(symbols) for symbols in ids], dtype=torch.int64),
            mels=pad_last(mels, torch.float32),
            mel_lengths=torch.tensor([mel.shape[-1] for mel in mels], dtype=torch.int64),
            speakers=torch.tensor([self.shards.speaker_of(row) for row in rows], dtype=torch.int64),
            weights=torch.tensor([item.weight for item in good], dtype=torch.float32),
            group_frames=float(request.group_frames),
            group_symbols=float(request.group_symbols),
            num_slots=request.num_slots,
            epoch=request.epoch,
            group=request.group,
            places=tuple(item.place for item in good),
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


def pad_last(arrays: Sequence[NDArray[Any]], dtype: torch.dtype) -> Tensor:
    """The arrays `[..., length]` as one tensor `[B, ..., longest]`, zeros at the end."""
    padded = torch.empty(len(arrays), *arrays[0].shape[:-1], max(array.shape[-1] for array in arrays), dtype=dtype)
    values = padded.numpy()
    for place, array in enumerate(arrays):
        values[place, ..., : array.shape[-1]] = array
        values[place, ..., array.shape[-1] :] = 0
    return padded


def as_it_is(item: Batch | VoxloomError) -> Batch | VoxloomError:
    """What a loader does to an item of the dataset; a named function, so that it can be spawned."""
    return item
