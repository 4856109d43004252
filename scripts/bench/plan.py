"""How long it takes to plan an epoch, and how good the plan is: `python -m scripts.bench.plan [ROWS ...]`.

Lengths are made: log-normal around 5 s, 0.5 to 30 s, at 22,050 Hz and a hop of 256 samples; 20,000 padded frames.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from trainer.data.plan import PlanSettings, plan_epoch
from trainer.data.summary import summarize

FRAMES_PER_SECOND = 22050 / 256


def main(row_counts: list[int]) -> None:
    """Prints a line for each number of rows and each group size."""
    print("rows | ranks | seconds | steps | padding | waiting | peak memory, MB")
    for num_rows in row_counts:
        random = np.random.default_rng(0)
        seconds = np.clip(random.lognormal(np.log(5.0), 0.65, num_rows), 0.5, 30.0)
        frames = (seconds * FRAMES_PER_SECOND).astype(np.uint32)
        symbols = (frames // 7 + 1).astype(np.uint32)
        for ranks in (1, 8, 64):
            settings = PlanSettings(max_frames=20000, ranks=ranks)
            began = time.perf_counter()
            plan = plan_epoch(frames, symbols, settings, 0)
            took = time.perf_counter() - began
            summary = summarize(plan, frames, symbols, settings)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
            print(
                f"{num_rows:,} | {ranks} | {took:.2f} | {summary.steps:,} | {summary.padding_share:.1%} "
                f"| {summary.expected_wait:.1%} | {peak:.0f}"
            )


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [10**4, 10**6, 10**7])
