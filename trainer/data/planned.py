"""An epoch's plan as a rank walks through it: in memory as a whole, or one window after the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trainer.data.plan import EpochPlan, count_groups, iter_windows, plan_epoch
from trainer.data.windows import EpochInput, block_windows


class PlannedEpoch(Protocol):
    """The step groups of an epoch."""

    @property
    def num_groups(self) -> int:
        """Optimizer steps of the epoch."""

    @property
    def plan(self) -> EpochPlan:
        """The whole plan, in memory."""

    def windows(self, groups_done: int) -> Iterator[tuple[int, EpochPlan]]:
        """(number of the window, plan) of each window; of those that lie wholly in the groups done, only the number of
        groups counts.
        """

    def shards(self, window: int) -> NDArray[np.int64]:
        """Numbers of the shards that a window adds; empty where there are no more windows, or all is one window."""


class WholeEpoch:
    """A plan that is in memory."""

    def __init__(self, plan: EpochPlan) -> None:
        self._plan = plan

    @property
    def plan(self) -> EpochPlan:
        """The whole plan."""
        return self._plan

    @property
    def num_groups(self) -> int:
        """Optimizer steps of the epoch."""
        return self._plan.num_groups

    def windows(self, groups_done: int) -> Iterator[tuple[int, EpochPlan]]:  # noqa: ARG002
        """The plan, as one window."""
        yield 0, self._plan

    def shards(self, window: int) -> NDArray[np.int64]:  # noqa: ARG002
        """None."""
        return np.empty(0, np.int64)


class WindowedEpoch:
    """A plan that is made one window after the other; 100 M utterances are counted in 4 s, and planned in as many."""

    def __init__(self, epoch_input: EpochInput, shards_of_blocks: NDArray[np.integer]) -> None:
        self.input, self._shards_of_blocks = epoch_input, shards_of_blocks

    @cached_property
    def num_groups(self) -> int:
        """Optimizer steps of the epoch."""
        given = self.input
        return count_groups(given.num_frames, given.num_symbols, given.settings, given.epoch, given.block_offsets)

    def windows(self, groups_done: int) -> Iterator[tuple[int, EpochPlan]]:
        """The plans of the windows."""
        given = self.input
        yield from enumerate(
            iter_windows(
                given.num_frames, given.num_symbols, given.settings, given.epoch, given.block_offsets, groups_done
            )
        )

    @property
    def plan(self) -> EpochPlan:
        """The whole plan, made when asked for."""
        given = self.input
        return plan_epoch(given.num_frames, given.num_symbols, given.settings, given.epoch, given.block_offsets)

    @cached_property
    def _blocks(self) -> list[NDArray[np.int64]]:
        return block_windows(self.input)

    def shards(self, window: int) -> NDArray[np.int64]:
        """Shards of a window, in the order in which they were drawn."""
        if window >= len(self._blocks):
            return np.empty(0, np.int64)
        return self._shards_of_blocks[self._blocks[window]].astype(np.int64)
