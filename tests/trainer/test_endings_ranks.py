"""How `trainer fit` on two ranks ends when one of them, or both, are told to end or are killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from tests.helpers.shard_sets import made_frames, make_shard_set
from tests.trainer.test_endings import ROOT, SMALL, children

LOST = "error: another process of this run is gone"


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("endings") / "shards"
    return make_shard_set(folder, train=made_frames(20), validation=made_frames(4, 1))


class TwoRanks:
    """A long run of two ranks in a session of its own, once it has a checkpoint and takes steps."""

    def __init__(self, shards, cwd, *options, workers=0):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trainer", "fit", str(shards), *SMALL, "--data.num_workers", str(workers),
             "--trainer.accelerator", "cpu", "--trainer.devices", "2", "--trainer.max_steps", "1000000",
             "--trainer.val_check_interval", "5", *options],
            cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.timer = threading.Timer(120, lambda: os.killpg(self.process.pid, signal.SIGKILL))
        self.timer.start()
        while self.process.poll() is None and not list(cwd.glob("runs/*/checkpoints/last.ckpt")):
            time.sleep(0.05)
        time.sleep(0.5)
        self.second = next(pid for pid in children(self.process.pid) if b"trainer" in command(pid))

    def end(self):
        """Exit status, what was written to standard error, and processes that are left."""
        _, noise = self.process.communicate()
        self.timer.cancel()
        deadline = time.monotonic() + 20
        while (left := of_session(self.process.pid)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return self.process.returncode, noise, left


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""  # it has ended since it was listed


def of_session(session):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.parametrize("who", ["first", "second", "all"])
def test_sigterm_to_any_rank_ends_both_with_a_checkpoint(shards, tmp_path, who):
    running = TwoRanks(shards, tmp_path, workers=1 if who == "all" else 0)
    (last,) = tmp_path.glob("runs/*/checkpoints/last.ckpt")
    if who == "all":
        os.killpg(running.process.pid, signal.SIGTERM)
    else:
        os.kill(running.process.pid if who == "first" else running.second, signal.SIGTERM)
    told_at = time.time()
    status, noise, left = running.end()
    assert (status, left) == (143, []), noise
    assert "Traceback" not in noise
    run = last.parent.parent.relative_to(tmp_path)
    ending = f"error: terminated\nnext: trainer fit {shards} --ckpt_path {run} continues from its last checkpoint\n"
    assert noise.count("error: ") == 1
    assert ending in noise
    assert last.stat().st_mtime > told_at
    assert torch.load(last, weights_only=True)["global_step"] > 0


def test_ctrl_c_ends_both_after_a_step(shards, tmp_path):
    running = TwoRanks(shards, tmp_path)
    os.killpg(running.process.pid, signal.SIGINT)
    status, noise, left = running.end()
    assert (status, left) == (0, []), noise
    assert noise.count("stopping after this step") == 1
    assert "Traceback" not in noise


@pytest.mark.parametrize("who", ["first", "second"])
def test_a_killed_rank_ends_the_other_in_two_lines(shards, tmp_path, who):
    running = TwoRanks(shards, tmp_path, workers=1)
    os.kill(running.process.pid if who == "first" else running.second, signal.SIGKILL)
    began = time.monotonic()
    status, noise, left = running.end()
    assert left == []
    assert status == (-signal.SIGKILL if who == "first" else 1), noise
    assert noise.count(LOST) == 1, noise
    assert "continues from its last checkpoint" in noise
    assert time.monotonic() - began < 25


def test_other_devices_take_the_step_groups_of_the_first_start(shards, tmp_path):
    options = [*SMALL, "--data.num_workers", "0", "--trainer.val_check_interval", "5", "--trainer.accelerator", "cpu"]

    def fit(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "trainer", "fit", str(shards), *options, *arguments], check=True, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        )  # fmt: skip

    fit("--trainer.max_steps", "2", "--trainer.accumulate_grad_batches", "3")
    (run,) = (tmp_path / "runs").iterdir()
    done = fit("--trainer.max_steps", "4", "--trainer.devices", "2", "--ckpt_path", str(run))
    assert "step groups of 3 micro-batches on 2 ranks: 2 each, 1 of 4 slots empty" in done.stderr
    newest = max((tmp_path / "runs").glob("*/checkpoints/last.ckpt"), key=lambda path: path.stat().st_mtime)
    state = torch.load(newest, weights_only=True)["ShardDataModule"]
    assert json.dumps(state["plan_settings"]["ranks"]) == "3"
