"""What an epoch will be, told from its plan before any training."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """Share of its time that a rank waits for the slowest, if time goes by padded frames: mean over steps, 0 to 1."""
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


def summarize(
    plan: EpochPlan, num_frames: NDArray[np.integer], num_symbols: NDArray[np.integer], settings: PlanSettings
) -> PlanSummary:
    """Figures of `plan`; `num_frames` and `num_symbols` `[n]` are those it was made from."""
    padded_frames, padded_symbols = _padded(plan, num_frames), _padded(plan, num_symbols)
    num_real = int(np.asarray(num_frames)[plan.order].sum(dtype=np.int64))
    return PlanSummary(
        utterances=len(plan.order),
        steps=plan.num_groups,
        micro_batches=len(padded_frames),
        ranks=settings.ranks,
        padding_share=1 - num_real / int(padded_frames.sum()) if num_real else 0.0,
        expected_wait=_wait(plan, padded_frames, settings.ranks),
        max_frames=int(padded_frames.max(initial=0)),
        max_symbols=int(padded_symbols.max(initial=0)),
        max_batch_size=int(np.diff(plan.batch_offsets).max(initial=0)),
        overlong=len(overlong_rows(num_frames, num_symbols, settings)),
    )


def _padded(plan: EpochPlan, lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Padded length of each micro-batch, int64 `[M]`: utterances times the longest."""
    if len(plan.order) == 0:
        return np.zeros(0, np.int64)
    longest = np.maximum.reduceat(np.asarray(lengths)[plan.order], plan.batch_offsets[:-1])
    return longest.astype(np.int64) * np.diff(plan.batch_offsets)


def _wait(plan: EpochPlan, padded_frames: NDArray[np.int64], ranks: int) -> float:
    """Mean over steps of 1 - mean / max of padded frames, over all slots of the group, the empty ones too."""
    if plan.num_groups == 0:
        return 0.0
    sums = np.add.reduceat(padded_frames, plan.group_offsets[:-1])
    largest = np.maximum.reduceat(padded_frames, plan.group_offsets[:-1])
    return float(np.mean(1 - sums / (np.maximum(largest, 1) * ranks)))
