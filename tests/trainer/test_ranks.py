"""One rank, two and four take the same steps on the same utterances with the same gradients."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.helpers import ranks
from tests.helpers.shard_sets import made_frames, make_shard_set

TRAIN = 13


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    # five utterances for validation: more than two ranks can share evenly
    make_shard_set(folder / "shards", train=made_frames(TRAIN), validation=made_frames(5, 1))
    return folder


def launched(folder, num_ranks):
    out = folder / f"of-{num_ranks}"
    out.mkdir()
    subprocess.run(
        [sys.executable, "-m", "tests.helpers.ranks", str(folder / "shards"), str(out), str(num_ranks)],
        check=True, timeout=240, cwd=Path(__file__).parents[2], env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return out


@pytest.fixture(scope="module")
def two(folder):
    return launched(folder, 2)


@pytest.fixture(scope="module")
def four(folder):
    return launched(folder, 4)


@pytest.fixture(scope="module")
def one(folder):
    out = folder / "one"
    out.mkdir()
    return ranks.run(folder / "shards", out, 1)


@pytest.fixture(scope="module")
def recorded(two):
    return [json.loads((two / f"rank-{rank}.json").read_text()) for rank in (0, 1)]


def test_both_ranks_take_as_many_steps_and_together_see_every_utterance_once_an_epoch(recorded):
    assert len(recorded[0]["steps"]) == len(recorded[1]["steps"]) > 0
    for epoch in (0, 1):
        seen = [key for rank in recorded for step_epoch, keys in rank["steps"] if step_epoch == epoch for key in keys]
        assert sorted(seen) == [f"train-{place:04d}" for place in range(TRAIN)]


def test_steps_hold_the_same_utterances_on_one_rank(recorded, one):
    alone = [(step.epoch, step.keys) for step in one[0].steps]
    together = ranks.steps_by_group([(rank["steps"], 2) for rank in recorded])
    assert ranks.steps_by_group([(alone, 3)]) == together


def require_same_gradients(folder, num_ranks, wanted):
    for rank in range(num_ranks):
        gradients = torch.load(folder / f"gradients-{rank}.pt", weights_only=True)
        assert gradients.keys() == wanted.keys()
        for name, value in wanted.items():
            torch.testing.assert_close(gradients[name], value, rtol=1e-4, atol=1e-6, msg=lambda text, n=name: n + text)


def test_gradients_agree(two, one):
    require_same_gradients(two, 2, one[1])


def test_on_four_ranks_of_which_one_has_an_empty_slot(four, one):
    require_same_gradients(four, 4, one[1])
    recorded = [json.loads((four / f"rank-{rank}.json").read_text()) for rank in range(4)]
    alone = [(step.epoch, step.keys) for step in one[0].steps]
    assert ranks.steps_by_group([(rank["steps"], 1) for rank in recorded]) == ranks.steps_by_group([(alone, 3)])
    assert all(keys == [] for _, keys in recorded[3]["steps"])
    assert recorded[0]["validations"] == pytest.approx(one[0].validations, rel=1e-4)
    # the last group of an epoch may have fewer micro-batches than three, and those of a group are not of one size
    sizes = [sorted(len(rank["steps"][place][1]) for rank in recorded) for place in range(len(recorded[0]["steps"]))]
    assert len({tuple(step) for step in sizes}) > 1


def test_validation_is_the_same_for_any_number_of_ranks(recorded, one):
    assert recorded[0]["validations"] == recorded[1]["validations"]
    assert recorded[0]["validations"] == pytest.approx(one[0].validations, rel=1e-4)


def test_validation_of_fewer_utterances_than_ranks(tmp_path):
    make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), validation=[23])
    (tmp_path / "one").mkdir()
    alone, _ = ranks.run(tmp_path / "shards", tmp_path / "one", 1)
    out = launched(tmp_path, 2)
    recorded = [json.loads((out / f"rank-{rank}.json").read_text()) for rank in (0, 1)]
    assert recorded[0]["validations"] == recorded[1]["validations"] == pytest.approx(alone.validations, rel=1e-4)


def test_a_run_of_two_ranks_goes_on_with_one(two, one, folder):
    out = folder / "rest"
    out.mkdir()
    checkpoint = next(two.glob("*-1-batch.ckpt"))
    rest, _ = ranks.run(folder / "shards", out, 1, ckpt_path=checkpoint)
    assert rest.steps
    assert [step.keys for step in rest.steps] == [step.keys for step in one[0].steps[ranks.GROUP_SIZE :]]
    assert [step.loss for step in rest.steps] == pytest.approx([step.loss for step in one[0].steps[3:]], rel=1e-3)
