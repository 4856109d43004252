import io

import pytest
from rich.console import Console

from tests.helpers.runs import fit
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.data.module import ShardDataModule
from trainer.progress import RunProgress


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return make_shard_set(tmp_path_factory.mktemp("progress") / "shards", train=made_frames(12), validation=[20, 30])


def shown(shards, *, is_terminal, **flags):
    """What is drawn in a run of three steps."""
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=is_terminal, no_color=True, width=100)
    fit(shards, callbacks=[RunProgress(console)], max_steps=3, val_check_interval=1, **flags)
    return drawn.getvalue()


def test_a_terminal_shows_steps_of_the_limit_and_both_losses(shards, capsys):
    drawn = shown(shards, is_terminal=True)
    last = [line for line in drawn.splitlines() if "3/3" in line][-1]
    assert "train/loss" in last
    assert "val/loss" in last
    assert " parameters on cpu" in capsys.readouterr().err


def test_without_a_limit_there_is_no_total(shards):
    class Stop(RunProgress):
        def on_validation_end(self, trainer, pl_module):
            super().on_validation_end(trainer, pl_module)
            trainer.should_stop = True

    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, no_color=True, width=100)
    fit(shards, callbacks=[Stop(console)], max_epochs=-1, val_check_interval=1)
    assert "1/?" in drawn.getvalue()
    assert "-2" not in drawn.getvalue()


def test_a_pipe_shows_nothing(shards):
    assert shown(shards, is_terminal=False) == ""


def test_a_mix_says_what_it_takes_of_each_set(shards, tmp_path, capsys):
    other = make_shard_set(tmp_path / "other", train=[50] * 4, seed=1)
    data = ShardDataModule([str(shards), str(other)], weights=[0.5, 3.0], max_frames=150, num_workers=0)
    fit(None, data=data, callbacks=[RunProgress()], max_steps=1)
    told = capsys.readouterr().err.splitlines()
    assert f"epoch 0: 12 utterances, 0.00 hours of {other}, each comes 3 times" in told
    assert any(line.startswith("epoch 0: 6 utterances") for line in told)
    fit(shards, callbacks=[RunProgress()], max_steps=1)
    assert "epoch 0:" not in capsys.readouterr().err
