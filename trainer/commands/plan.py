"""`trainer plan`: what an epoch will be, before any training. Needs no torch."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trainer.commands.shard_folder import open_shards
from trainer.data.plan import PlanSettings, overlong_rows, plan_epoch
from trainer.data.selection import Selection, select
from trainer.data.summary import PlanSummary, summarize

_LISTED = 10
_LONG_WAIT = 0.2
_WIDTH_OF_A_PIPE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """The plan of one epoch of a shard set, as figures."""

    settings: PlanSettings
    """What it was made with."""
    epoch: int
    """Which epoch, from 0."""
    summary: PlanSummary
    """The figures."""
    overlong: tuple[str, ...]
    """Keys of the utterances over a limit by themselves."""
    selection: Selection
    """What can be trained on, and what is left out."""


def view_plan(shards: Path, settings: PlanSettings, epoch: int) -> PlanView:
    """Plans an epoch of the training split.

    Raises:
        FormatError: not a shard set.
        UsageError: a prepared data set; or an utterance is over the limits and `settings.overlong` is `error`.
    """
    shard_set = open_shards(shards)
    selection = select(shard_set, "train")
    frames, symbols = selection.num_frames, selection.num_symbols
    plan = plan_epoch(frames, symbols, settings, epoch)
    overlong = overlong_rows(frames, symbols, settings)
    return PlanView(
        settings=settings,
        epoch=epoch,
        summary=summarize(plan, frames, symbols, settings),
        overlong=tuple(shard_set.key(int(row)) for row in selection.rows[overlong]),
        selection=selection,
    )


def plan_json(view: PlanView) -> str:
    """The figures as JSON; `overlong` and `excluded` are lists of keys."""
    content = {
        **view.summary.to_dict(),
        "overlong": view.overlong,
        "excluded": view.selection.excluded,
        "epoch": view.epoch,
        "settings": view.settings.to_dict(),
    }
    return json.dumps(content, ensure_ascii=False, indent=2)


def print_plan(view: PlanView, shards: Path, options: Sequence[str] = ()) -> None:
    """A table, what is worth knowing, and the next command, with the options of `trainer fit` that were asked for."""
    summary, settings = view.summary, view.settings
    limits = {"frames": settings.max_frames, "symbols": settings.max_symbols, "utterances": settings.max_batch_size}
    waiting = f"{summary.expected_wait:.1%} of a rank's time, if time goes by frames"
    table = Table(title=f"Epoch {view.epoch} of {shards}", show_header=False, title_justify="left", box=None)
    for name, value in (
        ("utterances", f"{summary.utterances:,}"),
        ("optimizer steps", f"{summary.steps:,}"),
        ("micro-batches", f"{summary.micro_batches:,} ({settings.ranks} a step)"),
        ("padding", f"{summary.padding_share:.1%} of the frames computed"),
        *([("waiting", waiting)] if settings.ranks > 1 else []),
        ("largest micro-batch", f"{summary.max_frames:,} padded frames (at most {limits['frames']:,})"),
        ("", f"{summary.max_symbols:,} padded symbols (at most {limits['symbols'] or 'any number'})"),
        ("", f"{summary.max_batch_size:,} utterances (at most {limits['utterances']:,})"),
        ("overlong", f"{summary.overlong:,}, treated as: {settings.overlong}"),
    ):
        table.add_row(Text(name, style="dim"), Text(value))
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_OF_A_PIPE)
    console.print(table)
    for note in _notes(view):
        console.print(Text(f"note: {note}"), soft_wrap=True)
    console.print(Text(f"next: trainer fit {shlex.join([str(shards), *options])}"), soft_wrap=True)


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
