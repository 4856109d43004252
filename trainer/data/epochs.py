"""The plan of each epoch of a run: which utterances it is made from, and the step groups they make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from schemas.checkpoint import QuarantinedUtterance
from trainer.data.plan import PlanSettings, plan_epoch
from trainer.data.planned import PlannedEpoch, WholeEpoch, WindowedEpoch
from trainer.data.selection import Selection
from trainer.data.windows import EpochInput


class Epochs:
    """Plans epochs; the last one is kept, since Lightning asks for it more than once.

    Args:
        training: what can be trained on.
        settings: the plan's.
        shards: number of the shard of each row of the index; a window takes whole shards.
    """

    def __init__(self, training: Selection, settings: PlanSettings, shards: NDArray[np.uint32]) -> None:
        self._training, self._settings, self._shards = training, settings, shards
        self._kept: tuple[tuple[int, tuple[int, ...]], tuple[PlannedEpoch, Selection]] | None = None

    def planned(self, epoch: int, quarantine: Sequence[QuarantinedUtterance] = ()) -> tuple[PlannedEpoch, Selection]:
        """The plan of an epoch, and the utterances it is made from: without those found unreadable in epochs before."""
        left_out = tuple(item.row for item in quarantine if item.epoch < epoch)
        if self._kept is None or self._kept[0] != (epoch, left_out):
            selection = self._training.without(left_out)
            self._kept = ((epoch, left_out), (self._plan(selection, epoch), selection))
        return self._kept[1]

    def _plan(self, selection: Selection, epoch: int) -> PlannedEpoch:
        frames, symbols, settings = selection.num_frames, selection.num_symbols, self._settings
        if settings.window is None:
            return WholeEpoch(plan_epoch(frames, symbols, settings, epoch))
        return WindowedEpoch(
            EpochInput(
                num_frames=frames,
                num_symbols=symbols,
                settings=settings,
                epoch=epoch,
                block_offsets=block_offsets(self._shards[selection.rows]),
            )
        )


def block_offsets(shards: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Where each stretch of one shard starts, and the end, int64 `[num_blocks + 1]`; `shards` `[n]` is by place."""
    starts = np.flatnonzero(np.diff(shards)) + 1
    return np.unique(np.concatenate([[0], starts, [len(shards)]])).astype(np.int64)
