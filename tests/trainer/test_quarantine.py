"""What cannot be read is left out, in lockstep; too much of it ends the run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataprep.shards.reader import ShardSet
from schemas.errors import TrainingError
from tests.helpers.runs import Saver, fit
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.data.module import ShardDataModule
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


def test_two_ranks_stay_in_lockstep(tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), validation=made_frames(3, 1))
    key = flip(folder, 3)
    subprocess.run(
        [sys.executable, "-m", "tests.helpers.ranks", str(folder), str(tmp_path), "2"],
        check=True, timeout=120, cwd=Path(__file__).parents[2], env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    recorded = [json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in (0, 1)]
    assert len(recorded[0]["steps"]) == len(recorded[1]["steps"])
    for epoch in (0, 1):
        seen = [k for rank in recorded for at, keys in rank["steps"] if at == epoch for k in keys if k]
        assert sorted(seen) == sorted({f"train-{place:04d}" for place in range(TRAIN)} - {key})
