"""What `trainer plan` takes from a configuration is what `trainer fit` would take."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dataprep.shards.cache import CacheSettings
from schemas.errors import UsageError
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.cli import main
from trainer.commands import data_config as module
from trainer.commands.data_config import data_config


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "num_gpus", lambda: 0)

    def write(**sections):
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(sections))
        return str(path)

    return write


def test_every_name_of_the_data(written):
    config = written(
        data={
            "shards": ["a", "s3://b/c"], "weights": [1, 0.5], "max_frames": 900, "quadratic": 0.001, "fixed": 3.0,
            "length_classes": 2, "window": 50, "jitter": 0.1, "group_size": 6, "cache_folder": "there",
            "cache_gigabytes": 2, "retry_seconds": 7, "seed": 3, "num_workers": 4, "reset_data": False,
        }
    )  # fmt: skip
    found = data_config(config, None, {})
    assert found.shards == ("a", "s3://b/c")
    assert (found.weights, found.temperature) == ((1.0, 0.5), None)
    settings = found.settings
    assert (settings.max_frames, settings.quadratic, settings.fixed, settings.window) == (900, 0.001, 3.0, 50)
    assert (settings.length_classes, settings.jitter, settings.ranks, settings.seed) == (2, 0.1, 6, 3)
    assert found.cache == CacheSettings(folder=Path("there"), max_bytes=2 * 10**9, retry_seconds=7.0)


def test_what_is_asked_for_goes_first(written):
    config = written(data={"shards": "one", "temperature": 2.0, "max_frames": 900, "group_size": 6})
    found = data_config(config, 4, {"weights": (1.0,), "max_frames": None, "seed": 9})
    assert (found.shards, found.weights, found.temperature, found.overruled) == (
        ("one",), (1.0,), None, ("temperature",),
    )  # fmt: skip
    assert (found.settings.ranks, found.settings.max_frames, found.settings.seed) == (4, 900, 9)
    assert data_config(config, 4, {"temperature": 3.0}).overruled == ()


@pytest.mark.parametrize(
    ("trainer", "gpus", "ranks"),
    [
        ({}, 0, 1),
        ({}, 4, 4),
        ({"accelerator": "cpu"}, 4, 1),
        ({"devices": 2, "accumulate_grad_batches": 3, "num_nodes": 2}, 4, 12),
        ({"devices": [0, 3]}, 4, 2),
        ({"devices": "auto", "accumulate_grad_batches": None}, 2, 2),
        ({"devices": -1}, 2, 2),
        ({"devices": "2"}, 8, 2),
    ],
)
def test_micro_batches_of_a_step_on_this_machine(written, monkeypatch, trainer, gpus, ranks):
    config = written(trainer=trainer)
    monkeypatch.setattr(module, "num_gpus", lambda: gpus)
    assert data_config(config, None, {}).settings.ranks == ranks


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"weights": "many"}, "weights = 'many'"),
        ({"shards": [1]}, "shards = 1"),
        ({"max_frames": 0}, "max_frames = 0"),
        ({"group_size": 3, "length_classes": 2}, "ranks = 3 must be a multiple of length_classes = 2"),
        ([1], "`data:` is not a section"),
    ],
)
def test_what_is_no_value_is_told(written, data, message):
    with pytest.raises(UsageError, match=message):
        data_config(written(data=data), None, {})


def test_shards_of_a_run_need_not_be_named_again(written, tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(9))
    config = written(data={"shards": str(folder), "max_frames": 100})
    shown = CliRunner().invoke(main, ["plan", "--config", config])
    assert shown.exit_code == 0, shown.output
    assert f"next: trainer fit {folder} --config {config}\n" in shown.stdout
