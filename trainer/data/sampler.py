"""From a plan to what one rank computes: which micro-batches, and with which weights in the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Sampler

from trainer.data.plan import EpochPlan, StepGroup
from trainer.data.planned import PlannedEpoch
from trainer.data.selection import Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """A micro-batch to be read: what the sampler hands to a worker."""

    rows: NDArray[np.int64]
    """Rows of the shard index `[B]`; none in an empty slot."""
    weights: NDArray[np.float32]
    """Weight of each utterance in the loss `[B]`."""
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

    A slot that the group does not fill asks for nothing, but asks: every rank takes part in every collective.

    Args:
        planned: the epoch's plan, over the places in `selection`.
        selection: rows and lengths.
        rank: this process.
        world_size: W, the number of processes.
        group_size: G, the micro-batches of a full step group.
        epoch: number of the epoch.
        groups_done: step groups to leave out at the start. They still count in `len`: Lightning adds the batches that
            a resumed epoch had already seen to those it fetches, and compares the sum with the length.
        on_window: is told the shards of a window and of the one after it before the first of its groups is asked for.
    """

    def __init__(
        self,
        planned: PlannedEpoch,
        selection: Selection,
        *,
        rank: int,
        world_size: int,
        group_size: int,
        epoch: int = 0,
        groups_done: int = 0,
        on_window: Callable[[NDArray[np.int64]], None] | None = None,
    ) -> None:
        self._planned, self._selection = planned, selection
        self._rank, self._world_size = rank, world_size
        self._accumulations = accumulations(group_size, world_size)
        self._epoch, self._groups_done, self._on_window = epoch, groups_done, on_window

    def __len__(self) -> int:
        """Micro-batches of the whole epoch, those of `groups_done` too."""
        return self._planned.num_groups * self._accumulations

    def __iter__(self) -> Iterator[BatchRequest]:
        before = 0
        for window, plan in self._planned.windows(self._groups_done):
            skipped = max(0, self._groups_done - before)
            if skipped < plan.num_groups and self._on_window is not None:
                self._on_window(np.concatenate([self._planned.shards(window), self._planned.shards(window + 1)]))
            for number in range(skipped, plan.num_groups):
                yield from self._requests(plan.group(number), before + number)
            before += plan.num_groups

    def _requests(self, group: StepGroup, number: int) -> Iterator[BatchRequest]:
        offsets = group.batch_offsets
        frames = int(self._selection.num_frames[group.order].sum(dtype=np.int64))
        symbols = int(self._selection.num_symbols[group.order].sum(dtype=np.int64))
        for accumulation in range(self._accumulations):
            slot = self._rank + accumulation * self._world_size
            full = slot < len(offsets) - 1
            mine = group.order[offsets[slot] : offsets[slot + 1]] if full else group.order[:0]
            yield BatchRequest(
                rows=self._selection.rows_at(mine),
                weights=np.ones(len(mine), np.float32),
                group_frames=frames,
                group_symbols=symbols,
                num_slots=self._world_size * self._accumulations,
                epoch=self._epoch,
                group=number,
                places=mine.astype(np.int64),
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
