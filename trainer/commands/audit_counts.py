"""How often each utterance of an epoch was computed, beside how often it should have been."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from schemas.errors import IdentityError
from trainer.commands.audit_chain import FoundStretch, Point
from trainer.data.epochs import Epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochVerdict:
    """How often the utterances of an epoch were computed, of those that its step groups done hold."""

    epoch: int
    """Which epoch."""
    steps: int
    """Step groups done."""
    all_steps: int
    """Step groups of the whole epoch."""
    planned: int
    """Utterances in the groups done."""
    once: int
    """Of these, utterances computed exactly once."""
    unreadable: int
    """Of these, utterances that were asked for, could not be read and were left out."""
    missing: tuple[str, ...]
    """Keys of those never computed, readable or not asked for."""
    repeated: tuple[str, ...]
    """Keys of those computed more than once."""
    early: tuple[str, ...]
    """Keys of those computed though they are of step groups not done."""
    stretches: int
    """Files that count."""
    discarded: int
    """Files that do not: computed after the checkpoint from which the run went on, so in no weights."""
    runs: int
    """Runs that had a part in it."""
    world_sizes: tuple[int, ...]
    """Numbers of ranks that computed it."""

    @property
    def is_whole(self) -> bool:
        """Whether all of its step groups are done."""
        return self.steps == self.all_steps

    @property
    def is_proven(self) -> bool:
        """Whether each came exactly once, or could not be read."""
        return not (self.missing or self.repeated or self.early)


@dataclass(slots=True)
class EpochCounts:
    """What the stretches say of one epoch."""

    epoch: int
    left_out: tuple[int, ...] = ()
    """Rows that its plan was made without."""
    counts: NDArray[np.int32] | None = None
    """How often each place was computed; None as long as no stretch counts."""
    unreadable: list[int] = field(default_factory=list)
    """Places."""
    runs: set[str] = field(default_factory=set)
    world_sizes: set[int] = field(default_factory=set)
    stretches: int = 0
    discarded: int = 0

    def add(self, found: FoundStretch) -> None:
        """Counts a stretch. Raises IdentityError where it is of another plan than those before."""
        header = found.header
        if not found.counts:
            self.discarded += 1
            return
        if self.counts is None:
            self.left_out, self.counts = header.left_out, np.zeros(header.num_places, np.int32)
        if (header.left_out, header.num_places) != (self.left_out, len(self.counts)):
            raise IdentityError(
                f"{found.run.folder}: the stretches of epoch {self.epoch} are of plans of different utterances",
                hint="the audit cannot vouch for this epoch",
            )
        self.counts += found.computed
        np.add.at(self.counts, np.array(header.repeated, dtype=np.int64), 1)
        self.unreadable += header.unreadable
        self.runs.add(str(found.run.folder))
        self.world_sizes.add(header.world_size)
        self.stretches += 1

    def verdict(self, epochs: Epochs, until: Point) -> EpochVerdict:
        """Compares with the plan; an epoch before that of `until` has to be whole. Raises IdentityError."""
        planned, selection = epochs.planned_without(self.epoch, self.left_out)
        counts = np.zeros(len(selection), np.int32) if self.counts is None else self.counts
        if len(counts) != len(selection):
            raise IdentityError(
                f"epoch {self.epoch} was planned from {len(counts)} utterances, its plan is now of {len(selection)}",
                hint="use the version of voxloom that trained it",
            )
        steps = planned.num_groups if self.epoch < until[0] else until[1] if self.epoch == until[0] else 0
        wanted, before = np.zeros(len(selection), bool), 0
        for _, plan in planned.windows(0):
            groups = min(max(steps - before, 0), plan.num_groups)
            wanted[plan.order[: plan.batch_offsets[plan.group_offsets[groups]]]] = True
            before += plan.num_groups
        unreadable = np.zeros(len(selection), bool)
        unreadable[self.unreadable] = True
        unreadable &= wanted & (counts == 0)

        def keys(chosen: NDArray[np.bool_]) -> tuple[str, ...]:
            return tuple(epochs.shards.key(int(row)) for row in selection.rows_at(np.flatnonzero(chosen)))

        return EpochVerdict(
            epoch=self.epoch, steps=steps, all_steps=planned.num_groups, planned=int(wanted.sum()),
            once=int((wanted & (counts == 1)).sum()), unreadable=int(unreadable.sum()),
            missing=keys(wanted & (counts == 0) & ~unreadable), repeated=keys(counts > 1),
            early=keys(~wanted & (counts == 1)), stretches=self.stretches, discarded=self.discarded,
            runs=len(self.runs), world_sizes=tuple(sorted(self.world_sizes)),
        )  # fmt: skip
