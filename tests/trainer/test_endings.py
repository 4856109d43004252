"""How `trainer fit` is refused, and how it ends when it is ended from outside."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from schemas.errors import MachineError, UsageError
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.commands.endings import told_endings
from trainer.commands.fit import fit
from trainer.commands.run_folder import _reserved, run_folder

ROOT = Path(__file__).parents[2]
SMALL = [
    "--model.model.encoder_channels", "8", "--model.model.encoder_blocks", "1", "--model.model.decoder_channels", "8",
    "--model.model.decoder_blocks", "1", "--model.model.duration_channels", "8", "--data.max_frames", "150",
    "--trainer.enable_progress_bar", "false", "--config", "tiny",
]  # fmt: skip


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("endings") / "shards"
    return make_shard_set(folder, train=made_frames(20), validation=made_frames(4, 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trainer.devices", "x", "--trainer.accelerator", "cpu"], "devices"),
        (["--trainer.devices", "-1", "--trainer.accelerator", "cpu"], "devices"),
        (["--trainer.accelerator", "foo"], "accelerator='foo'"),
        (["--trainer.strategy", "foo"], "strategy='foo'"),
        (["--seed_everything", "-1"], "--seed_everything: -1"),
        (
            ["--trainer.gradient_clip_val", "-1", "--trainer.accumulate_grad_batches", "0"],
            "accumulate.*; .*clip_val -1",
        ),
        (["--data.num_workers", "-1"], "num_workers = -1"),
        (["--data.group_size", "0"], "group_size = 0"),
        (["--model.ema_decay", "2", "--model.warmup_steps", "-1"], "warmup_steps = -1 .*; ema_decay = 2"),
        (["--model.learning_rate", "-5"], "learning_rate = -5"),
        (["--data.overlong", "drop", "--data.max_frames", "10"], "overlong = drop leaves none"),
    ],
    ids=str,
)
def test_a_senseless_option_is_one_error_and_leaves_nothing(shards, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        fit([str(shards), *SMALL, "--data.num_workers", "0", *arguments])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a: [1", b"- 1"])
def test_a_configuration_that_is_none_is_refused_by_name(shards, tmp_path, content):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"mine\.yaml: "):
        fit([str(shards), "--config", str(path)])


def test_runs_of_one_second_have_folders_of_their_own(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(_reserved, [tmp_path / "runs"] * 32))
    assert len(set(folders)) == 32


def test_an_unused_folder_is_gone_and_a_used_one_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with run_folder() as (first, is_handed_down):
        assert not is_handed_down
        with run_folder() as again:
            assert again == (first, True)
    assert not list(tmp_path.iterdir())
    with run_folder() as (second, _):
        (second / "config.yaml").touch()
    assert second.is_dir()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    Path("runs").touch()
    with pytest.raises(FileExistsError), run_folder():
        pass


def test_only_a_lost_worker_is_the_machine_s_fault(tmp_path):
    with pytest.raises(MachineError, match="lost") as caught, told_endings("shards", tmp_path, is_first_rank=True):
        raise RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. ")
    assert caught.value.hint == "start it again: it had no checkpoint yet"
    with pytest.raises(RuntimeError, match="shape"), told_endings("shards", tmp_path, is_first_rank=True):
        raise RuntimeError("shape")


def children(pid):
    """Process ids of the processes that a process has started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(number) for number in listed.read_text().split()]


class Running:
    """A long run in a process group of its own, whose output is read until it ends."""

    def __init__(self, shards, cwd):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trainer", "fit", str(shards), *SMALL, "--data.num_workers", "2",
             "--trainer.max_steps", "1000000", "--trainer.val_check_interval", "5"],
            cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.timer = threading.Timer(100, self.process.kill)
        self.timer.start()
        while self.process.poll() is None and not (
            list(cwd.glob("runs/*/checkpoints/last.ckpt")) and children(self.process.pid)
        ):
            time.sleep(0.05)

    def end(self):
        """Exit status and what was written to standard error."""
        _, noise = self.process.communicate()
        self.timer.cancel()
        return self.process.returncode, noise


@pytest.mark.parametrize("whole_group", [False, True])
def test_a_terminated_run_says_so_and_goes_on(shards, tmp_path, whole_group):
    running = Running(shards, tmp_path)
    (last,) = tmp_path.glob("runs/*/checkpoints/last.ckpt")
    before = last.stat().st_mtime_ns
    if whole_group:
        os.killpg(running.process.pid, signal.SIGTERM)
    else:
        running.process.terminate()
    status, noise = running.end()
    run = last.parent.parent.relative_to(tmp_path)
    assert status == 143, noise
    assert "Traceback" not in noise
    told = f"error: terminated\nnext: trainer fit {shards} --ckpt_path {run} continues from its last checkpoint\n"
    assert noise.endswith(told)
    assert last.stat().st_mtime_ns > before


def test_a_killed_reading_process_is_one_error(shards, tmp_path):
    running = Running(shards, tmp_path)
    while running.process.poll() is None:
        for child in children(running.process.pid):
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue  # its epoch was over
        time.sleep(0.01)
    status, noise = running.end()
    assert status == 1, noise
    assert "error: a process that reads data was lost" in noise
    # torch may print ignored exceptions of its loader's destructor beside it, which are none of ours to catch
