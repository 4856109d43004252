"""The closing tables of the commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dataprep.commands.ingest import IngestOutcome
from dataprep.commands.inspect import View
from dataprep.commands.shard import ShardOutcome
from dataprep.report import REPORT_NAME, duration
from dataprep.shards.prepared import DROPS_NAME

_WIDTH_OF_A_PIPE = 100
_MAX_SPEAKERS = 10


class _Console(Console):
    """rich's console, which ends well where the reader of its output has gone, as `| head` does."""

    def on_broken_pipe(self) -> None:
        """The work is done; only the summary is not read. Raises SystemExit."""
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise SystemExit(0) from None


def _console() -> Console:
    console = _Console(highlight=False)
    return console if console.is_terminal else _Console(highlight=False, width=_WIDTH_OF_A_PIPE)


def _print_pairs(console: Console, title: str, pairs: Iterable[tuple[str, str]]) -> None:
    table = Table(title=title, show_header=False, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name, value in pairs:
        table.add_row(Text(name, style="dim"), Text(value))
    console.print(table)


def print_ingest(outcome: IngestOutcome, out: Path) -> None:
    """Read, kept, dropped by reason, hours by split and language, where to look next."""
    counts = outcome.manifest.counts
    pairs = [
        ("read", f"{counts.rows} rows"),
        ("kept", f"{counts.utterances} utterances ({outcome.num_reused} of them from an earlier run)"),
        ("dropped", f"{sum(counts.drops.values())}"),
        *((f"  {reason}", str(number)) for reason, number in counts.drops.items()),
        *((f"note: {kind}", str(number)) for kind, number in counts.warnings.items()),
        *((f"split {name}", _amount(a.utterances, a.seconds)) for name, a in counts.by_split.items()),
        *((f"language {name}", _amount(a.utterances, a.seconds)) for name, a in counts.by_language.items()),
        *(
            (f"speaker {name}", _amount(a.utterances, a.seconds))
            for name, a in list(counts.by_speaker.items())[:_MAX_SPEAKERS]
        ),
    ]
    if len(counts.by_speaker) > _MAX_SPEAKERS:
        pairs.append(("speakers", f"{len(counts.by_speaker)} in all, see the report"))
    console = _console()
    _print_pairs(console, f"Prepared in {out}", pairs)
    first = sorted(outcome.drops, key=lambda drop: (drop.line, drop.path))[:5]
    for drop in first:
        where = f"line {drop.line}, " if drop.line else ""
        console.print(Text(f"dropped: {where}{drop.path}: {drop.reason}: {drop.message}"), soft_wrap=True)
    if len(outcome.drops) > len(first):
        console.print(f"... and {len(outcome.drops) - len(first)} more in {out / DROPS_NAME}", soft_wrap=True)
    console.print(f"look at it: {out / REPORT_NAME}\nnext: dataprep shard {out}", soft_wrap=True)


def _amount(utterances: int, seconds: float) -> str:
    return f"{utterances} utterance{'' if utterances == 1 else 's'}, {duration(seconds)}"


def print_shard(outcome: ShardOutcome, out: Path) -> None:
    """What was written, and where to go next."""
    manifest = outcome.manifest
    size = sum(info.bytes for info in manifest.shards)
    pairs = [
        ("shards", f"{len(manifest.shards)} {manifest.container}, {size / 2**20:.1f} MiB"),
        ("utterances", str(manifest.index.rows)),
        ("frames", str(sum(info.frames for info in manifest.shards))),
        ("features", f"{manifest.feature_spec.name}, {manifest.mel_dtype}"),
        ("speakers", str(len(manifest.speakers))),
    ]
    console = _console()
    _print_pairs(console, f"{'Already complete' if outcome.was_current else 'Sharded'} in {out}", pairs)
    console.print(f"next: dataprep validate {out} && trainer plan {out} && trainer fit {out}", soft_wrap=True)


def print_view(view: View) -> None:
    """Named lines under a title."""
    _print_pairs(_console(), view.title, view.lines)
