import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.cli import main
from trainer.commands.configs import FOLDER
from trainer.model.config import BASE, TINY

ROOT = Path(__file__).parents[2]
SMALL = [
    "--model.model.encoder_channels", "8", "--model.model.encoder_blocks", "1", "--model.model.decoder_channels", "8",
    "--model.model.decoder_blocks", "1", "--model.model.duration_channels", "8", "--data.max_frames", "150",
    "--data.num_workers", "0", "--trainer.enable_progress_bar", "false",
]  # fmt: skip


def trainer(*arguments, cwd):
    """Runs the command as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "trainer", *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "shards"
    return make_shard_set(folder, train=made_frames(20), validation=made_frames(4, 1))


@pytest.fixture(scope="module")
def run(shards):
    """A run of four steps."""
    done = trainer(
        "fit", shards, *SMALL, "--trainer.max_steps", 4, "--trainer.val_check_interval", 2,
        "--trainer.log_every_n_steps", 1, cwd=shards.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder,) = (shards.parent / "runs").iterdir()
    return folder, done


def test_help_is_quick_and_imports_nothing_heavy():
    code = "import sys, trainer.cli; print({'torch', 'pytorch_lightning', 'dask', 'librosa'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "set()\n"
    took = []
    for _ in range(3):  # the best of three, since other tests run beside this one
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "trainer", "--help"], capture_output=True, check=True, cwd=ROOT)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.5


def test_plan_needs_no_torch(shards):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        f"from trainer.cli import main; main(['plan', {str(shards)!r}, '--json'], standalone_mode=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout)["utterances"] == 20


def test_plan_as_json_and_as_a_table(shards, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # on two GPUs, a step would be two micro-batches
    result = CliRunner().invoke(main, ["plan", str(shards), "--ranks", "2", "--max-frames", "58", "--json"])
    figures = json.loads(result.stdout)
    assert figures["steps"] * 2 == figures["micro_batches"]
    assert figures["max_frames"] <= 58
    assert figures["settings"]["max_frames"] == 58
    assert {
        "utterances", "steps", "micro_batches", "ranks", "padding_share", "expected_wait", "max_frames", "max_symbols",
        "max_batch_size", "overlong",
    } <= figures.keys()  # fmt: skip
    listed = CliRunner().invoke(main, ["plan", str(shards), "--max-frames", "40"])
    assert listed.exit_code == 0
    assert "over a limit by themselves: train-" in listed.stdout
    assert "waiting" not in listed.stdout
    assert listed.stdout.endswith(f"next: trainer fit {shards} --data.max_frames 40\n")
    shared = CliRunner().invoke(main, ["plan", str(shards), "--config", "tiny", "--ranks", "8", "--max-frames", "60"])
    assert "waiting" in shared.stdout
    assert "note: ranks wait long" in shared.stdout
    options = "--config tiny --data.max_frames 60 --data.group_size 8"
    assert shared.stdout.endswith(f"next: trainer fit {shards} {options}\n")
    refused = CliRunner().invoke(main, ["plan", str(shards), "--max-frames", "40", "--overlong", "error"])
    assert (refused.exit_code, refused.stderr[:7]) == (2, "error: ")


@pytest.mark.parametrize("command", ["plan", "fit"])
def test_a_prepared_data_set_is_not_a_shard_set(tmp_path, command):
    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared" / "dataset.json").touch()
    done = trainer(command, "prepared", cwd=tmp_path)
    assert done.returncode == 2
    assert "error: prepared: this is a prepared data set" in done.stderr
    assert "next: dataprep shard prepared\n" in done.stderr


def test_an_empty_training_split_is_an_empty_plan(tmp_path):
    folder = make_shard_set(tmp_path, train=[], validation=[20])
    result = CliRunner().invoke(main, ["plan", str(folder)])
    assert result.exit_code == 0
    assert "the plan is empty" in result.stdout
    assert json.loads(CliRunner().invoke(main, ["plan", str(folder), "--json"]).stdout)["steps"] == 0


def test_fit_leaves_a_run_and_says_what_comes_next(run):
    folder, done = run
    names = {path.name for path in folder.iterdir()}
    assert {"checkpoints", "config.yaml"} <= names
    assert any(name.startswith("events.out.tfevents") for name in names)
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {"last.ckpt", "best.ckpt"}
    assert f"trainer synthesize runs/{folder.name} --text" in done.stdout
    assert "configuration: " in done.stderr


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_of_fit_lists_every_option(tmp_path, option):
    done = trainer("fit", option, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for told in (
        "fit SHARDS... [OPTIONS]",
        "--probe",
        "--audit",
        "--reset-data",
        "--data.temperature",
        "--print_config",
        "--trainer.max_time",
        "Width of the encoder.",
        "folder of a run",
    ):
        assert told in done.stdout
    assert not list(tmp_path.iterdir())


def test_fit_says_how_long_it_will_be_and_little_else(run):
    _, done = run
    assert "(at most 4 steps or 00:00:20:00; Ctrl-C ends it with a checkpoint)" in done.stderr
    for noise in ("Tip", "TPU", "FLOPs", "num_workers"):
        assert noise not in done.stderr + done.stdout


def test_fit_goes_on_with_the_run_s_own_configuration(run, shards):
    folder, _ = run
    done = trainer("fit", shards, "--ckpt_path", folder, "--trainer.max_steps", 6, cwd=folder.parent.parent)
    assert done.returncode == 0, done.stderr
    assert "trained 2 steps (6 in all)" in done.stdout
    assert "goes on after step 4; at most 6 steps" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "had already reached its max_steps 4"),
        (["--trainer.max_time", "00:00:00:00"], "had already used its max_time 00:00:00:00"),
    ],
)
def test_a_run_at_its_limit_does_not_go_on(run, shards, tmp_path, options, message):
    done = trainer("fit", shards, "--ckpt_path", run[0], *options, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "counted from the run's first start" in done.stderr
    assert not list(tmp_path.rglob("*.yaml"))


def test_a_refused_run_leaves_no_folder(run, shards, tmp_path):
    done = trainer(
        "fit", shards, "--ckpt_path", run[0], "--trainer.max_steps", 9, "--data.max_frames", 99, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "max_frames was 150, is 99" in done.stderr
    assert not list(tmp_path.glob("runs/*"))


def test_an_interrupted_run_leaves_a_checkpoint_and_says_how_to_go_on(shards, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "trainer", "fit", str(shards), *SMALL, "--data.num_workers", "1",
         "--trainer.max_steps", "1000000"],
        cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("runs/*/checkpoints/best.ckpt")) and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: data workers get it too
    told, noise = process.communicate(timeout=60)
    assert process.returncode == 0, noise
    assert noise.count("stopping after this step") == 1
    assert "next: trainer synthesize" in told
    assert list(tmp_path.glob("runs/*/checkpoints/last.ckpt"))


def test_samples_are_written_for_tensorboard(run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run[0]), size_guidance={"images": 0, "audio": 0, "scalars": 0}).Reload()
    tags = events.Tags()
    assert any(tag.endswith("/alignment") for tag in tags["images"])
    assert any(tag.endswith("/spoken") for tag in tags["audio"])
    assert {"val/loss", "train/learning_rate", "train/gradient_norm", "train/padding_share"} <= set(tags["scalars"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trainer.max_stepz", "6"], "no such option: --trainer.max_stepz\nnext: did you mean --trainer.max_steps?"),
        (["--trainer.max_steps", "six"], "trainer.max_steps"),
        (["--trainer.max_time", "20"], "--trainer.max_time is DD:HH:MM:SS, such as 00:00:20:00"),
        (["--config", "huge"], "no configuration 'huge'"),
        (["--ckpt_path", "nowhere.ckpt"], "nowhere.ckpt: no such checkpoint or run"),
        (["--model.model.kernel_size", "2"], "kernel_size = 2 must be odd"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(shards, arguments, message):
    done = trainer("fit", shards, *arguments, cwd=shards.parent)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_without_shards_is_told_and_leaves_nothing(tmp_path):
    done = trainer("fit", tmp_path / "nothing", cwd=tmp_path)
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_packaged_configurations_are_the_sizes_of_the_model():
    for name, config in (("tiny", TINY), ("base", BASE)):
        content = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
        assert content["model"]["model"] == dataclasses.asdict(config)


def test_an_option_with_hyphens_is_named_whole(shards, tmp_path):
    done = trainer("fit", shards, "--length-classes", 2, cwd=tmp_path)
    assert done.returncode == 2
    assert "error: no such option: --length-classes\nnext: did you mean --data.length_classes?" in done.stderr
