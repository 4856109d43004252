"""Runs a plain function over tasks: in this process, in local processes, or on a Dask cluster. The only Dask import.

Whoever runs them, results come back in the order of the tasks, and each task runs with one BLAS thread: more would
fight over the cores (up to tenfold slower), and the order of a sum, hence its last bit, would depend on their number.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Generic, TypeVar

from threadpoolctl import threadpool_limits

from schemas.errors import MachineError, UsageError

Task = TypeVar("Task")
Result = TypeVar("Result")
OnDone = Callable[[int], None]

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Who does the work: `number` local processes (0: one a core), or the cluster at `scheduler`."""

    number: int = 0
    scheduler: str | None = None

    def count(self, num_tasks: int) -> int:
        """Processes worth starting for so many tasks."""
        # Not every system can tell which cores are ours (macOS cannot).
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(num_tasks, self.number or cores)


def run_tasks(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: Workers, on_done: OnDone = lambda _: None
) -> list[Result]:
    """Applies `function` to each task; `on_done(place)` is called in this process as each ends.

    Raises:
        MachineError: a worker process was lost, or the cluster cannot be reached.
        VoxloomError, OSError: as `function` raised it; tasks not yet begun are then given up.
    """
    bound = _OneThread(function)
    if workers.scheduler:
        return _run_on_cluster(bound, tasks, workers.scheduler, on_done)
    if workers.count(len(tasks)) <= 1:
        return [_and_tell(bound(task), place, on_done) for place, task in enumerate(tasks)]
    return _run_in_processes(bound, tasks, workers.count(len(tasks)), on_done)


@dataclass(frozen=True, slots=True)
class _OneThread(Generic[Task, Result]):
    """`function` with one BLAS thread; a class so that it can be pickled."""

    function: Callable[[Task], Result]

    def __call__(self, task: Task) -> Result:
        with threadpool_limits(limits=1):
            return self.function(task)


def _and_tell(result: Result, place: int, on_done: OnDone) -> Result:
    on_done(place)
    return result


def _run_in_processes(
    function: Callable[[Task], Result], tasks: Sequence[Task], number: int, on_done: OnDone
) -> list[Result]:
    import dask
    from dask.callbacks import Callback

    places = {f"task-{place}": place for place in range(len(tasks))}

    def tell(key: str, *_: object) -> None:
        if key in places:
            on_done(places[key])

    calls = [
        dask.delayed(function, pure=False)(task, dask_key_name=key) for key, task in zip(places, tasks, strict=True)
    ]
    saved = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    pool = ProcessPoolExecutor(number, multiprocessing.get_context("spawn"), initializer=_end_with_parent)
    try:
        with Callback(posttask=tell):
            results: tuple[Result, ...] = dask.compute(
                *calls, scheduler="processes", pool=pool, num_workers=number, chunksize=1, optimize_graph=False
            )
    except BrokenProcessPool as error:
        raise MachineError(
            "a worker process ended without a word (killed, or out of memory)",
            hint="run the same command again: it continues; fewer --workers need less memory",
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in saved.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return list(results)


def _end_with_parent() -> None:
    """Ends this worker when its parent is gone: a killed parent cannot tell it, and it would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_on_cluster(
    function: Callable[[Task], Result], tasks: Sequence[Task], address: str, on_done: OnDone
) -> list[Result]:
    from distributed import Client, as_completed
    from distributed.scheduler import KilledWorker

    try:
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address!r}: {error}",
            hint="start one with `dask scheduler` and workers with `dask worker ADDRESS`, and give its tcp:// address",
        ) from error
    with client:
        futures = client.map(function, tasks, pure=False, retries=0)
        places = {future.key: place for place, future in enumerate(futures)}
        try:
            for future in as_completed(futures):
                future.result()
                on_done(places[future.key])
            return [future.result() for future in futures]
        except KilledWorker as error:
            raise MachineError(
                f"the cluster lost several workers on one task: {error}",
                hint="run the same command again: it continues",
            ) from error
