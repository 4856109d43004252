"""A run killed with `kill -9` on two ranks goes on with one, and then with three: each utterance once."""

import json
import os
import signal
import subprocess
import time

import torch

from tests.helpers.corpora import BIN, make_corpus, tool

STEPS = 24
OPTIONS = [
    *("--config", "tiny", "--data.max_frames", "400", "--trainer.max_steps", str(STEPS), "--audit"),
    *("--trainer.val_check_interval", "3", "--trainer.enable_progress_bar", "false", "--trainer.accelerator", "cpu"),
]


def checkpoints(folder):
    return sorted(folder.glob("runs/*/checkpoints/last.ckpt"), key=lambda path: path.stat().st_mtime)


def steps_of(path):
    return torch.load(path, weights_only=True)["global_step"]


def start_and_kill(folder, shards, *options):
    """Trains until the run's first checkpoint, then kills every process of it; returns its folder."""
    before = set(checkpoints(folder))
    process = subprocess.Popen(
        [BIN / "trainer", "fit", shards, *OPTIONS, *options], cwd=folder, start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 180
    while not set(checkpoints(folder)) - before and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    told = process.communicate(timeout=60)[1]
    (new,) = set(checkpoints(folder)) - before or [told]
    assert steps_of(new) < STEPS, "ended before it was killed"
    return new.parent.parent


def test_killed_on_two_ranks_then_on_one_and_ended_on_three(tmp_path):
    corpus = make_corpus(tmp_path, 48)
    tool("dataprep", "ingest", "wavs", "--split", "0.8,0.2,0", cwd=corpus)
    tool("dataprep", "shard", cwd=corpus)
    shards, folder = corpus / "shards", tmp_path / "work"
    folder.mkdir()

    first = start_and_kill(folder, shards, "--trainer.devices", "2", "--trainer.strategy", "ddp")
    second = start_and_kill(folder, shards, "--trainer.devices", "1", "--ckpt_path", first)
    assert steps_of(first / "checkpoints" / "last.ckpt") < steps_of(second / "checkpoints" / "last.ckpt")
    ended = tool(
        "trainer", "fit", shards, *OPTIONS, "--trainer.devices", "3", "--trainer.strategy", "ddp",
        "--ckpt_path", second, cwd=folder,
    )  # fmt: skip
    third = checkpoints(folder)[-1].parent.parent
    assert steps_of(third / "checkpoints" / "last.ckpt") == STEPS, ended.stderr

    shown = tool("trainer", "audit", third, cwd=folder).stdout
    verdicts = json.loads(tool("trainer", "audit", third, "--json", cwd=folder).stdout)
    epochs = verdicts["epochs"] if isinstance(verdicts, dict) else verdicts
    assert epochs, shown
    assert all(epoch["proven"] for epoch in epochs), shown
    assert "exactly once" in shown
