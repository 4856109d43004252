"""A run that was stopped anywhere and resumed goes on as if it had not been, bit for bit, on one rank."""

import pytest
import torch

from schemas.checkpoint import PlanState, VoiceHeader
from schemas.errors import IdentityError
from tests.helpers.runs import Saver, fit
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.data.module import ShardDataModule

FLAGS = [
    {},
    {"accumulate_grad_batches": 2},
    {"limit_val_batches": 0},
    {"val_check_interval": 2},
    {"max_epochs": -1, "max_steps": 8},
]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume") / "shards"
    return make_shard_set(folder, train=made_frames(12), validation=made_frames(4, 1))


@pytest.mark.parametrize("flags", FLAGS, ids=lambda flags: "-".join(map(str, flags)) or "plain")
def test_from_every_hook_the_rest_is_the_same(shards, tmp_path, flags):
    flags = {"max_epochs": 2, **flags}
    saver = Saver(tmp_path)
    whole = fit(shards, callbacks=[saver], **flags)
    assert len({step.keys for step in whole.steps}) > 2
    for path, steps_seen in saver.saved:
        rest = fit(shards, ckpt_path=path, **flags)
        assert rest.steps == whole.steps[steps_seen * flags.get("accumulate_grad_batches", 1) :], path.name
        # saved between an epoch's last step and its validation, Lightning leaves that validation out
        assert rest.validations == whole.validations[len(whole.validations) - len(rest.validations) :], path.name


def test_stopped_in_mid_epoch_by_max_steps_and_carried_on(shards, tmp_path):
    whole = fit(shards, max_epochs=3)
    saver = Saver(tmp_path)
    fit(shards, max_epochs=3, max_steps=2, callbacks=[saver])
    path = saver.saved[-1][0]
    assert "end" in path.name
    assert fit(shards, ckpt_path=path, max_epochs=3).steps == whole.steps[2:]


@pytest.mark.parametrize("accumulations", [1, 2])
@pytest.mark.parametrize("validated", [{}, {"check_val_every_n_epoch": None, "val_check_interval": 250}])
def test_stopped_by_max_steps_at_the_very_end_of_an_epoch_and_carried_on(shards, tmp_path, accumulations, validated):
    flags = {"accumulate_grad_batches": accumulations, **validated}
    whole = fit(shards, max_epochs=3, **flags)
    steps = len([step for step in whole.steps if step.epoch == 0]) // accumulations
    assert steps > 1
    for number in (1, 2):
        saver = Saver(tmp_path / str(number))
        saver.folder.mkdir()
        fit(shards, max_epochs=3, max_steps=number * steps, callbacks=[saver], **flags)
        at_end = [path for path, done in saver.saved if done == number * steps]
        assert at_end
        for path in at_end:
            rest = fit(shards, ckpt_path=path, max_epochs=3, **flags)
            assert rest.steps == whole.steps[number * steps * accumulations :], path.name


def test_the_checkpoint_is_plain_and_describes_itself(shards, tmp_path):
    saver = Saver(tmp_path)
    fit(shards, max_steps=2, callbacks=[saver])
    checkpoint = torch.load(saver.saved[-1][0], weights_only=True)
    assert VoiceHeader.model_validate(checkpoint["voxloom"]).speakers == ("ann", "bob")
    state = PlanState.model_validate(checkpoint["ShardDataModule"])
    assert (state.epoch, state.groups_done) == (0, 2)
    assert checkpoint["ema"]["num_updates"] == 2
    assert set(checkpoint["ema"]["parameters"]) < {name.removeprefix("model.") for name in checkpoint["state_dict"]}


def test_another_index_or_plan_is_refused_by_name(shards, tmp_path):
    saver = Saver(tmp_path)
    fit(shards, max_steps=1, callbacks=[saver])
    path = saver.saved[-1][0]
    other = make_shard_set(tmp_path / "other", train=made_frames(12, 7))
    with pytest.raises(IdentityError, match="trained on the index"):
        fit(other, ckpt_path=path, max_steps=2)
    with pytest.raises(IdentityError, match="max_frames was 150, is 99") as caught:
        fit(shards, ckpt_path=path, max_steps=2, max_frames=99)
    assert caught.value.hint.startswith("add --data.max_frames 150; --reset-data")
    grouped = ShardDataModule(str(shards), max_frames=150, group_size=2, num_workers=0)
    with pytest.raises(IdentityError, match="ranks was 1, is 2") as caught:
        fit(shards, ckpt_path=path, max_steps=2, data=grouped, accumulate_grad_batches=2)
    assert caught.value.hint.startswith("add --data.group_size 1;")


def test_step_groups_are_those_of_the_first_start(shards, tmp_path):
    saver = Saver(tmp_path)
    whole = fit(shards, max_epochs=2, accumulate_grad_batches=3, callbacks=[saver])
    path = next(path for path, steps in saver.saved if steps == 1)
    for accumulations in (1, 2, 3):  # what is asked for does not count
        rest = fit(shards, ckpt_path=path, max_epochs=2, accumulate_grad_batches=accumulations)
        assert [step.keys for step in rest.steps] == [step.keys for step in whole.steps[3:]]
        assert rest.steps[-1].global_step == whole.steps[-1].global_step


def test_reset_data_goes_on_with_other_data_in_a_new_epoch(shards, tmp_path):
    saver = Saver(tmp_path)
    fit(shards, max_steps=1, callbacks=[saver])
    other = make_shard_set(tmp_path / "other", train=made_frames(12, 7))
    data = ShardDataModule(str(other), max_frames=99, num_workers=0, reset_data=True)
    rest = fit(other, data=data, ckpt_path=saver.saved[-1][0], max_epochs=2)
    assert {step.epoch for step in rest.steps} == {1}
    assert sorted(key for step in rest.steps for key in step.keys) == [f"train-{place:04d}" for place in range(12)]
    assert rest.steps[0].global_step == 2
