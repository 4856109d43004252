"""What is refused before anything is trained, each in one error that names all that is wrong."""

import math
import re
import resource
import signal

import pytest
import torch

from schemas.errors import FormatError, MachineError, UsageError
from tests.helpers.runs import SMALL, Saver, fit
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.callbacks import AtomicCheckpointIO
from trainer.commands.configs import read_config
from trainer.commands.data_config import data_config
from trainer.data.loader import leave_signals_to_the_parent
from trainer.data.module import ShardDataModule
from trainer.data.plan import PlanSettings
from trainer.lit import VoiceModule
from trainer.model.config import ModelConfig
from trainer.synth.checkpoint import read_checkpoint, require_resumable


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusals") / "shards"
    return make_shard_set(folder, train=made_frames(12), validation=[20, 30])


@pytest.fixture(scope="module")
def checkpoint(shards, tmp_path_factory):
    saver = Saver(tmp_path_factory.mktemp("saved"))
    fit(shards, callbacks=[saver], max_steps=2)
    return saver.saved[-1][0]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("learning_rate", -5.0), ("learning_rate", 0.0), ("learning_rate", math.nan), ("learning_rate", math.inf),
        ("warmup_steps", -1), ("schedule", "cosine"), ("weight_decay", -0.1), ("ema_decay", 2.0), ("ema_decay", -0.1),
        ("ema_decay", math.nan), ("seed", -1), ("max_skipped_steps", -1),
    ],
)  # fmt: skip
def test_options_of_training(option, value):
    with pytest.raises(UsageError, match=f"training: {option} = .* must be"):
        VoiceModule(SMALL, **{option: value})


def test_all_that_is_wrong_is_told_at_once(shards):
    with pytest.raises(UsageError, match=r"learning_rate = -1.*warmup_steps = -1.*ema_decay = 2"):
        VoiceModule(SMALL, learning_rate=-1, warmup_steps=-1, ema_decay=2)
    with pytest.raises(UsageError, match=r"max_frames = 0 .*jitter = 2 .*num_workers = -1 .*group_size = 0 "):
        ShardDataModule(str(shards), max_frames=0, jitter=2, num_workers=-1, group_size=0)


@pytest.mark.parametrize("wrong", [{"group_size": 0}, {"group_size": -2}, {"num_workers": -1}], ids=str)
def test_options_of_the_data(shards, wrong):
    (name,) = wrong
    with pytest.raises(UsageError, match=f"data: {name} = "):
        ShardDataModule(str(shards), **wrong)


@pytest.mark.parametrize("value", ["many", 1.5, True, 2**63, [1], None], ids=str)
def test_a_plan_s_settings_are_whole_numbers(value):
    with pytest.raises(UsageError, match=r"max_frames = .* must be a whole number"):
        PlanSettings(max_frames=value)
    with pytest.raises(UsageError, match="jitter"):
        PlanSettings(max_frames=9, jitter="0.1")


@pytest.mark.parametrize("name", ["guidance_strength", "sigma_min", "dropout"])
def test_sizes_are_numbers(name):
    with pytest.raises(UsageError, match=name):
        ModelConfig(**{name: math.nan})


def test_limits_that_drop_every_utterance(shards):
    data = ShardDataModule(str(shards), max_frames=10, overlong="drop")
    with pytest.raises(UsageError, match=r"all 12 utterances .* max_frames 10 .utterances have") as caught:
        fit(shards, data=data, max_steps=1)
    assert "--data.max_frames" in caught.value.hint
    data = ShardDataModule(str(shards), max_frames=1000, max_symbols=1, overlong="drop")
    with pytest.raises(UsageError, match="max_symbols 1 "):
        fit(shards, data=data, max_steps=1)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"RIFF\x24\x80\x00\x00WAVE", b"a: [1", b"a: 2001-99-99", b"\x00", b"- 1", b"data: 3"]
)
def test_a_configuration_that_is_none(tmp_path, content):
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"config\.yaml: "):
        data_config(str(path), 1, {})
    if content != b"data: 3":
        with pytest.raises(UsageError):
            read_config(path)


def without(content, path):
    """A copy of nested mappings without what lies at a path."""
    first, *rest = path
    copy = {name: value for name, value in content.items() if rest or name != first}
    if rest:
        copy[first] = without(content[first], rest)
    return copy


@pytest.mark.parametrize(
    "path",
    [
        ["loops"], ["loops", "fit_loop"], ["loops", "fit_loop", "epoch_progress"], ["optimizer_states"],
        ["loops", "fit_loop", "epoch_loop.batch_progress", "total"], ["state_dict"], ["ema"], ["ema", "parameters"],
        ["hyper_parameters"], ["hyper_parameters", "model"], ["skipped_steps"], ["voxloom"], ["lr_schedulers"],
        ["ShardDataModule"], ["epoch"], ["global_step"], ["pytorch-lightning_version"],
    ],
    ids=".".join,
)  # fmt: skip
def test_training_cannot_go_on_without(shards, checkpoint, tmp_path, path):
    content = without(read_checkpoint(checkpoint), path)
    with pytest.raises(FormatError, match=re.escape(f"has no '{'.'.join(path)}', so")):
        require_resumable(content, checkpoint)
    torch.save(content, tmp_path / "a.ckpt")
    with pytest.raises(FormatError):
        fit(shards, ckpt_path=tmp_path / "a.ckpt", plugins=[AtomicCheckpointIO()], max_steps=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [("optimizer_states", []), ("optimizer_states", [{}]), ("optimizer_states", None), ("skipped_steps", "no"),
     ("state_dict", {}), ("loops", 3), ("ema", {"num_updates": 0, "parameters": {}}), ("voxloom", {})],
)  # fmt: skip
def test_training_cannot_go_on_with(checkpoint, name, value):
    require_resumable(read_checkpoint(checkpoint), checkpoint)
    with pytest.raises(FormatError):
        require_resumable({**read_checkpoint(checkpoint), name: value}, checkpoint)


def test_a_checkpoint_that_does_not_fit_on_the_disk_leaves_the_last_as_it_was(tmp_path):
    path = tmp_path / "run" / "checkpoints" / "last.ckpt"
    plugin = AtomicCheckpointIO()
    plugin.save_checkpoint({"a": torch.zeros(3)}, path)
    before = path.read_bytes()
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(MachineError, match="could not be written: File too large") as caught:
            plugin.save_checkpoint({"a": torch.zeros(10**6)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert f"--ckpt_path {tmp_path / 'run'} continues" in caught.value.hint
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["last.ckpt"]


def test_another_error_of_saving_stays_what_it_is(tmp_path, monkeypatch):
    def broken(*_):
        raise RuntimeError("something else")

    monkeypatch.setattr(torch, "save", broken)
    with pytest.raises(RuntimeError, match="something else"):
        AtomicCheckpointIO().save_checkpoint({}, tmp_path / "a.ckpt")


def test_reading_processes_outlive_the_signals_of_the_group():
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        leave_signals_to_the_parent(0)
        assert {signal.getsignal(number) for number in before} == {signal.SIG_IGN}
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
