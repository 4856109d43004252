"""From a plan to what one rank computes: which micro-batches, and with which weights in the loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Sampler

from trainer.data.plan import EpochPlan
from trainer.data.selection import Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """A micro-batch to be read: what the sampler hands to a worker."""

    rows: NDArray[np.int64]
    """Rows of the shard index `[B]`."""
    weights: NDArray[np.float32]
    """Weight of each utterance in the loss `[B]`: 1, or 0 in an empty slot."""
    group_frames: int
    """Frames of all utterances of the step group."""
    group_symbols: int
    """Symbols of all utterances of the step group."""
    num_slots: int
    """Micro-batches of the step group, the empty ones too: ranks x accumulations."""
    epoch: int = 0
    """Epoch of the plan."""
    group: int = 0
    """Number of the step group in that plan."""
    places: NDArray[np.int64] | None = None
    """Place of each utterance in what the plan was made from `[B]`; None where there is no plan."""


def accumulations(group_size: int, world_size: int) -> int:
    """Micro-batches that each of `world_size` ranks computes for a step group of `group_size`, rounded up."""
    return -(-group_size // world_size)


class RankSampler(Sampler[BatchRequest]):
    """Micro-batches of one rank, in order: slots `rank`, `rank + W`, ... of each step group.

    A slot that the group does not fill asks for the group's shortest utterance with weight zero, so that every rank
    takes part in every collective.

    Args:
        plan: the epoch's plan, over the places in `selection`.
        selection: rows and lengths.
        rank: this process.
        world_size: W, the number of processes.
        group_size: G, the micro-batches of a full step group.
        groups_done: step groups to leave out at the start. They still count in `len`: Lightning adds the batches that
            a resumed epoch had already seen to those it fetches, and compares the sum with the length.
    """

    def __init__(
        self,
        plan: EpochPlan,
        selection: Selection,
        *,
        rank: int,
        world_size: int,
        group_size: int,
        groups_done: int = 0,
    ) -> None:
        self._plan, self._selection = plan, selection
        self._rank, self._world_size = rank, world_size
        self._accumulations = accumulations(group_size, world_size)
        self._groups_done = groups_done

    def __len__(self) -> int:
        """Micro-batches of the whole epoch, those of `groups_done` too."""
        return self._plan.num_groups * self._accumulations

    def __iter__(self) -> Iterator[BatchRequest]:
        for group in range(self._groups_done, self._plan.num_groups):
            yield from self._requests(group)

    def _requests(self, group: int) -> Iterator[BatchRequest]:
        first, last = self._plan.group_offsets[group : group + 2].tolist()
        offsets = self._plan.batch_offsets[first : last + 1]
        places = self._plan.order[offsets[0] : offsets[-1]]
        frames = self._selection.num_frames[places]
        filler = places[np.argmin(frames)][None]
        for accumulation in range(self._accumulations):
            slot = self._rank + accumulation * self._world_size
            full = slot < last - first
            mine = self._plan.order[offsets[slot] : offsets[slot + 1]] if full else filler
            yield BatchRequest(
                rows=self._selection.rows[mine],
                weights=np.full(len(mine), 1.0 if full else 0.0, np.float32),
                group_frames=int(frames.sum()),
                group_symbols=int(self._selection.num_symbols[places].sum()),
                num_slots=self._world_size * self._accumulations,
            )


def grouped_for_validation(plan: EpochPlan, world_size: int) -> EpochPlan:
    """A plan of single micro-batches (`ranks=1`), taken by W ranks at a time.

    The micro-batches do not depend on W, so neither do the losses summed over them: a validation loss is the same for
    any number of ranks, however few utterances there are.
    """
    num_batches = len(plan.batch_offsets) - 1
    edges = [*range(0, num_batches, world_size), num_batches]
    return EpochPlan(
        order=plan.order, batch_offsets=plan.batch_offsets, group_offsets=np.array(sorted(set(edges)), dtype=np.int64)
    )
