"""What an epoch will be, told from its plan before any training."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.keys import Lengths
from trainer.data.plan import EpochPlan, PlanSettings, overlong_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """Figures of one epoch's plan. The largest are those of the plan, not the limits it was made under."""

    utterances: int
    """Utterances in the plan."""
    steps: int
    """Optimizer steps."""
    micro_batches: int
    """Micro-batches over all ranks; empty slots do not count."""
    ranks: int
    """Micro-batches of a full step group."""
    padding_share: float
    """Share of the padded frames that are padding, 0 to 1."""
    expected_wait: float
    """Share of its time that a rank waits for the slowest, if time goes by the cost: mean over steps, 0 to 1."""
    max_frames: int
    """Padded frames of the largest micro-batch."""
    max_symbols: int
    """Padded symbols of the largest micro-batch."""
    max_batch_size: int
    """Utterances of the largest micro-batch."""
    overlong: int
    """Utterances that are over a limit by themselves."""

    def to_dict(self) -> dict[str, int | float]:
        """The figures by name."""
        return dataclasses.asdict(self)


def summarize(plan: EpochPlan, num_frames: Lengths, num_symbols: Lengths, settings: PlanSettings) -> PlanSummary:
    """Figures of `plan`; `num_frames` and `num_symbols` `[n]` are those it was made from."""
    padded_frames, padded_symbols = _padded(plan, num_frames), _padded(plan, num_symbols)
    num_real = int(np.asarray(num_frames)[plan.order].sum(dtype=np.int64))
    return PlanSummary(
        utterances=len(plan.order),
        steps=plan.num_groups,
        micro_batches=len(padded_frames),
        ranks=settings.ranks,
        padding_share=1 - num_real / int(padded_frames.sum()) if num_real else 0.0,
        expected_wait=_wait(plan, _cost(plan, num_frames, settings), settings),
        max_frames=int(padded_frames.max(initial=0)),
        max_symbols=int(padded_symbols.max(initial=0)),
        max_batch_size=int(np.diff(plan.batch_offsets).max(initial=0)),
        overlong=len(overlong_rows(num_frames, num_symbols, settings)),
    )


def _padded(plan: EpochPlan, lengths: Lengths) -> NDArray[np.int64]:
    """Padded length of each micro-batch, int64 `[M]`: utterances times the longest."""
    if len(plan.order) == 0:
        return np.zeros(0, np.int64)
    longest = np.maximum.reduceat(np.asarray(lengths)[plan.order], plan.batch_offsets[:-1])
    return longest.astype(np.int64) * np.diff(plan.batch_offsets)


def _cost(plan: EpochPlan, num_frames: Lengths, settings: PlanSettings) -> NDArray[np.float64]:
    """Cost of each micro-batch in frames, float64 `[M]`."""
    sizes = np.maximum(np.diff(plan.batch_offsets), 1)
    padded = _padded(plan, num_frames)
    return np.asarray(settings.fixed + padded * (1 + settings.quadratic * (padded / sizes)))


def _wait(plan: EpochPlan, cost: NDArray[np.float64], settings: PlanSettings) -> float:
    """Mean over steps of 1 - mean / max of the cost; empty slots cost nothing.

    A step's length classes are computed one after the other, so each has its own mean and maximum.
    """
    if plan.num_groups == 0:
        return 0.0
    part_size = settings.ranks // settings.length_classes
    counts = np.diff(plan.group_offsets)
    # the edges of the parts: every part_size micro-batches of a group, and its end
    parts = -(-counts // part_size)
    within = np.arange(int(parts.sum())) - np.repeat(parts.cumsum() - parts, parts)
    edges = np.repeat(plan.group_offsets[:-1], parts) + within * part_size
    groups = np.repeat(np.arange(plan.num_groups), parts)
    means = np.add.reduceat(cost, edges) / part_size
    largest = np.maximum.reduceat(cost, edges)
    by_group = [np.bincount(groups, values, plan.num_groups) for values in (means, largest)]
    return float(np.mean(1 - by_group[0] / np.maximum(by_group[1], 1e-9)))
