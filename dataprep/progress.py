"""The progress bar: done, rate, time left. On standard error, and only where a person watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def progress(title: str, weights: Sequence[int], unit: str) -> Iterator[Callable[[int], None]]:
    """Yields `on_done(place)` for tasks that count `weights[place]` units each."""
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn(f"{unit}  {{task.fields[rate]}}"),
        rich.TimeElapsedColumn(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=sum(weights), rate="")

        def on_done(place: int) -> None:
            bar.advance(task, weights[place])
            speed = bar.tasks[0].speed
            bar.update(task, rate="" if speed is None else f"{speed:.0f}/s")

        yield on_done
