"""`report.html`: one self-contained page about a prepared data set, without a time stamp: same data, same page."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from dataprep.shards.atomic import write_atomic
from dataprep.shards.parts import read_part
from schemas.dataset import Amount, Counts, FileInfo, PartInfo
from schemas.units import samples_to_seconds
from schemas.utterance import Drop

REPORT_NAME = "report.html"
FAILED_REPORT_NAME = "report.failed.html"
_MAX_DROPS_SHOWN = 200
_PLAYERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A figure in the headline."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar of a histogram, in the drawing's units."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A histogram with the values of its two ends."""

    title: str
    bars: tuple[Bar, ...]
    low: str
    high: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A table."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """A recording to listen to; `source` is a data URL."""

    name: str
    text: str
    source: str


def render(
    title: str, facts: Sequence[Fact], charts: Sequence[Chart], tables: Sequence[Listing], players: Sequence[Player]
) -> bytes:
    """The page as UTF-8; every text is escaped."""
    import jinja2

    environment = jinja2.Environment(loader=jinja2.PackageLoader("dataprep"), autoescape=True, trim_blocks=True)
    page = environment.get_template("report.html").render(
        title=title, facts=facts, charts=charts, tables=tables, players=players
    )
    return page.encode()


def write_report(
    out: Path, counts: Counts, sample_rate: int, parts: Sequence[PartInfo], table: pa.Table, drops: Sequence[Drop]
) -> FileInfo:
    """Writes the page of a data set; `table` holds the light columns of all its utterances."""
    seconds = np.array([samples_to_seconds(number, sample_rate) for number in table.column("num_samples").to_pylist()])
    rate = [
        len(symbols) / max(length, 1e-9)
        for symbols, length in zip(table.column("phonemes").to_pylist(), seconds, strict=True)
    ]
    level = [row["rms_dbfs"] for row in table.column("measures").to_pylist()]
    total = float(seconds.sum())
    facts = (
        Fact(name="utterances", value=f"{counts.utterances:,}"),
        Fact(name="of speech", value=duration(total)),
        Fact(name="speakers", value=f"{len(counts.by_speaker):,}"),
        Fact(name="dropped", value=f"{sum(counts.drops.values()):,} of {counts.rows:,}"),
    )
    charts = (
        histogram("Length in seconds", seconds, "s"),
        histogram("Level (root mean square), full scale = 0 dBFS", level, "dBFS"),
        histogram("Symbols per second", rate, "/s"),
    )
    tables = (
        _drops_by_reason(drops),
        _drops_listed(drops),
        _amounts("By split", counts.by_split),
        _amounts("By language", counts.by_language),
        _amounts("By speaker", counts.by_speaker),
        Listing(
            title="Warnings", header=("what", "how often"), rows=tuple((k, str(n)) for k, n in counts.warnings.items())
        ),
    )
    page = render("Prepared recordings", facts, charts, tables, _players(out, parts, table))
    return write_atomic(out / REPORT_NAME, page)


def write_failed_report(out: Path, num_rows: int, drops: Sequence[Drop]) -> FileInfo:
    """Writes the page of a run that dropped too much: what was dropped and why."""
    facts = (Fact(name="rows", value=f"{num_rows:,}"), Fact(name="dropped", value=f"{len(drops):,}"))
    tables = (_drops_by_reason(drops), _drops_listed(drops))
    return write_atomic(out / FAILED_REPORT_NAME, render("Too much was dropped", facts, (), tables, ()))


def duration(seconds: float) -> str:
    """A length as people say it: seconds, minutes or hours.

    >>> duration(12.34), duration(600), duration(9000)
    ('12.3 s', '10.0 min', '2.50 h')
    """
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.2f} h"


def histogram(title: str, values: ArrayLike, unit: str) -> Chart:
    """Thirty bars over the range of `values`."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return Chart(title=title, bars=(), low="", high="")
    heights, edges = np.histogram(array, bins=30)
    scale = 120 / heights.max()
    bars = tuple(
        Bar(
            x=round(20.0 * place + 1, 1), y=round(125 - scale * height, 2), width=18.0, height=round(scale * height, 2),
            label=f"{edges[place]:.2f} to {edges[place + 1]:.2f} {unit}: {height}",
        )
        for place, height in enumerate(heights.tolist())
    )  # fmt: skip
    low, high = f"{array.min():.2f} {unit}", f"{array.max():.2f} {unit}"
    return Chart(title=f"{title}; the highest bar is {heights.max()}", bars=bars, low=low, high=high)


def _guesses(table: pa.Table) -> Listing:
    columns = [table.column(name).to_pylist() for name in ("id", "text", "warnings", "phonemes")]
    rows = [
        (name, text, ", ".join(warnings), " ".join(phonemes))
        for name, text, warnings, phonemes in zip(*columns, strict=True)
        if warnings
    ]
    note = "A guessed word is in no lexicon: its phonemes were worked out from its letters. Read them, and respell it."
    return Listing(
        title="Texts with a guess in them",
        header=("id", "text", "what", "phonemes"),
        rows=tuple(rows[:_MAX_DROPS_SHOWN]),
        note=note if rows else "",
    )


def _drops_by_reason(drops: Sequence[Drop]) -> Listing:
    reasons = sorted({drop.reason.value for drop in drops})
    groups = [(reason, [drop for drop in drops if drop.reason.value == reason]) for reason in reasons]
    rows = tuple((reason, str(len(some)), some[0].message) for reason, some in groups)
    return Listing(title="Dropped, by reason", header=("reason", "how many", "for example"), rows=rows)


def _drops_listed(drops: Sequence[Drop]) -> Listing:
    ordered = sorted(drops, key=lambda drop: (drop.line, drop.path, drop.reason))
    rows = tuple((str(d.line or ""), d.path, d.reason.value, d.message) for d in ordered[:_MAX_DROPS_SHOWN])
    more = len(ordered) - len(rows)
    note = f"{more} more stand in drops.parquet." if more else ""
    return Listing(title="Dropped, one by one", header=("line", "path", "reason", "message"), rows=rows, note=note)


def _amounts(title: str, amounts: dict[str, Amount]) -> Listing:
    rows = tuple((name, f"{a.utterances:,}", duration(a.seconds)) for name, a in amounts.items())
    return Listing(title=title, header=("name", "utterances", "length"), rows=rows[:_MAX_DROPS_SHOWN])


def _players(out: Path, parts: Sequence[PartInfo], table: pa.Table) -> tuple[Player, ...]:
    """Shortest, longest, quietest, loudest, and two between: where faults are heard first."""
    if table.num_rows == 0:
        return ()
    samples = table.column("num_samples").to_numpy()
    level = np.array([row["rms_dbfs"] for row in table.column("measures").to_pylist()])
    order = np.argsort(samples, kind="stable")
    picks = {
        "shortest": int(order[0]), "a third of the way": int(order[len(order) // 3]),
        "two thirds": int(order[2 * len(order) // 3]), "longest": int(order[-1]),
        "quietest": int(np.argmin(level)), "loudest": int(np.argmax(level)),
    }  # fmt: skip
    players: list[Player] = []
    for name, place in list(picks.items())[:_PLAYERS]:
        part = parts[table.column("part")[place].as_py()]
        row = table.column("row")[place].as_py()
        utterance = read_part(out / part.name, ("id", "text", "audio"), memory_map=True).slice(row, 1).to_pylist()[0]
        source = "data:audio/flac;base64," + base64.b64encode(utterance["audio"]).decode()
        players.append(Player(name=f"{name}: {utterance['id']}", text=utterance["text"], source=source))
    return tuple(players)
