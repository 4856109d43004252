"""Writes the demo's page: the spoken sentence, recordings to compare, the curves of the run, and what was prepared.

python scripts/demo_report.py RUN WAV TEXT OUT
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import numpy as np
import soundfile
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator, ScalarEvent

from dataprep.report import Bar, Chart, Fact, Listing, Player, render
from dataprep.shards.atomic import write_atomic
from dataprep.shards.reader import ShardSet

CURVES = {
    "train/loss": "Loss in training: all parts together",
    "train/flow": "Flow loss in training: how well the mel is drawn",
    "val/loss": "Loss on recordings that were not trained on",
}


def curves(run: Path) -> list[Chart]:
    """The scalars of the run as bars over its steps; what was logged once is left out."""
    events = EventAccumulator(str(run))
    events.Reload()
    known = set(events.Tags()["scalars"])
    drawn = [curve(title, events.Scalars(tag)) for tag, title in CURVES.items() if tag in known]
    return [chart for chart in drawn if len(chart.bars) > 1]


def curve(title: str, points: list[ScalarEvent]) -> Chart:
    """At most sixty bars over the whole width, from zero up."""
    values = np.array([point.value for point in points])
    places = np.unique(np.linspace(0, len(points) - 1, 60).round().astype(int))
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 1e-6)
    heights = 120 * (values[places] - low) / (high - low)
    step = 600 / len(places)
    bars = tuple(
        Bar(
            x=round(number * step, 2), y=round(125 - height, 2), width=round(0.9 * step, 2), height=round(height, 2),
            label=f"step {points[place].step}: {values[place]:.3f}",
        )
        for number, (place, height) in enumerate(zip(places.tolist(), heights.tolist(), strict=True))
    )  # fmt: skip
    ends = [f"step {points[place].step}: {values[place]:.3f}" for place in (0, -1)]
    return Chart(title=title, bars=bars, low=ends[0], high=ends[1])


def player(name: str, text: str, content: bytes, kind: str) -> Player:
    """A sound that the page carries itself."""
    return Player(name=name, text=text, source=f"data:audio/{kind};base64," + base64.b64encode(content).decode())


def main(run: Path, wav: Path, text: str, out: Path) -> None:
    shards = ShardSet(Path("shards"))
    spoken = soundfile.info(wav)
    recordings = [
        player(f"recording: {shards.key(row)}", shards.read_info(row).text, shards.read_member("flac", row), "flac")
        for row in range(0, len(shards), max(1, len(shards) // 4))
    ][:4]
    manifest = shards.manifest
    facts = (
        Fact(name="utterances", value=str(len(shards))),
        Fact(
            name="minutes of speech",
            value=f"{shards.columns.samples.sum(dtype=np.int64) / manifest.feature_spec.sample_rate / 60:.1f}",
        ),
        Fact(name="seconds spoken by the voice", value=f"{spoken.duration:.2f}"),
    )
    places = (
        ("the voice", str(wav)),
        ("the run", str(run)),
        ("the shards", "shards/"),
        ("the prepared recordings", "prepared/report.html"),
    )
    listing = Listing(title="Files", header=("what", "where"), rows=places)
    players = [player("the voice", text, wav.read_bytes(), "wav"), *recordings]
    write_atomic(out, render("From recordings to a voice", facts, curves(run), [listing], players))


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
