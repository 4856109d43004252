"""What cannot be read is left out, in lockstep; too much of it ends the run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pytorch_lightning.loggers.logger import Logger

from dataprep.shards.reader import ShardSet
from schemas.errors import TrainingError
from tests.helpers.runs import Saver, fit
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.data.module import ShardDataModule
from trainer.data.resume import read_state
from trainer.quarantine import Quarantine

TRAIN = 12


def flip(folder, row, member="mel"):
    """Flips a byte in the middle of a member of an utterance; returns its key."""
    shards = ShardSet(folder)
    path = folder / shards.manifest.shards[shards.value("shard", row)].name
    content = bytearray(path.read_bytes())
    content[shards.value(f"{member}_offset", row) + shards.value(f"{member}_size", row) // 2] ^= 1
    path.write_bytes(content)
    return shards.key(row)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_flipped_byte_costs_one_utterance_and_no_step(tmp_path, num_workers):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), validation=made_frames(3, 1))
    whole = fit(folder, max_epochs=2)
    keys = {flip(folder, 3), flip(folder, 7, "json")}
    data = ShardDataModule(str(folder), max_frames=150, num_workers=num_workers)
    with pytest.warns(UserWarning, match="left out: .*train-000000.tar: train-0003.mel differs from its checksum"):
        recorded = fit(folder, data=data, max_epochs=2, callbacks=[Quarantine(tmp_path)])
    first, again = ([step for step in recorded.steps if step.epoch == epoch] for epoch in (0, 1))
    assert len(first) == len([step for step in whole.steps if step.epoch == 0])
    for steps in (first, again):
        assert sorted(key for step in steps for key in step.keys if key) == sorted(
            {f"train-{place:04d}" for place in range(TRAIN)} - keys
        )
    # planned without them, the second epoch has no gaps
    assert len(data.selection_of(0)) == TRAIN
    assert len(data.selection_of(1)) == TRAIN - 2
    listed = [json.loads(line) for line in (tmp_path / "quarantine.jsonl").read_text().splitlines()]
    assert {item["key"] for item in listed} == keys
    assert {item["epoch"] for item in listed} == {0}


def test_the_quarantine_is_resumed(tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), validation=made_frames(3, 1))
    flip(folder, 3)
    saver = Saver(tmp_path)
    whole = fit(folder, max_epochs=3, callbacks=[Quarantine(), saver])
    path = next(path for path, _ in saver.saved if "-epoch.ckpt" in path.name)
    rest = fit(folder, max_epochs=3, callbacks=[Quarantine()], ckpt_path=path)
    assert rest.steps == [step for step in whole.steps if step.epoch > 0]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_vanished_shard_ends_the_run_with_the_list(tmp_path, num_workers):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), shard_utterances=6)
    (folder / "train-000001.tar").unlink()
    data = ShardDataModule(str(folder), max_frames=150, num_workers=num_workers, max_bad_samples=5)
    with pytest.raises(TrainingError, match=r"6 utterances could not be read, at most 5 may: .*No such file") as caught:
        fit(folder, data=data, max_epochs=2, callbacks=[Quarantine()])
    assert "--data.max_bad_samples" in caught.value.hint
    data = ShardDataModule(str(folder), max_frames=150, num_workers=num_workers, max_bad_samples=6)
    recorded = fit(folder, data=data, max_epochs=1, callbacks=[Quarantine()])
    assert sorted(key for step in recorded.steps for key in step.keys if key) == [f"train-{n:04d}" for n in range(6)]


def test_a_set_of_which_nothing_can_be_read_is_no_run(tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN))
    (folder / "train-000000.tar").unlink()
    with pytest.raises(TrainingError, match="none of the 12 utterances of the training split can be read"):
        fit(folder, max_epochs=3, callbacks=[Quarantine()])


def test_a_cut_tar_loses_what_is_behind_the_cut(tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN))
    shards = ShardSet(folder)
    os.truncate(folder / "train-000000.tar", shards.value("mel_offset", 8) + 10)
    recorded = fit(folder, max_epochs=1, callbacks=[Quarantine()])
    assert sorted(key for step in recorded.steps for key in step.keys if key) == [f"train-{n:04d}" for n in range(8)]


def test_a_bad_utterance_of_the_validation_split_is_told_and_left_out(tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), validation=made_frames(3, 1))
    flip(folder, TRAIN + 1)
    with pytest.warns(UserWarning, match="left out of the validation: .*validation-0001"):
        recorded = fit(folder, max_epochs=1, callbacks=[Quarantine()])
    assert len(recorded.validations) == 1


class Logged(Logger):
    """Keeps what was logged under names that end alike."""

    name, version = "logged", ""

    def __init__(self):
        self.counts = []

    def log_hyperparams(self, *_, **__):
        pass

    def log_metrics(self, metrics, step=None):
        self.counts += [(name, value, step) for name, value in metrics.items() if name.endswith("bad_samples")]


def test_a_checkpoint_from_within_a_validation_has_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr(Quarantine, "AGREE_EVERY_STEPS", 10**6)
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), validation=made_frames(3, 1))
    key = flip(folder, 3)
    flip(folder, TRAIN + 1)
    saver, logged = Saver(tmp_path), Logged()
    saver.on_train_batch_end = saver.on_train_epoch_start = lambda *_: None
    data = ShardDataModule(str(folder), max_frames=80, num_workers=0)
    fit(folder, data=data, max_epochs=1, val_check_interval=1, logger=logged, callbacks=[Quarantine(tmp_path), saver])
    lists = [
        [item.key for item in read_state(torch.load(path, weights_only=True)["ShardDataModule"]).quarantine]
        for path, _ in saver.saved
    ]
    assert lists[-1] == [key]
    (found,) = [step for name, _, step in logged.counts if name == "train/bad_samples"]
    assert [bool(one) for one in lists] == [step >= found for _, step in saver.saved]
    assert found < len(lists) - 2, "it was found before the end of the epoch"
    assert ("val/bad_samples", 1.0, 1) in logged.counts


def test_a_resumed_run_begins_with_the_list(tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN))
    flip(folder, 3)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    saver = Saver(tmp_path)
    fit(folder, max_epochs=1, callbacks=[Quarantine(tmp_path / "first"), saver])
    fit(folder, max_epochs=2, callbacks=[Quarantine(tmp_path / "second")], ckpt_path=saver.saved[-1][0])
    first, second = ((tmp_path / name / "quarantine.jsonl").read_text() for name in ("first", "second"))
    assert first == second


def train_on_two_ranks(folder, out, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "tests.helpers.ranks", str(folder), str(out), "2", *arguments],
        check=True, timeout=120, cwd=Path(__file__).parents[2], env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True,
    )  # fmt: skip


def test_two_ranks_end_together_with_the_list_of_both(tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN))
    keys = sorted(flip(folder, row) for row in range(11))
    train_on_two_ranks(folder, tmp_path, "10")
    first, second = ((tmp_path / f"error-{rank}.txt").read_text() for rank in (0, 1))
    assert first == second
    assert "11 utterances could not be read, at most 10 may" in first
    assert all(f"{key}.mel differs" in first for key in keys[:10])
    assert "and 1 more" in first


def test_rank_zero_tells_what_others_could_not_read_for_validation(tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), validation=[50, 50, 50, 50])
    keys = [flip(folder, TRAIN + row) for row in range(3)]
    told = train_on_two_ranks(folder, tmp_path).stderr
    for key in keys:
        assert told.count(f"left out of the validation: {folder}/validation-000000.tar: {key}.mel") == 1


def test_two_ranks_stay_in_lockstep(tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), validation=made_frames(3, 1))
    key = flip(folder, 3)
    train_on_two_ranks(folder, tmp_path)
    recorded = [json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in (0, 1)]
    assert len(recorded[0]["steps"]) == len(recorded[1]["steps"])
    for epoch in (0, 1):
        seen = [k for rank in recorded for at, keys in rank["steps"] if at == epoch for k in keys if k]
        assert sorted(seen) == sorted({f"train-{place:04d}" for place in range(TRAIN)} - {key})
