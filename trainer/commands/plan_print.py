"""Prints a plan for people: tables of figures, what is worth knowing, and the next command."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trainer.commands.plan import PlanView

_LISTED = 10
_LONG_WAIT = 0.2
_WIDTH_OF_A_PIPE = 100


def print_plan(view: PlanView, next_command: str, plot: Path | None = None) -> None:
    """Prints; the picture that was drawn and the next command come last."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_OF_A_PIPE)
    tables = [_figures(view)]
    if len(view.sets) > 1 or view.sets[0].repeats != 1:
        tables.append(_sets(view))
    if view.classes:
        tables += [_largest(view), _lengths(view)]
    for table in tables:
        console.print(table)
    for note in _notes(view):
        console.print(Text(f"note: {note}"), soft_wrap=True)
    if plot is not None:
        console.print(Text(f"plot: {plot}"), soft_wrap=True)
    console.print(Text(f"next: {next_command}"), soft_wrap=True)


def _figures(view: PlanView) -> Table:
    summary, settings = view.summary, view.settings
    costs = " with their quadratic cost" if settings.quadratic else ""
    by_what = "cost" if settings.quadratic or settings.fixed else "frames"
    waiting = f"{summary.expected_wait:.1%} of a rank's time, if time goes by {by_what}"
    locations = " ".join(one.location for one in view.sets)
    table = Table(title=Text(f"Epoch {view.epoch} of {locations}", style="table.title"), title_justify="left", box=None)
    table.show_header = False
    for name, value in (
        ("utterances", f"{summary.utterances:,} in {view.hours:,.2f} hours"),
        ("optimizer steps", f"{summary.steps:,}"),
        ("micro-batches", f"{summary.micro_batches:,} ({settings.ranks} a step)"),
        ("padding", f"{summary.padding_share:.1%} of the frames computed"),
        *([("waiting", waiting)] if settings.ranks > 1 else []),
        ("largest micro-batch", f"{summary.max_frames:,} padded frames (at most {settings.max_frames:,}{costs})"),
        ("", f"{summary.max_symbols:,} padded symbols (at most {_limit(settings.max_symbols)})"),
        ("", f"{summary.max_batch_size:,} utterances (at most {settings.max_batch_size:,})"),
        ("overlong", f"{summary.overlong:,}, treated as: {settings.overlong}"),
    ):
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def _limit(limit: int | None) -> str:
    return "any number" if limit is None else f"{limit:,}"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, header_style="dim")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _sets(view: PlanView) -> Table:
    table = _table("Shard sets", "utterances", "hours", "of the epoch", "each comes", "")
    table.columns[-1].justify, table.columns[-1].overflow = "left", "fold"
    for one in view.sets:
        share = one.hours / view.hours if view.hours else 0.0
        times = f"{one.repeats:.4g} times"
        table.add_row(f"{one.utterances:,}", f"{one.hours:,.2f}", f"{share:.1%}", times, Text(one.location))
    return table


def _largest(view: PlanView) -> Table:
    table = _table("Largest micro-batches", "utterances x longest", "padded", "", "longest utterance")
    for column in table.columns[2:]:
        column.justify, column.overflow = "left", "fold"
    for unit, batches in (("frames", view.most_frames), ("symbols", view.most_symbols)):
        for one in batches:
            shape = f"{one.batch.utterances:,} x {one.batch.longest:,}"
            table.add_row(shape, f"{one.batch.padded:,}", unit, Text(one.key))
    return table


def _lengths(view: PlanView) -> Table:
    table = _table("By length", "seconds", "frames", "utterances", "of all frames", "micro-batches by longest")
    for one in view.classes:
        until = "and more" if one.below_seconds is None else f"to {one.below_seconds:g}"
        most = "and more" if one.most_frames is None else f"to {one.most_frames:,}"
        table.add_row(
            f"{one.above_seconds:g} {until}", f"{one.least_frames:,} {most}", f"{one.utterances:,}",
            f"{one.frames_share:.1%}", f"{one.micro_batches:,}",
        )  # fmt: skip
    return table


def _notes(view: PlanView) -> list[str]:
    notes = []
    if not view.summary.utterances:
        notes.append("the training split holds nothing that can be trained on, so the plan is empty")
    if view.overlong:
        notes.append(f"over a limit by themselves: {_listed(view.overlong)}")
    if view.shared_speakers:
        names = _listed(view.shared_speakers)
        notes.append(f"taken for the same speaker, since several sets have the name: {names}")
    if view.summary.expected_wait > _LONG_WAIT:
        notes.append(
            "ranks wait long for the slowest: fewer --ranks, or a larger --max-frames, makes their loads more even"
        )
    warning = view.selection.warning("train")
    return [*notes, warning] if warning else notes


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
