"""`trainer fit`, killed with `kill -9` in mid-epoch and resumed, ends in the weights of a run that never stopped."""

import os
import signal
import subprocess
import time

import torch

from tests.helpers.corpora import BIN, make_corpus, tool

STEPS = 30
OPTIONS = [
    *("--config", "tiny", "--data.max_frames", "400", "--trainer.max_steps", str(STEPS)),
    *("--trainer.val_check_interval", "3", "--trainer.enable_progress_bar", "false"),
]


def last_checkpoint(folder):
    return next(iter(sorted(folder.glob("runs/*/checkpoints/last.ckpt"))), None)


def weights(path):
    content = torch.load(path, weights_only=True)
    assert content["global_step"] == STEPS
    return {**content["state_dict"], **{f"ema.{k}": v for k, v in content["ema"]["parameters"].items()}}


def test_killed_and_resumed_is_never_stopped(tmp_path):
    corpus = make_corpus(tmp_path, 48)
    tool("dataprep", "ingest", "wavs", "--split", "0.8,0.2,0", cwd=corpus)
    tool("dataprep", "shard", cwd=corpus)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    tool("trainer", "fit", corpus / "shards", *OPTIONS, cwd=whole)

    process = subprocess.Popen(
        [BIN / "trainer", "fit", corpus / "shards", *OPTIONS], cwd=killed, start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while last_checkpoint(killed) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    run = last_checkpoint(killed).parent.parent
    assert torch.load(last_checkpoint(killed), weights_only=True)["global_step"] < STEPS

    tool("trainer", "fit", corpus / "shards", *OPTIONS, "--ckpt_path", run, cwd=killed)
    resumed = max(killed.glob("runs/*/checkpoints/last.ckpt"), key=lambda path: path.stat().st_mtime)
    expected, found = weights(last_checkpoint(whole)), weights(resumed)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
