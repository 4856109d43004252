"""`trainer plan` beyond the figures of one set: several sets, lengths, pictures, the fit that it names."""

import dataclasses
import json
import shlex
import subprocess
import sys
import warnings

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.cli import main
from trainer.commands.data_config import data_config
from trainer.commands.plan import view_plan
from trainer.commands.plan_plot import draw_plan
from trainer.data.module import ShardDataModule
from trainer.data.plan import plan_epoch
from trainer.data.shapes import batch_shapes
from trainer.data.summary import summarize


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    return [
        str(make_shard_set(folder / "a b", train=made_frames(12))),
        str(make_shard_set(folder / "b", train=made_frames(8, 5), seed=3)),
    ]


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def invoke(*arguments):
    return CliRunner().invoke(main, ["plan", *map(str, arguments)])


def plan(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def next_arguments(shown):
    *_, last = shown.splitlines()
    prefix = "next: trainer fit "
    assert last.startswith(prefix)
    return shlex.split(last.removeprefix(prefix))


def module_of(arguments, config):
    """The data module that `trainer fit` would make of the command that a plan names."""
    shards = [argument for argument in arguments if not argument.startswith("--")][: arguments.index("--config")]
    pairs = dict(zip(arguments[len(shards) :: 2], arguments[len(shards) + 1 :: 2], strict=True))
    assert pairs.pop("--config") == str(config)
    section = yaml.safe_load(config.read_text())["data"] | {"num_workers": 0}
    section |= {name.removeprefix("--data."): yaml.safe_load(value) for name, value in pairs.items()}
    return ShardDataModule(**{**section, "shards": shards})


def test_several_sets_with_weights(folders):
    figures = json.loads(plan(*folders, "--weights", "0.5,2", "--json"))
    assert figures["utterances"] == 6 + 16
    assert [(one["utterances"], one["repeats"]) for one in figures["sets"]] == [(6, 0.5), (16, 2.0)]
    assert figures["hours"] == pytest.approx(sum(one["hours"] for one in figures["sets"]))
    shown = plan(*folders, "--weights", "0.5,2")
    assert "0.5 times" in shown
    assert "taken for the same speaker, since several sets have the name: ann, bob" in shown
    assert next_arguments(shown) == [*folders, "--data.weights", "[0.5,2]"]


def test_one_set_says_nothing_of_sets(folders):
    assert "Shard sets" not in plan(folders[0])
    assert "0.5 times" in plan(folders[0], "--weights", "0.5")


def test_temperature_keeps_the_length_of_an_epoch(folders):
    once, evened = (json.loads(plan(*folders, "--temperature", value, "--json")) for value in (1, 100))
    hours = [[one["hours"] for one in figures["sets"]] for figures in (once, evened)]
    assert sum(hours[0]) == pytest.approx(sum(hours[1]), rel=0.1)
    assert hours[1][0] == pytest.approx(hours[1][1], rel=0.15)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weights", "1"], "1 weights for 2 shard sets"),
        (["--weights", "1,2", "--temperature", "2"], "exclude each other"),
        (["--weights", "1;2"], "is not numbers with commas"),
        (["--length-classes", "3", "--ranks", "4"], "must be a multiple of length_classes = 3"),
        (["--plot", "plan.doc"], ".doc is no kind of picture"),
        (["--plot"], None),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_left(folders, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    result = invoke(*folders, *options)
    if message is None:
        assert [path.name for path in tmp_path.iterdir()] == ["plan.png"]
        return
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_no_shard_set_is_told():
    result = invoke()
    assert result.exit_code == 2
    assert "no shard set was given" in result.stderr


def test_lengths_and_largest(folders):
    figures = json.loads(plan(folders[0], "--max-frames", "100", "--json"))
    assert sum(one["utterances"] for one in figures["length_classes"]) == 12
    assert figures["most_frames"][0]["padded"] == figures["max_frames"]
    assert figures["most_symbols"][0]["padded"] == figures["max_symbols"]
    for batch in [*figures["most_frames"], *figures["most_symbols"]]:
        assert batch["utterances"] * batch["longest"] == batch["padded"]
    lengths = {f"train-{place:04d}": frames for place, frames in enumerate(made_frames(12))}
    assert all(lengths[batch["key"]] == batch["longest"] for batch in figures["most_frames"])
    shown = plan(folders[0])
    assert "micro-batches by longest" in shown
    assert figures["most_frames"][0]["key"] in plan(folders[0], "--max-frames", "100")


def test_a_repeated_overlong_utterance_is_listed_once(folders):
    figures = json.loads(plan(folders[0], "--weights", "3", "--max-frames", "50", "--json"))
    over = sum(frames > 50 for frames in made_frames(12))
    assert len(figures["overlong"]) == len(set(figures["overlong"])) == over > 0


@pytest.mark.parametrize(
    "options",
    [
        ["--weights", "0.5,2", "--ranks", "8", "--max-symbols", "90"],
        ["--temperature", "1.5", "--quadratic", "0.001", "--fixed", "2", "--jitter", "0.02", "--seed", "5"],
        ["--ranks", "1", "--window", "4", "--length-classes", "1", "--overlong", "drop", "--max-batch-size", "3"],
        [],
    ],
)
def test_the_fit_that_is_named_trains_as_was_shown(folders, tmp_path, options):
    config = tmp_path / "mine.yaml"
    config.write_text(yaml.safe_dump({"data": {"max_frames": 120, "temperature": 3, "jitter": 0.0, "group_size": 2}}))
    command = [*folders, "--config", config, *options]
    figures = json.loads(plan(*command, "--json"))
    module = module_of(next_arguments(plan(*command)), config)
    assert module.plan_settings.to_dict() == figures["settings"]
    assert list(module.locations) == folders
    assert (module._weights is None) != (module._temperature is None)
    view = view_plan(data_config(str(config), None, {}), folders, 0)
    assert (json.loads(plan(*folders, "--config", config, "--json"))["hours"]) == pytest.approx(view.hours)


def test_windows_and_classes_are_planned_as_they_are_trained(folders):
    options = ["--window", "4", "--ranks", "4", "--length-classes", "2", "--max-frames", "100"]
    figures = json.loads(plan(folders[0], *options, "--json"))
    settings = data_config(None, 4, {"window": 4, "length_classes": 2, "max_frames": 100}).settings
    frames = np.array(made_frames(12))
    symbols = np.maximum(frames // 4, 1)
    planned = plan_epoch(frames, symbols, settings, 0, np.array([0, 12]))
    assert summarize(planned, frames, symbols, settings).steps == figures["steps"]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_pictures_are_the_same_each_time(folders, tmp_path, suffix):
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = plan(*folders, "--plot", first)
        plan(*folders, "--plot", second)
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert first.read_bytes().startswith(starts[suffix])
    assert first.read_bytes() == second.read_bytes()
    assert f"plot: {first}" in shown.splitlines()


@pytest.mark.parametrize("num_rows", [0, 1, 60000])
def test_a_picture_of_few_and_of_many(folders, tmp_path, num_rows):
    frames = np.clip(np.random.default_rng(0).lognormal(6, 0.65, num_rows), 40, 2600).astype(np.int64)
    view = view_plan(data_config(None, 1, {"max_frames": 4000}), folders[:1], 0)
    made = plan_epoch(frames, frames // 7, view.settings, 0)
    figures = summarize(made, frames, frames // 7, view.settings)
    shapes = batch_shapes(made, frames, frames // 7)
    strange = [dataclasses.replace(one, location="普通话 $x^2$") for one in view.sets]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_plan(dataclasses.replace(view, summary=figures, shapes=shapes, sets=tuple(strange)), tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 10000


def test_a_picture_needs_no_screen_and_leaves_settings_alone(folders, tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from trainer.cli import main\n"
        f"main(['plan', {folders[0]!r}, '--plot', 'x.png'], standalone_mode=False)\n"
        "import matplotlib; assert matplotlib.rcParams['svg.hashsalt'] is None\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.png").is_file()
