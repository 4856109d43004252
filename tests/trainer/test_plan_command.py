"""`trainer plan` beyond the figures of one set: several sets, lengths, pictures."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.cli import main
from trainer.commands.plan_plot import plot_shapes
from trainer.data.plan import PlanSettings, plan_epoch
from trainer.data.shapes import batch_shapes


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    return [
        str(make_shard_set(folder / "a", train=made_frames(12))),
        str(make_shard_set(folder / "b", train=made_frames(8, 5), seed=3)),
    ]


def plan(*arguments):
    result = CliRunner().invoke(main, ["plan", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_several_sets_with_weights(folders):
    figures = json.loads(plan(*folders, "--weights", "0.5,2", "--json"))
    assert figures["utterances"] == 6 + 16
    assert [(one["utterances"], one["repeats"]) for one in figures["sets"]] == [(6, 0.5), (16, 2.0)]
    shown = plan(*folders, "--weights", "0.5,2")
    assert "16 of" in shown
    assert shown.rstrip().endswith("--data.weights [0.5,2]'") or "--data.weights" in shown


def test_temperature_keeps_the_length_of_an_epoch(folders):
    once, evened = (json.loads(plan(*folders, "--temperature", value, "--json")) for value in (1, 100))
    hours = [[one["hours"] for one in figures["sets"]] for figures in (once, evened)]
    assert sum(hours[0]) == pytest.approx(sum(hours[1]), rel=0.1)
    assert hours[1][0] == pytest.approx(hours[1][1], rel=0.15)


def test_lengths_and_largest(folders):
    figures = json.loads(plan(folders[0], "--json"))
    assert sum(one["utterances"] for one in figures["length_classes"]) == 12
    assert figures["most_frames"][0]["padded"] == figures["max_frames"]
    assert figures["most_symbols"][0]["padded"] == figures["max_symbols"]
    assert figures["most_frames"][0]["key"].startswith("train-")
    assert "micro-batches with this longest" in plan(folders[0])


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_pictures(folders, tmp_path, suffix):
    path = tmp_path / f"plan{suffix}"
    plan(folders[0], "--plot", path)
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert path.read_bytes().startswith(starts[suffix])


def test_a_picture_of_many_batches(tmp_path):
    frames = np.clip(np.random.default_rng(0).lognormal(6, 0.65, 60000), 40, 2600).astype(np.int64)
    settings = PlanSettings(max_frames=4000)
    shapes = batch_shapes(plan_epoch(frames, frames // 7, settings, 0), frames, frames // 7)
    assert len(shapes.sizes) > 5000
    plot_shapes(shapes, settings, 86.13, "many", tmp_path / "many.png")
    assert (tmp_path / "many.png").stat().st_size > 10000


def test_another_kind_of_picture_is_refused(folders, tmp_path):
    result = CliRunner().invoke(main, ["plan", folders[0], "--plot", str(tmp_path / "plan.doc")])
    assert result.exit_code == 2
    assert ".doc is no kind of picture" in result.stderr
    assert not list(tmp_path.iterdir())
