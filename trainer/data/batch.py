"""`Batch`: the utterances that one rank computes at once, padded to the longest of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class BadSample:
    """An utterance that was planned but could not be read."""

    row: int
    """Row of the index."""
    key: str
    """Its key."""
    message: str
    """What is wrong with it, in one line that names the shard."""
    place: int
    """Place in what the epoch's plan was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A micro-batch: B utterances, L symbols and T frames in the longest of them."""

    keys: tuple[str, ...]
    """Key of each utterance, B of them."""
    symbol_ids: Tensor
    """Symbol ids, int64 [B, L], padded with 0."""
    symbol_lengths: Tensor
    """Symbols of each utterance, int64 [B]."""
    mels: Tensor
    """Log-mels as stored (natural logarithm), float32 [B, num_mels, T], padded with 0."""
    mel_lengths: Tensor
    """Frames of each utterance, int64 [B]."""
    speakers: Tensor
    """Speaker number of each utterance, int64 [B]."""
    weights: Tensor
    """Weight of each utterance in the loss, float32 [B]: 1, or 0 in an empty slot of a step group."""
    group_frames: float
    """Frames of the whole step group, over all ranks and accumulations."""
    group_symbols: float
    """Symbols of the whole step group, over all ranks and accumulations."""
    num_slots: int
    """Micro-batches of the step group: ranks x accumulations."""
    epoch: int = 0
    """Epoch of the plan that it belongs to."""
    group: int = 0
    """Number of its step group in the plan of that epoch."""
    places: tuple[int, ...] = ()
    """Place of each utterance in what the epoch's plan was made from, B of them where it comes from a plan."""
    bad: tuple[BadSample, ...] = ()
    """What was planned for this micro-batch and could not be read; it is not among the B utterances."""

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Batch:
        """The same batch on `device`."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Batch:
        """The same batch in page-locked memory, from which a GPU copies without waiting."""
        return self._map(Tensor.pin_memory)

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        tensors = {
            field.name: change(value)
            for field in dataclasses.fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return dataclasses.replace(self, **tensors)  # type: ignore[arg-type]  # only its tensor fields are named
