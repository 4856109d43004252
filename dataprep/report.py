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
        Fact(name="hours", value=f"{total / 3600:.2f}"),
        Fact(name="speakers", value=f"{len(counts.by_speaker):,}"),
        Fact(name="dropped", value=f"{sum(counts.drops.values()):,} of {counts.rows:,}"),
    )
    charts = (
        histogram("Length in seconds", seconds, "s"),
        histogram("Level (root mean square) in dB below full scale", level, "dB"),
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
    return Chart(title=title, bars=bars, low=f"{array.min():.2f} {unit}", high=f"{array.max():.2f} {unit}")


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
    rows = tuple((name, f"{a.utterances:,}", f"{a.seconds / 60:.1f}") for name, a in amounts.items())
    return Listing(title=title, header=("name", "utterances", "minutes"), rows=rows[:_MAX_DROPS_SHOWN])


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
