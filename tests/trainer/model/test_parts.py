"""Configuration, tokens, durations, random draws and the averaged weights."""

import pytest
import torch

from schemas.errors import FormatError, UsageError
from trainer.model.config import BASE, TINY, ModelConfig
from trainer.model.draws import draw, window
from trainer.model.durations import whole_frames
from trainer.model.ema import ExponentialAverage
from trainer.model.losses import duration_sums
from trainer.model.tokens import interleave_blanks, length_mask, num_tokens, spread


def test_config_survives_its_plain_form():
    for config in (TINY, BASE):
        assert ModelConfig.from_dict(config.to_dict()) == config
        assert all(type(value) in (int, float) for value in config.to_dict().values())


def test_config_names_every_fault_at_once():
    with pytest.raises(UsageError) as caught:
        ModelConfig(kernel_size=4, dropout=1.5, encoder_blocks=0)
    assert all(name in caught.value.message for name in ("kernel_size", "dropout", "encoder_blocks"))


@pytest.mark.parametrize(
    "change", [{"width": 3}, {"kernel_size": "3"}, {"kernel_size": 3.0}, {"dropout": True}], ids=lambda c: str(c)
)
def test_stored_config_of_another_form_is_refused(change):
    with pytest.raises(FormatError):
        ModelConfig.from_dict({**TINY.to_dict(), **change})


def test_blanks_stand_around_every_symbol():
    assert interleave_blanks(torch.tensor([[5, 6, 7]]), 9).tolist() == [[9, 5, 9, 6, 9, 7, 9]]
    assert num_tokens(3) == 7
    assert length_mask(torch.tensor([1, 3]), 3).tolist() == [[[True, False, False]], [[True, True, True]]]


def test_spread_equals_repeat_interleave():
    tokens = torch.arange(8.0).reshape(1, 2, 4)
    durations = torch.tensor([[2, 1, 0, 3]])
    assert torch.equal(spread(tokens, durations, 6), tokens.repeat_interleave(durations[0], dim=2))


def test_durations_are_rounded_without_drift():
    lengths = torch.full((100,), 2.4)
    frames = whole_frames(lengths.log(), 1.0)
    assert frames.sum() == 240
    assert set(frames.tolist()) == {2, 3}
    assert whole_frames(torch.full((5,), -20.0), 1.0).tolist() == [1] * 5
    assert whole_frames(lengths.log(), 2.0).sum() == 480


def test_duration_loss_is_smallest_at_the_mean():
    durations = torch.tensor([[1], [1], [10]])
    mask = torch.ones((3, 1, 1), dtype=torch.bool)
    log_mean = torch.tensor(4.0).log().requires_grad_()
    sums = duration_sums(log_mean.expand(3, 1), durations, mask, torch.ones(3, dtype=torch.int64))
    (gradient,) = torch.autograd.grad(sums.sum(), log_mean)
    assert gradient.abs() < 1e-5
    assert sums.min() >= 0


def test_draws_do_not_depend_on_padding_or_batching():
    lengths = torch.tensor([9, 4, 6])
    together = draw(lengths, 5, 6, 0.5, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(0)
    for row, length in enumerate(lengths):
        alone = draw(length[None], 5, 6, 0.5, generator)
        frames = min(int(length), 6)
        assert torch.equal(alone.noise[0], together.noise[row, :, :frames])
        assert not together.noise[row, :, frames:].any()
        assert alone.times == together.times[row]
        assert alone.starts == together.starts[row]


def test_windows_lie_inside_and_reach_everywhere():
    lengths = torch.full((400,), 10)
    draws = draw(lengths, 1, 4, 0.0, torch.Generator().manual_seed(0))
    assert sorted(set(draws.starts.tolist())) == list(range(7))
    assert draws.keep_text.all()
    frames = torch.arange(10.0).expand(400, 1, 10)
    assert torch.equal(window(frames, draws)[:, 0], draws.starts[:, None] + torch.arange(4.0))


def test_average_follows_its_closed_form():
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    average = ExponentialAverage(model, decay=0.5)
    expected = 0.0
    for update in range(1, 20):
        torch.nn.init.constant_(model.weight, float(update))
        average.update(model)
        decay = min(0.5, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * update
    assert average.parameters["weight"].item() == pytest.approx(expected, rel=1e-5)


def test_average_speaks_only_inside_the_with():
    model = torch.nn.Linear(2, 2)
    average = ExponentialAverage(model, decay=0.9)
    averaged = {name: value.clone() for name, value in average.parameters.items()}
    with torch.no_grad():
        model.weight += 1
    own = model.weight.detach().clone()
    with average.applied(model):
        assert torch.equal(model.weight, averaged["weight"])
    assert torch.equal(model.weight, own)


def test_average_survives_its_state_and_refuses_another():
    model = torch.nn.Linear(2, 2)
    average = ExponentialAverage(model, decay=0.9)
    average.update(model)
    other = ExponentialAverage(torch.nn.Linear(2, 2), decay=0.9)
    other.load_state_dict(average.state_dict())
    assert other.num_updates == 1
    assert torch.equal(other.parameters["weight"], average.parameters["weight"])
    with pytest.raises(FormatError, match="weight"):
        ExponentialAverage(torch.nn.Linear(3, 2), decay=0.9).load_state_dict(average.state_dict())
