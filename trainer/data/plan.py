"""The epoch plan: which utterances are computed together, and when. A pure function of lengths, settings and epoch.

    lengths [n] -> sorted by cost, a little jittered -> runs that fill G micro-batches, dealt evenly -> runs shuffled

The largest micro-batch of a step decides how long all ranks take, so all G of a step group are cut from one run of the
sorted utterances and each is filled to the same budget. Random numbers are a hash of (seed, epoch, row), so every rank
computes the same plan with no word exchanged, and it is the same on every machine: what is sorted are unique integers.

In this file are the public names; `keys`, `windows`, `cut` and `layout` are the steps in their order. There is no loop
over utterances or micro-batches (scripts/bench/plan.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.errors import UsageError
from trainer.data.cut import spread
from trainer.data.keys import CHUNK, Lengths, largest_sizes, mix64, rows_of, shares
from trainer.data.layout import lay_out
from trainer.data.plan_settings import DEFAULT_MAX_FRAMES, Overlong, PlanSettings
from trainer.data.windows import EpochInput, Window, windows

__all__ = [
    "DEFAULT_MAX_FRAMES", "EpochPlan", "Overlong", "PlanSettings", "StepGroup", "count_groups", "iter_groups",
    "iter_windows", "mix64", "overlong_rows", "plan_epoch",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPlan:
    """An epoch, or a window of one: M micro-batches in S step groups.

    Micro-batch m is `order[batch_offsets[m]:batch_offsets[m + 1]]`.
    """

    order: NDArray[np.uint32]
    """Rows in the order of training `[num_utterances]`, each once."""
    batch_offsets: NDArray[np.int64]
    """Where each micro-batch starts in `order`, and the end `[M + 1]`."""
    group_offsets: NDArray[np.int64]
    """Where each step group starts among the micro-batches, and the end `[S + 1]`."""

    @property
    def num_groups(self) -> int:
        """Optimizer steps."""
        return len(self.group_offsets) - 1

    def group(self, number: int) -> StepGroup:
        """One of its step groups."""
        first, last = self.group_offsets[number : number + 2].tolist()
        offsets = self.batch_offsets[first : last + 1]
        return StepGroup(order=self.order[offsets[0] : offsets[-1]], batch_offsets=offsets - offsets[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGroup:
    """The micro-batches of one optimizer step; m is `order[batch_offsets[m]:batch_offsets[m + 1]]`."""

    order: NDArray[np.uint32]
    """Rows `[num_utterances]`."""
    batch_offsets: NDArray[np.int64]
    """Where each micro-batch starts in `order`, and the end `[micro_batches + 1]`."""


def plan_epoch(
    num_frames: Lengths, num_symbols: Lengths, settings: PlanSettings, epoch: int,
    block_offsets: NDArray[np.int64] | None = None,
) -> EpochPlan:  # fmt: skip
    """Plans an epoch.

    Args:
        num_frames: frames of each utterance `[n]`.
        num_symbols: symbols of each utterance `[n]`.
        settings: budget, seed and group size.
        epoch: number of the epoch, from 0.
        block_offsets: where each block of rows that a window takes as a whole starts, such as a shard, and the end;
            blocks of 1024 rows where None. Counts only with `settings.window`.

    Raises:
        UsageError: an utterance is over a limit by itself and `settings.overlong` is `error`.
    """
    plans = list(iter_windows(num_frames, num_symbols, settings, epoch, block_offsets))
    if len(plans) == 1:
        return plans[0]
    return EpochPlan(
        order=np.concatenate([plan.order for plan in plans]),
        batch_offsets=_offsets(np.concatenate([np.diff(plan.batch_offsets) for plan in plans])),
        group_offsets=_offsets(np.concatenate([np.diff(plan.group_offsets) for plan in plans])),
    )


def iter_windows(
    num_frames: Lengths, num_symbols: Lengths, settings: PlanSettings, epoch: int,
    block_offsets: NDArray[np.int64] | None = None, groups_done: int = 0,
) -> Iterator[EpochPlan]:  # fmt: skip
    """The plan of `plan_epoch`, one window after the other; in memory is one.

    The arguments are those of `plan_epoch`. Windows that lie wholly in the first `groups_done` step groups come as
    plans without content: they need not be laid out. Raises UsageError as `plan_epoch` does.
    """
    epoch_input = _checked(num_frames, num_symbols, settings, epoch, block_offsets)
    groups_before = 0
    for window in windows(epoch_input):
        num_groups = window.cut.num_groups + (window.is_last and window.cut.num_rows < len(window.keys))
        if groups_before + num_groups <= groups_done:
            empty = np.zeros(num_groups + 1, np.int64)
            yield EpochPlan(order=np.empty(0, np.uint32), batch_offsets=empty[:1], group_offsets=empty)
        else:
            yield _plan(window, epoch_input, groups_before)
        groups_before += num_groups


def iter_groups(
    num_frames: Lengths, num_symbols: Lengths, settings: PlanSettings, epoch: int,
    block_offsets: NDArray[np.int64] | None = None,
) -> Iterator[StepGroup]:  # fmt: skip
    """The step groups of `plan_epoch`, one after the other; in memory is one window.

    The arguments are those of `plan_epoch`. Raises UsageError as `plan_epoch` does.
    """
    for plan in iter_windows(num_frames, num_symbols, settings, epoch, block_offsets):
        for number in range(plan.num_groups):
            yield plan.group(number)


def count_groups(
    num_frames: Lengths, num_symbols: Lengths, settings: PlanSettings, epoch: int,
    block_offsets: NDArray[np.int64] | None = None,
) -> int:  # fmt: skip
    """How many step groups `plan_epoch` would make, at a third of its cost. Raises UsageError as it does."""
    return sum(
        window.cut.num_groups + (window.is_last and window.cut.num_rows < len(window.keys))
        for window in windows(_checked(num_frames, num_symbols, settings, epoch, block_offsets))
    )


def overlong_rows(num_frames: Lengths, num_symbols: Lengths, settings: PlanSettings) -> NDArray[np.int64]:
    """Rows that are over a limit by themselves, int64, ascending."""
    frames, symbols = np.asarray(num_frames), np.asarray(num_symbols)
    found = [
        begin + np.flatnonzero(largest_sizes(shares(frames[part], symbols[part], settings), 1) == 0)
        for begin in range(0, len(frames), CHUNK)
        for part in [slice(begin, begin + CHUNK)]
    ]
    return np.concatenate(found, dtype=np.int64) if found else np.empty(0, np.int64)


def _checked(
    num_frames: Lengths, num_symbols: Lengths, settings: PlanSettings, epoch: int,
    block_offsets: NDArray[np.int64] | None,
) -> EpochInput:  # fmt: skip
    frames, symbols = np.asarray(num_frames), np.asarray(num_symbols)
    if settings.overlong == "error":
        overlong = overlong_rows(frames, symbols, settings)
        if len(overlong):
            worst = overlong[np.argmax(frames[overlong])]
            raise UsageError(
                f"{len(overlong)} utterances are over the limits by themselves; row {worst} has {frames[worst]} "
                f"frames (at most {settings.max_frames}) and {symbols[worst]} symbols (at most {settings.max_symbols})",
                hint="raise max_frames or max_symbols, or set overlong to own-batch or drop",
            )
    return EpochInput(
        num_frames=frames, num_symbols=symbols, settings=settings, epoch=epoch, block_offsets=block_offsets
    )


def _plan(window: Window, epoch_input: EpochInput, groups_before: int) -> EpochPlan:
    """A window in the order of training; the epoch's last takes what is left into one smaller group."""
    settings, used = epoch_input.settings, window.cut.num_rows
    last: tuple[NDArray[np.uint32], list[int]] = (np.empty(0, np.uint32), [])
    if window.is_last and used < len(window.keys):
        rows = rows_of(window.keys[used:])
        taken = shares(epoch_input.num_frames[rows], epoch_input.num_symbols[rows], settings)
        longest_first = np.argsort(-taken, kind="stable")
        sizes = spread(taken[longest_first], settings.ranks, settings.max_batch_size)
        last = (rows[longest_first], sizes)
    group_key = mix64(np.array([groups_before], np.uint64), epoch_input.random_keys()[1])[0]
    laid = lay_out(
        rows_of(window.keys[:used]), window.cut, last, group_size=settings.ranks,
        length_classes=settings.length_classes, key=group_key, key_of=epoch_input.keys_without_jitter,
    )  # fmt: skip
    return EpochPlan(order=laid.order, batch_offsets=_offsets(laid.sizes), group_offsets=_offsets(laid.group_sizes))


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
