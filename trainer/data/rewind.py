"""Brings the counters of Lightning's loops, in a loaded checkpoint, to the plan's state.

They differ where a run was stopped in mid-epoch by max_steps or max_time (the loops then count the epoch as done),
where the number of accumulations has changed (the loops count micro-batches of one rank), and in a checkpoint from
between two accumulations, whose gradients are lost.
"""

from __future__ import annotations

from typing import Any

Counts = dict[str, int]


def rewind_loops(loops: dict[str, Any], epoch: int, groups_done: int, accumulations: int) -> None:
    """Makes `loops` (`checkpoint["loops"]["fit_loop"]`) what it is when saved after a step in mid-epoch.

    `_TrainingEpochLoop.update_restart_stage` knows that hook (`on_train_batch_end`) by `completed` one behind
    `processed`, and the loggers' step is one behind the optimizer's; `FitLoop` knows mid-epoch by `processed` and
    `completed` one behind `started`. Before an epoch's first step, its counts are those of an epoch not yet begun.

    Args:
        loops: changed in place.
        epoch: number of the epoch, from 0.
        groups_done: optimizer steps done in it, fewer than it has.
        accumulations: micro-batches of one rank in a step.
    """
    behind = 1 if groups_done else 0
    steps = loops["epoch_loop.automatic_optimization.optim_progress"]["optimizer"]
    global_step: int = steps["step"]["total"]["completed"]
    scheduler = loops["epoch_loop.scheduler_progress"]
    for counts in (steps["step"], steps["zero_grad"], scheduler):
        _set_all(counts["current"], groups_done)
    _set_all(scheduler["total"], global_step)
    _set_batches(loops, groups_done * accumulations, global_step * accumulations, behind)
    loops["epoch_loop.batch_progress"]["is_last_batch"] = False
    loops["epoch_loop.state_dict"]["_batches_that_stepped"] = max(global_step - 1, 0)
    for counts, number in (
        (loops["epoch_progress"]["current"], epoch),
        (loops["epoch_progress"]["total"], loops["epoch_progress"]["total"]["started"] - behind),
    ):
        _set_all(counts, number)
        counts.update(ready=number + behind, started=number + behind)


def _set_batches(loops: dict[str, Any], current: int, total: int, behind: int) -> None:
    for name, number in (("current", current), ("total", total)):
        counts = loops["epoch_loop.batch_progress"][name]
        _set_all(counts, number)
        counts["completed"] -= behind


def _set_all(counts: Counts, number: int) -> None:
    counts.update(dict.fromkeys(counts, number))
