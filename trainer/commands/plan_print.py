"""Prints a plan for people: a table of figures, the lengths, what is worth knowing, and the next command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trainer.commands.plan import NamedBatch, PlanView

_LISTED = 10
_LONG_WAIT = 0.2
_WIDTH_OF_A_PIPE = 100


def print_plan(view: PlanView, shards: Sequence[str], options: Sequence[str] = ()) -> None:
    """Prints; `options` are those of `trainer fit` that were asked for."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_OF_A_PIPE)
    console.print(_figures(view, " ".join(shards)))
    if view.classes:
        console.print(_lengths(view))
    for note in _notes(view):
        console.print(Text(f"note: {note}"), soft_wrap=True)
    console.print(Text(f"next: trainer fit {shlex.join([*shards, *options])}"), soft_wrap=True)


def _figures(view: PlanView, title: str) -> Table:
    summary, settings = view.summary, view.settings
    limits = {"frames": settings.max_frames, "symbols": settings.max_symbols, "utterances": settings.max_batch_size}
    by_cost = "cost" if settings.quadratic or settings.fixed else "frames"
    waiting = f"{summary.expected_wait:.1%} of a rank's time, if time goes by {by_cost}"
    table = Table(title=f"Epoch {view.epoch} of {title}", show_header=False, title_justify="left", box=None)
    for name, value in (
        ("utterances", f"{summary.utterances:,}"),
        *(_set_rows(view) if len(view.sets) > 1 else []),
        ("optimizer steps", f"{summary.steps:,}"),
        ("micro-batches", f"{summary.micro_batches:,} ({settings.ranks} a step)"),
        ("padding", f"{summary.padding_share:.1%} of the frames computed"),
        *([("waiting", waiting)] if settings.ranks > 1 else []),
        ("largest micro-batch", f"{summary.max_frames:,} padded frames (at most {limits['frames']:,})"),
        *_large(view.most_frames, "frames"),
        ("", f"{summary.max_symbols:,} padded symbols (at most {limits['symbols'] or 'any number'})"),
        *_large(view.most_symbols, "symbols"),
        ("", f"{summary.max_batch_size:,} utterances (at most {limits['utterances']:,})"),
        ("overlong", f"{summary.overlong:,}, treated as: {settings.overlong}"),
    ):
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def _set_rows(view: PlanView) -> list[tuple[str, str]]:
    told = [f"{one.utterances:,} of {one.location}: {one.hours:.2f} h, each {one.repeats:g} times" for one in view.sets]
    return [("", line) for line in told]


def _large(batches: Sequence[NamedBatch], unit: str) -> list[tuple[str, str]]:
    return [
        ("", f"  {one.batch.utterances} x {one.batch.longest} {unit} = {one.batch.padded:,}, longest {one.key}")
        for one in batches
    ]


def _lengths(view: PlanView) -> Table:
    table = Table(title="By length", title_justify="left", box=None)
    for column in ("seconds", "utterances", "of all frames", "micro-batches with this longest"):
        table.add_column(column, justify="right", style="dim" if column == "seconds" else "")
    for one in view.classes:
        until = "and more" if one.below_seconds is None else f"to {one.below_seconds:g}"
        table.add_row(
            f"{one.above_seconds:g} {until}", f"{one.utterances:,}", f"{one.frames_share:.1%}", f"{one.micro_batches:,}"
        )
    return table


def _notes(view: PlanView) -> list[str]:
    notes = []
    if not view.summary.utterances:
        notes.append("the training split holds nothing that can be trained on, so the plan is empty")
    if view.overlong:
        more = f" and {len(view.overlong) - _LISTED} more" if len(view.overlong) > _LISTED else ""
        notes.append(f"over a limit by themselves: {', '.join(view.overlong[:_LISTED])}{more}")
    if view.summary.expected_wait > _LONG_WAIT:
        notes.append(
            "ranks wait long for the slowest: fewer --ranks, or a larger --max-frames, makes their loads more even"
        )
    warning = view.selection.warning("train")
    return [*notes, warning] if warning else notes
