"""When memory runs out: a micro-batch that does not fit is computed in halves, whose gradients add up to its own.

The plan stays as it is, so a step holds the same utterances with the same weights however much fits at once, and ranks
with more memory or less take the same steps. What is learnt is one number: more padded frames than that are halved
before they are tried. All ranks share it with the gradients of a step.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from schemas.errors import TrainingError
from trainer.data.batch import Batch

Result = TypeVar("Result")

_SIGNS = ("out of memory", "not enough memory", "can't allocate memory", "STATUS_ALLOC_FAILED")
"""How CUDA, torch's CPU allocator on Windows and on Linux, and cuBLAS and cuDNN say it, as a plain RuntimeError."""
_TOLD_KEYS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLarge:
    """What was computed when memory ran out."""

    keys: tuple[str, ...]
    """Keys of its utterances."""
    padded_frames: int
    """Utterances times frames of the longest."""
    padded_symbols: int
    """Utterances times symbols of the longest."""
    rank: int
    """Where."""

    def __str__(self) -> str:
        count = len(self.keys)
        others = f" and {count - _TOLD_KEYS} others" if count > _TOLD_KEYS else ""
        return (
            f"memory ran out on rank {self.rank} with {self.padded_frames} padded frames and {self.padded_symbols} "
            f"padded symbols of {count} utterances: {', '.join(self.keys[:_TOLD_KEYS])}{others}"
        )

    @property
    def is_single(self) -> bool:
        """Whether it was one utterance by itself, which cannot be halved."""
        return len(self.keys) == 1

    def error(self) -> TrainingError:
        """The end of a run in which a single utterance did not fit."""
        return TrainingError(
            f"memory ran out on rank {self.rank} with a single utterance: {self.keys[0]} has {self.padded_frames} "
            f"frames and {self.padded_symbols} symbols",
            hint=f"leave out what is as long: --data.max_frames {self.padded_frames - 1} --data.overlong drop "
            "(and --reset-data in a resumed run); or take a smaller model or --trainer.precision bf16-mixed",
        )


class Budget:
    """Computes micro-batches in as few parts as fit.

    Args:
        rank: of this process, for what is told.
    """

    def __init__(self, rank: int = 0) -> None:
        self.rank = rank
        self.limit: int | None = None
        """Padded frames computed at once, at most; None where memory has never run out."""
        self.news: list[TooLarge] = []
        """What did not fit and has not been told yet."""

    def computed(self, batch: Batch, compute: Callable[[Batch, int], Result]) -> Iterator[tuple[Batch, Result]]:
        """Each part of a batch, in the order of its utterances, and what `compute` returns for it.

        A single utterance that does not fit ends it early; it is the last of `news`.

        Args:
            batch: a micro-batch.
            compute: takes a part, and how many utterances of the batch come before it. It is called again with less
                where memory ran out, and must then have changed nothing.
        """
        waiting, first = [batch], 0
        while waiting:
            part = waiting.pop()
            parts = split(part, self.limit)
            if len(parts) > 1:
                waiting += reversed(parts)
                continue
            result = _attempt(compute, part, first)
            if result is not None:
                first += len(part.keys)
                yield part, result[0]
                continue
            release_memory(batch.mels.device)
            self._lower(part)
            if self.news[-1].is_single:
                return
            waiting.append(part)

    def _lower(self, part: Batch) -> None:
        size = padded_frames(part)
        self.news.append(
            TooLarge(keys=part.keys, padded_frames=size, padded_symbols=part.symbol_ids.numel(), rank=self.rank)
        )
        self.take(size - 1)

    def forget(self) -> None:
        """Takes off the limit."""
        self.limit = None

    def take(self, limit: int | None) -> None:
        """Lowers the limit to `limit`, where that is lower."""
        self.limit = min((value for value in (self.limit, limit) if value is not None), default=None)


def _attempt(compute: Callable[[Batch, int], Result], part: Batch, first: int) -> tuple[Result] | None:
    """What it returns, or None where memory ran out: then nothing refers to its tensors any more."""
    try:
        return (compute(part, first),)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on the host or on a device."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS)


def release_memory(device: torch.device) -> None:
    """Frees what nothing refers to, after an error."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def padded_frames(batch: Batch) -> int:
    """Utterances times frames of the longest."""
    return batch.mels.shape[0] * batch.mels.shape[2]


def split(batch: Batch, limit: int | None) -> list[Batch]:
    """A batch in its order, halved until no part of more than one utterance has over `limit` padded frames."""
    if limit is None or padded_frames(batch) <= limit or len(batch.keys) == 1:
        return [batch]
    middle = (len(batch.keys) + 1) // 2
    halves = (_utterances(batch, 0, middle), _utterances(batch, middle, len(batch.keys)))
    return [part for half in halves for part in split(half, limit)]


def _utterances(batch: Batch, first: int, last: int) -> Batch:
    """Some utterances of a batch, padded to the longest of them; views of its tensors."""

    def cut(values: Tensor) -> Tensor:
        return values[first:last]

    symbol_lengths, mel_lengths = cut(batch.symbol_lengths), cut(batch.mel_lengths)
    return dataclasses.replace(
        batch,
        keys=batch.keys[first:last],
        symbol_ids=cut(batch.symbol_ids)[:, : int(symbol_lengths.max())],
        symbol_lengths=symbol_lengths,
        mels=cut(batch.mels)[:, :, : int(mel_lengths.max())],
        mel_lengths=mel_lengths,
        speakers=cut(batch.speakers),
        weights=cut(batch.weights),
        places=batch.places[first:last],
        bad=batch.bad if first == 0 else (),
    )
