"""Memory that runs out on one of two gloo ranks: both take the same steps, and both know of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.helpers.runs import fit
from tests.helpers.scarce import Gradients, Scarce, data
from tests.helpers.shard_sets import made_frames, make_shard_set


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return make_shard_set(tmp_path_factory.mktemp("ranks") / "shards", train=made_frames(23), validation=[20, 30, 25])


def run(shards, out, fitting, scarce_rank=1):
    """What both ranks wrote."""
    subprocess.run(
        [sys.executable, "-m", "tests.helpers.scarce", str(shards), str(out), "2", str(scarce_rank), str(fitting)],
        check=True, timeout=120, cwd=Path(__file__).parents[2], env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return [json.loads((out / f"rank-{rank}.json").read_text()) for rank in (0, 1)]


def test_both_take_the_same_steps_with_the_gradients_of_enough_memory(shards, tmp_path):
    first, second = run(shards, tmp_path, 70)
    assert len(first["keys"]) == len(second["keys"]) > 4
    assert first["limit"] == second["limit"] < 150
    assert [text for text in first["warned"] if "on rank 1 with" in text]
    assert not second["warned"]
    gradients = Gradients()
    settings = {"accumulate_grad_batches": 3, "max_epochs": 1, "data": data(shards, group_size=3)}
    alone = fit(shards, module=Scarce(10**9), callbacks=[gradients], **settings)
    assert sorted(key for rank in (first, second) for keys in rank["keys"] for key in keys) == sorted(
        key for step in alone.steps for key in step.keys
    )
    for rank in (0, 1):
        mine = torch.load(tmp_path / f"gradients-{rank}.pt", weights_only=True)
        for name, wanted in gradients.steps[0].items():
            torch.testing.assert_close(mine[0][name], wanted, rtol=1e-3, atol=1e-6)
        for name, wanted in gradients.steps[-1].items():
            torch.testing.assert_close(mine[-1][name], wanted, rtol=2e-2, atol=1e-4)


def test_a_single_utterance_that_does_not_fit_ends_both(shards, tmp_path):
    ended = [rank["error"] for rank in run(shards, tmp_path, 25)]
    assert ended[0] == ended[1]
    assert ended[0][0].startswith("memory ran out on rank 1 with a single utterance: train-00")
