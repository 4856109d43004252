"""How good an epoch's plan is and what it takes, beside lhotse's sampler: `python -m scripts.bench.plan [PART ...]`.

Parts: `peer` (padding, waiting and use of the machine, on the same lengths as lhotse), `wait` (quadratic cost), `size`
(time and memory of 1 M, 10 M and 100 M utterances, each in a process of its own). All of them by default.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from scripts.bench.lengths import FRAMES_PER_SECOND, frames_like_libritts, seconds_like_libritts
from scripts.bench.plan_peer import lhotse_batches, padding_share, wait_and_utilisation
from trainer.data.plan import EpochPlan, PlanSettings, count_groups, iter_groups, iter_windows, plan_epoch
from trainer.data.summary import summarize

LIBRITTS_ROWS = 360_000
SYMBOLS_PER_FRAME = 1 / 7
WINDOW_ROWS = 4_000_000


def utilisation(plan: EpochPlan, frames: NDArray[np.uint32], ranks: int) -> float:
    """Real frames / (ranks x the step's largest padded micro-batch)."""
    longest = np.maximum.reduceat(frames[plan.order], plan.batch_offsets[:-1]).astype(np.int64)
    largest = np.maximum.reduceat(longest * np.diff(plan.batch_offsets), plan.group_offsets[:-1])
    return float(frames[plan.order].sum(dtype=np.int64) / (largest.sum() * ranks))


def peer() -> None:
    """Padding, waiting and utilisation beside lhotse."""
    seconds = seconds_like_libritts(LIBRITTS_ROWS)
    frames = frames_like_libritts(LIBRITTS_ROWS)
    symbols = (frames * SYMBOLS_PER_FRAME).astype(np.uint32) + 1
    print("| budget, s | ranks | tool | epoch | padding | a rank waits | utilisation | seconds to plan |")
    print("|---|---|---|---|---|---|---|---|")
    for budget, ranks in ((600, 1), (200, 8)):
        for epoch in (0, 1):
            settings = PlanSettings(max_frames=int(budget * FRAMES_PER_SECOND), ranks=ranks)
            began = time.process_time()
            plan = plan_epoch(frames, symbols, settings, epoch)
            took = time.process_time() - began
            told = summarize(plan, frames, symbols, settings)
            share, wait, used = told.padding_share, told.expected_wait, utilisation(plan, frames, ranks)
            print(f"| {budget} | {ranks} | voxloom | {epoch} | {share:.2%} | {wait:.2%} | {used:.1%} | {took:.2f} |")
        began = time.process_time()
        by_rank = lhotse_batches(seconds, budget_seconds=budget, ranks=ranks)
        took = (time.process_time() - began) / ranks
        wait, used = wait_and_utilisation(by_rank)
        share = padding_share([batch for rank in by_rank for batch in rank])
        print(f"| {budget} | {ranks} | lhotse | 0 | {share:.2%} | {wait:.2%} | {used:.1%} | {took:.2f} |", flush=True)


def wait() -> None:
    """Waiting under a quadratic cost that doubles at 15 s."""
    print("| rows | budget, s | ranks | steps | padding | a rank waits |")
    print("|---|---|---|---|---|---|")
    quadratic = 1 / (15 * FRAMES_PER_SECOND)
    for num_rows in (LIBRITTS_ROWS, 10**6, 10**7):
        frames = frames_like_libritts(num_rows)
        symbols = (frames * SYMBOLS_PER_FRAME).astype(np.uint32) + 1
        for budget in (200, 600):
            for ranks in (8, 64):
                settings = PlanSettings(max_frames=int(budget * FRAMES_PER_SECOND), ranks=ranks, quadratic=quadratic)
                told = summarize(plan_epoch(frames, symbols, settings, 0), frames, symbols, settings)
                print(
                    f"| {num_rows:,} | {budget} | {ranks} | {told.steps:,} | {told.padding_share:.2%} "
                    f"| {told.expected_wait:.2%} |"
                )


def size() -> None:
    """Time on one core and memory."""
    print(
        "| rows | ranks | window | steps | steps counted, s | first batch, s | whole plan, s | peak above lengths, MB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for num_rows, ranks, window in (
        (10**6, 8, None), (10**7, 1, None), (10**7, 8, None), (10**8, 1, WINDOW_ROWS), (10**8, 8, WINDOW_ROWS),
    ):  # fmt: skip
        worker = multiprocessing.get_context("spawn").Process(target=_size, args=(num_rows, ranks, window))
        worker.start()
        worker.join()


def _size(num_rows: int, ranks: int, window: int | None) -> None:
    frames = frames_like_libritts(num_rows)
    symbols = np.empty_like(frames)
    np.floor_divide(frames, 7, out=symbols)
    settings = PlanSettings(max_frames=int(200 * FRAMES_PER_SECOND), ranks=ranks, window=window)
    began = time.process_time()
    steps = count_groups(frames, symbols, settings, 0)
    counted = time.process_time() - began
    began = time.process_time()
    next(iter_groups(frames, symbols, settings, 0))
    first = counted + time.process_time() - began
    began = time.process_time()
    planned = sum(len(plan.order) for plan in iter_windows(frames, symbols, settings, 0))
    whole = time.process_time() - began
    assert planned == num_rows
    tracemalloc.start()  # after the times: it would be in them
    for _ in iter_windows(frames, symbols, settings, 0):
        pass
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    shown = "-" if window is None else f"{window:,}"
    print(
        f"| {num_rows:,} | {ranks} | {shown} | {steps:,} | {counted:.2f} | {first:.2f} | {whole:.2f} | {peak:.0f} |",
        flush=True,
    )


PARTS: dict[str, Callable[[], None]] = {"peer": peer, "wait": wait, "size": size}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
        print(flush=True)
