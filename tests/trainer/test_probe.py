"""`--probe` tries the most expensive micro-batches and leaves nothing behind but the limit."""

import pytest
import pytorch_lightning as pl
import torch

from schemas.errors import TrainingError
from tests.helpers.runs import fit
from tests.helpers.scarce import Scarce, data
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.memory import padded_frames
from trainer.probe import Probe


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return make_shard_set(tmp_path_factory.mktemp("probe") / "shards", train=made_frames(30), validation=[20, 30])


class Snapshot(pl.Callback):
    def __init__(self):
        self.taken = []

    def on_train_start(self, trainer, module):
        weights = {name: value.clone() for name, value in module.model.state_dict().items()}
        average = {name: value.clone() for name, value in module.average.parameters.items()}
        gradients = [item.grad for item in module.model.parameters()]
        state = trainer.optimizers[0].state_dict()
        self.taken.append((weights, average, gradients, torch.get_rng_state(), state, trainer.global_step))


def test_training_is_what_it_would_have_been(shards, capsys):
    before, after = Snapshot(), Snapshot()
    module = Scarce(10**9)
    probed = fit(shards, module=module, data=data(shards), callbacks=[before, Probe(), after], max_epochs=1)
    plain = fit(shards, module=Scarce(10**9), data=data(shards), max_epochs=1)
    assert probed.steps == plain.steps
    assert probed.validations == plain.validations
    ((weights, average, _, chance, state, step),) = before.taken
    ((same_weights, same_average, gradients, same_chance, same_state, same_step),) = after.taken
    assert all(torch.equal(value, same_weights[name]) for name, value in weights.items())
    assert all(torch.equal(value, same_average[name]) for name, value in average.items())
    assert gradients == [None] * len(gradients)
    assert torch.equal(chance, same_chance)
    assert (state, step) == (same_state, same_step)
    told = capsys.readouterr().err
    assert "probe of epoch 0" in told
    assert "probe: all of them fit" in told
    assert told.count("longest utterance") == 1
    largest = max(module.computed)
    assert largest in module.computed[: told.count("\n") - 3]  # the largest of the epoch was among those tried


@pytest.mark.filterwarnings("ignore:memory ran out")
def test_what_does_not_fit_lowers_the_limit_before_training(shards, capsys):
    module, seen = Scarce(70), []

    class First(pl.Callback):
        def on_train_batch_start(self, trainer, module, batch, batch_idx):
            seen.append((module.budget.limit, padded_frames(batch)))

    fit(shards, module=module, data=data(shards), callbacks=[Probe(), First()], max_steps=2)
    assert seen[0][0] is not None
    assert seen[0][0] < 150
    assert f"probe: at most {seen[0][0]} padded frames are computed at once" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:memory ran out")
def test_an_utterance_that_does_not_fit_alone_is_told_before_training(shards):
    module = Scarce(40)
    with pytest.raises(TrainingError, match="single utterance"):
        fit(shards, module=module, data=data(shards), callbacks=[Probe()], max_steps=2)
    assert module.trainer.global_step == 0
