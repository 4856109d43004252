"""The plan of each epoch of a run: which utterances it is made from, and the step groups they make."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from schemas.checkpoint import QuarantinedUtterance
from schemas.errors import UsageError
from trainer.data.collection import ShardMix
from trainer.data.mix import mixed_places, repeats_of
from trainer.data.plan import PlanSettings, plan_epoch
from trainer.data.planned import PlannedEpoch, WholeEpoch, WindowedEpoch
from trainer.data.selection import Selection, select
from trainer.data.windows import EpochInput

Planned = tuple[PlannedEpoch, Selection]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetShare:
    """What an epoch takes of one shard set."""

    location: str
    """Where the shard set lies."""
    repeats: float
    """How often each of its utterances is taken."""
    utterances: int
    """Utterances in the epoch, each as often as it comes."""
    hours: float
    """Hours in the epoch."""


class Epochs:
    """Plans epochs; the last one is kept, since Lightning asks for it more than once.

    Args:
        shards: the shard sets.
        settings: the plan's.
        weights: how often an epoch takes each utterance of each set.
        temperature: instead of weights, see `trainer.data.mix.repeats_of`.

    Raises:
        UsageError: weights or temperature make no sense, or leave nothing to train on.
    """

    def __init__(
        self,
        shards: ShardMix,
        settings: PlanSettings,
        weights: Sequence[float] | None = None,
        temperature: float | None = None,
    ) -> None:
        self.shards, self.settings = shards, settings
        self.training = select(shards, "train")
        self._sizes = self._set_sizes(self.training)
        hours = [share.hours for share in self._shares(self.training, (1.0,) * len(shards.sets))]
        self.repeats = repeats_of(hours, weights, temperature)
        if len(self.training) and max(map(operator.mul, self._sizes, self.repeats)) < 1:
            raise UsageError(
                f"an epoch that takes the shard sets {', '.join(f'{times:g}' for times in self.repeats)} times may "
                f"hold nothing: they have {', '.join(map(str, self._sizes))} utterances to train on",
                hint="raise --data.weights",
            )
        self._kept: tuple[tuple[int, tuple[int, ...]], Planned] | None = None

    def planned(self, epoch: int, quarantine: Sequence[QuarantinedUtterance] = ()) -> Planned:
        """The plan of an epoch, and the utterances it is made from: without those found unreadable in epochs before."""
        return self.planned_without(epoch, left_out(quarantine, epoch))

    def planned_without(self, epoch: int, rows: tuple[int, ...]) -> Planned:
        """The plan of an epoch that leaves out some rows of the index, and the utterances it is made from."""
        if self._kept is None or self._kept[0] != (epoch, rows):
            selection = self.selection(epoch).without(rows)
            self._kept = ((epoch, rows), (self._plan(selection, epoch), selection))
        return self._kept[1]

    def selection(self, epoch: int) -> Selection:
        """What an epoch takes of the training split, unreadable or not."""
        if all(times == 1 for times in self.repeats):
            return self.training
        return self.training.take(mixed_places(self._sizes, self.repeats, self.settings.seed, epoch))

    def realised(self, epoch: int) -> list[SetShare]:
        """What an epoch takes of each set."""
        return self._shares(self.selection(epoch), self.repeats)

    def _shares(self, selection: Selection, repeats: Sequence[float]) -> list[SetShare]:
        spec = self.shards.manifest.feature_spec
        edges = np.cumsum([0, *self._set_sizes(selection)])
        return [
            SetShare(
                location=one.location,
                repeats=repeats[at],
                utterances=int(edges[at + 1] - edges[at]),
                hours=int(selection.num_frames[edges[at] : edges[at + 1]].sum(dtype=np.int64))
                * spec.hop_length / spec.sample_rate / 3600,
            )
            for at, one in enumerate(self.shards.sets)
        ]  # fmt: skip

    def _set_sizes(self, selection: Selection) -> list[int]:
        """Utterances of each set; a selection has the sets one after the other."""
        if len(self.shards.sets) == 1:
            return [len(selection)]
        edges: list[int] = np.searchsorted(selection.rows, self.shards.offsets).tolist()
        return [stop - start for start, stop in pairwise(edges)]

    def _plan(self, selection: Selection, epoch: int) -> PlannedEpoch:
        frames, symbols, settings = selection.num_frames, selection.num_symbols, self.settings
        if settings.window is None:
            return WholeEpoch(plan_epoch(frames, symbols, settings, epoch))
        shards = self.shards.columns.shard[selection.rows]
        offsets = block_offsets(shards)
        return WindowedEpoch(
            EpochInput(num_frames=frames, num_symbols=symbols, settings=settings, epoch=epoch, block_offsets=offsets),
            shards[offsets[:-1]],
        )


def left_out(quarantine: Sequence[QuarantinedUtterance], epoch: int) -> tuple[int, ...]:
    """Rows that an epoch is planned without."""
    return tuple(item.row for item in quarantine if item.epoch < epoch)


def block_offsets(shards: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where each stretch of one shard starts, and the end, int64 `[num_blocks + 1]`; `shards` `[n]` is by place."""
    starts = np.flatnonzero(np.diff(shards)) + 1
    return np.unique(np.concatenate([[0], starts, [len(shards)]])).astype(np.int64)
