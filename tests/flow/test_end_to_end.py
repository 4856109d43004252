"""The whole road as the README writes it, from wavs to a wav."""

import json
import shutil

import pyarrow as pa
import pytest
import soundfile
import torch

from tests.helpers.corpora import make_corpus, tool
from tests.helpers.recordings import DATA, needs_data

SHORT = ("--config", "tiny", "--trainer.max_steps", "3", "--trainer.enable_progress_bar", "false")


def walk(folder, *source, fit=SHORT):
    """The six commands; returns the run's folder."""
    tool("dataprep", "ingest", *source, "--sr", "22050", cwd=folder)
    tool("dataprep", "shard", "--format", "webdataset", cwd=folder)
    tool("dataprep", "validate", "shards/", cwd=folder)
    plan = json.loads(tool("trainer", "plan", "shards/", "--json", cwd=folder).stdout)
    assert plan["steps"] > 0
    tool("trainer", "fit", "shards/", *fit, cwd=folder)
    run = next((folder / "runs").iterdir())
    tool("trainer", "synthesize", run, "--text", "你好世界，hello world.", "--out", "hello.wav", cwd=folder)
    sound = soundfile.info(folder / "hello.wav")
    assert (sound.samplerate, sound.channels) == (22050, 1)
    assert sound.duration > 0.1
    return run


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    folder = make_corpus(tmp_path_factory.mktemp("road"), 40)
    return folder, walk(folder, "./wavs")


def test_made_recordings(walked):
    folder, run = walked
    assert (run / "checkpoints/last.ckpt").exists()
    assert list(run.glob("events.out.tfevents*"))
    plan = json.loads(
        tool("trainer", "plan", "shards/", "--ranks", "2", "--max-frames", "900", "--json", cwd=folder).stdout
    )
    assert {
        "utterances", "steps", "micro_batches", "ranks", "padding_share", "expected_wait", "max_frames", "max_symbols",
        "max_batch_size", "overlong",
    } <= set(plan)  # fmt: skip
    index = pa.ipc.open_file(folder / "shards/index.arrow").read_all()
    train = sum(split == "train" for split in index.column("split").to_pylist())
    assert plan["utterances"] + len(plan["excluded"]) == train


def test_a_checkpoint_is_enough_to_speak_from_and_holds_plain_types(walked, tmp_path):
    _, run = walked
    shutil.copy(run / "checkpoints/last.ckpt", tmp_path / "voice.ckpt")
    checkpoint = torch.load(tmp_path / "voice.ckpt", weights_only=True)
    header = checkpoint["voxloom"]
    assert header["speakers"] == ["ann", "bob"]
    assert header["feature_spec"]["name"] == "hifigan-22k"
    assert header["symbols"]["symbols"][0] == "_"
    for seed in ("1", "1", "2"):
        out = tmp_path / f"{seed}-{len(list(tmp_path.iterdir()))}.wav"
        tool("trainer", "synthesize", "voice.ckpt", "--text", "Hello.", "--speaker", "bob", "--seed", seed,
             "--steps", "4", "--out", out, cwd=tmp_path)  # fmt: skip
    first, second, other = (path.read_bytes() for path in sorted(tmp_path.glob("*.wav")))
    assert first == second != other


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--text", "Hello.", "--speaker", "an"), "next: did you mean ann? the speakers are: ann, bob\n"),
        (("--text", "……"), "next: give --text something to say"),
        (("--text", "Hello.", "--out", "hello.mp3"), "next: give --out hello.wav"),
        (("--text", "……"), "nothing"),
        (("--text", "Добрый день"), "script"),
        (("--text", "Hello.", "--steps", "0"), "--steps"),
        (("--txt", "Hello."), "--text"),
    ],
)
def test_what_cannot_be_spoken_is_told(walked, options, expected):
    folder, run = walked
    done = tool("trainer", "synthesize", run, *options, cwd=folder, check=False)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_no_checkpoint_and_a_misspelt_option_of_fit(walked, tmp_path):
    folder, _ = walked
    done = tool("trainer", "synthesize", "nowhere", "--text", "Hello.", cwd=tmp_path, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    done = tool("trainer", "fit", "shards", "--trainer.max_step", "3", cwd=folder, check=False)
    assert done.returncode == 2
    assert "--trainer.max_steps" in done.stderr
    assert "Traceback" not in done.stderr


@needs_data
def test_real_recordings_in_mandarin(tmp_path):
    run = walk(tmp_path, DATA / "corpora/zh_aishell3_44k/wavs", "--split", "1,0,0")
    assert run.is_dir()
