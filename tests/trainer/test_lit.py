import dataclasses
import math

import pytest
import pytorch_lightning as pl
import torch

from schemas.errors import IdentityError, TrainingError
from tests.helpers.runs import SMALL, Saver, fit, small_module
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.lit import VoiceModule
from trainer.recipe import learning_rate_factor, mixed_seed


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return make_shard_set(tmp_path_factory.mktemp("lit") / "shards", train=made_frames(12), validation=[20, 30])


class Broken(VoiceModule):
    """Adds something that is not finite to the loss of some steps."""

    def __init__(self, steps, added, **options):
        super().__init__(SMALL, warmup_steps=4, **options)
        self.steps, self.added = steps, added

    def losses(self, batch, generator, weights=None):
        losses = super().losses(batch, generator, weights)
        if weights is None and self.global_step in self.steps:
            return dataclasses.replace(losses, total=losses.total + self.added)
        return losses


class Weights(pl.Callback):
    """The weights after each step."""

    def __init__(self):
        self.after = []

    def on_train_batch_end(self, trainer, module, *rest):
        weights = {name: value.clone() for name, value in module.model.named_parameters()}
        self.after.append((weights, module.average.num_updates))


# inf has a gradient of its own that is finite: the loss must be enough to skip the step
@pytest.mark.parametrize("added", [math.nan, math.inf])
def test_a_step_that_is_not_finite_is_left_out(shards, added):
    seen = Weights()
    module = Broken([1], added)
    with pytest.warns(UserWarning, match="step 1 is skipped"):
        fit(shards, module=module, callbacks=[seen], max_steps=3)
    (first, updates), (second, same_updates), (third, _) = seen.after
    assert updates == same_updates == 1
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(second[name], third[name]) for name in first)
    assert module.skipped_steps == 1


@pytest.mark.filterwarnings("ignore:step")
def test_too_many_of_them_end_the_run(shards):
    with pytest.raises(TrainingError, match=r"3 steps up to step 2 .* at most 2 may"):
        fit(shards, module=Broken(range(9), math.nan, max_skipped_steps=2), max_steps=9)


def test_learning_rate_over_steps():
    factors = [learning_rate_factor(step, warmup_steps=10, schedule="constant") for step in range(20)]
    assert factors == pytest.approx([*(0.1 * step for step in range(1, 11)), *[1.0] * 10])
    falling = learning_rate_factor(39, warmup_steps=10, schedule="inverse-sqrt")
    assert falling == pytest.approx(0.5)


def test_a_resumed_run_takes_a_new_learning_rate(shards, tmp_path):
    saver = Saver(tmp_path)
    fit(shards, callbacks=[saver], max_steps=1)
    seen = []

    class Rates(pl.Callback):
        def on_before_optimizer_step(self, trainer, module, optimizer):
            seen.append(optimizer.param_groups[0]["lr"])

    fit(shards, module=small_module(learning_rate=0.5), ckpt_path=saver.saved[-1][0], callbacks=[Rates()], max_steps=3)
    assert seen == pytest.approx([0.5 * 2 / 4, 0.5 * 3 / 4])


def test_another_model_is_refused_by_name(shards, tmp_path):
    saver = Saver(tmp_path)
    fit(shards, callbacks=[saver], max_steps=1)
    other = VoiceModule(dataclasses.replace(SMALL, decoder_blocks=2))
    with pytest.raises(IdentityError, match=r"decoder_blocks 1 \(here 2\)"):
        fit(shards, module=other, ckpt_path=saver.saved[-1][0], max_steps=2)


def test_training_does_not_touch_the_global_generator(shards):
    torch.manual_seed(3)
    wanted = torch.rand(4)
    torch.manual_seed(3)
    fit(shards, max_steps=2)
    assert torch.equal(torch.rand(4), wanted)


def test_the_averaged_weights_are_never_those_that_train(shards):
    seen = Weights()
    module = small_module(ema_decay=0.5)
    fit(shards, module=module, callbacks=[seen], max_epochs=1)
    last = seen.after[-1][0]
    assert all(torch.equal(value, last[name]) for name, value in module.model.named_parameters())
    assert any(not torch.equal(value, module.average.parameters[name]) for name, value in last.items())


def test_seeds_depend_on_every_number_and_their_order():
    seeds = {mixed_seed(0, 1, 2), mixed_seed(0, 2, 1), mixed_seed(1, 0, 2), mixed_seed(0, 3), mixed_seed(3)}
    assert len(seeds) == 5
    assert all(0 <= seed < 2**63 for seed in seeds)
