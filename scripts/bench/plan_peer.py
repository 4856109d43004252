"""Batches of lhotse's DynamicBucketingSampler on the same lengths."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NUM_BUCKETS = 30


def lhotse_batches(
    seconds: NDArray[np.float64], *, budget_seconds: float, ranks: int, epoch: int = 0, quadratic: float | None = None
) -> list[list[list[float]]]:
    """Batches of an epoch, by rank, as lists of seconds.

    Args:
        seconds: lengths of the utterances `[n]`.
        budget_seconds: `max_duration`, the most padded seconds of a batch.
        ranks: `world_size`; each rank has a sampler of its own, as in training.
        epoch: which epoch.
        quadratic: `quadratic_duration` in seconds.
    """
    from lhotse import CutSet, MonoCut
    from lhotse.dataset import DynamicBucketingSampler

    cuts = CutSet.from_cuts(
        MonoCut(id=str(place), start=0, duration=float(value), channel=0) for place, value in enumerate(seconds)
    ).to_eager()
    by_rank = []
    for rank in range(ranks):
        sampler = DynamicBucketingSampler(
            cuts, max_duration=budget_seconds, num_buckets=NUM_BUCKETS, shuffle=True, drop_last=False,
            quadratic_duration=quadratic, world_size=ranks, rank=rank, seed=0,
        )  # fmt: skip
        sampler.set_epoch(epoch)
        by_rank.append([[cut.duration for cut in batch] for batch in sampler])
    return by_rank


def padding_share(batches: list[list[float]]) -> float:
    """Share of the padded seconds that are padding."""
    real = sum(sum(batch) for batch in batches)
    return 1 - real / sum(len(batch) * max(batch) for batch in batches)


def wait_and_utilisation(by_rank: list[list[list[float]]]) -> tuple[float, float]:
    """Mean wait per step by padded seconds, and real seconds over (ranks x the step's largest padded batch)."""
    steps = list(zip(*by_rank, strict=False))
    padded = np.array([[len(batch) * max(batch) for batch in step] for step in steps])
    real = sum(sum(batch) for step in steps for batch in step)
    return float(np.mean(1 - padded.mean(1) / padded.max(1))), real / float(padded.max(1).sum() * len(by_rank))
