"""Properties of the whole model that hold for any weights."""

import pytest
import torch

from tests.helpers.batches import NUM_MELS, NUM_SPEAKERS, NUM_SYMBOLS, collate, make_utterances
from trainer.model.acoustic import AcousticModel
from trainer.model.config import BASE, TINY, ModelConfig

SMALL = {
    "encoder_channels": 16,
    "encoder_blocks": 2,
    "decoder_channels": 16,
    "decoder_blocks": 2,
    "duration_channels": 8,
    "speaker_channels": 4,
    "condition_channels": 8,
    "duration_dropout": 0.0,
}
CONFIGS = {
    "convolutions": ModelConfig(**SMALL),
    "attention": ModelConfig(**SMALL, attention_heads=2, feed_forward_channels=32),
    "guidance and crop": ModelConfig(**SMALL, guidance_dropout=0.5, guidance_strength=0.7, crop_frames=8),
}
PARTS = ("duration", "prior", "flow")


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def model(request):
    return build(request.param)


def build(config):
    torch.manual_seed(0)
    built = AcousticModel(config, NUM_SYMBOLS, NUM_SPEAKERS, NUM_MELS)
    with torch.no_grad():
        for parameter in built.parameters():  # blocks start as nothing, in which nothing could go wrong
            parameter += 0.1 * torch.randn_like(parameter)
    built.set_mel_statistics([-5.0] * NUM_MELS, [2.0] * NUM_MELS)
    return built


def seeded(seed=7):
    return torch.Generator().manual_seed(seed)


def gradients(model, losses):
    model.zero_grad()
    losses.total.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


def assert_same_gradients(mine, theirs):
    assert mine.keys() == theirs.keys()
    for name in mine:
        torch.testing.assert_close(
            mine[name], theirs[name], rtol=1e-3, atol=1e-5, msg=lambda text, n=name: f"{n}: {text}"
        )


def test_padding_changes_nothing(model):
    utterances = make_utterances(5)
    tight = model(collate(utterances), seeded())
    wide = model(collate(utterances, extra_symbols=4, extra_frames=13), seeded())
    for part in PARTS:
        torch.testing.assert_close(
            getattr(tight.utterances, part), getattr(wide.utterances, part), rtol=1e-4, atol=1e-4
        )
    assert_same_gradients(gradients(model, tight), gradients(model, wide))


def test_batched_apart_gives_the_same_sums(model):
    utterances = make_utterances(6)
    together = model(collate(utterances), seeded())
    generator = seeded()
    apart = [model(collate(part), generator) for part in (utterances[:1], utterances[1:4], utterances[4:])]
    for part in PARTS:
        joined = torch.cat([getattr(losses.utterances, part) for losses in apart])
        torch.testing.assert_close(joined, getattr(together.utterances, part), rtol=1e-4, atol=1e-4)


def test_mean_over_slots_is_the_loss_of_the_group(model):
    utterances = make_utterances(6)
    whole = collate(utterances)
    totals = (whole.group_frames, whole.group_symbols)
    generator = seeded()
    slots = [model(collate(part, num_slots=2, totals=totals), generator) for part in (utterances[:2], utterances[2:])]
    mean = sum(losses.total for losses in slots) / 2
    torch.testing.assert_close(mean, model(whole, seeded()).total, rtol=1e-4, atol=1e-5)


def test_rows_of_weight_zero_change_nothing(model):
    utterances = make_utterances(5)
    alone = gradients(model, model(collate(utterances[:3]), seeded()))
    beside = gradients(model, model(collate(utterances, weights=[1, 1, 1, 0, 0]), seeded()))
    assert_same_gradients(beside, alone)


def test_batch_of_weight_zero_has_no_gradient(model):
    losses = model(collate(make_utterances(2), weights=[0, 0], num_slots=2, totals=(40.0, 10.0)), seeded())
    assert losses.total == 0
    assert all(not gradient.any() for gradient in gradients(model, losses).values())


def test_forward_depends_on_the_generator_alone(model):
    batch = collate(make_utterances(4))
    first = model(batch, seeded())
    torch.manual_seed(123)
    assert torch.equal(model(batch, seeded()).total, first.total)
    assert not torch.equal(model(batch, seeded(8)).flow, first.flow)


def test_half_precision_aligns_alike_and_loses_in_single(model):
    batch = collate(make_utterances(5))
    single = model(batch, seeded())
    with torch.autocast("cpu", torch.bfloat16):
        half = model(batch, seeded())
    assert torch.equal(half.token_durations, single.token_durations)
    assert half.total.dtype == torch.float32
    torch.testing.assert_close(half.total, single.total, rtol=0.02, atol=0.02)


def test_losses_are_what_they_say(model):
    batch = collate(make_utterances(4))
    losses = model(batch, seeded())
    torch.testing.assert_close(losses.total, losses.duration + losses.prior + losses.flow)
    torch.testing.assert_close(losses.flow, losses.utterances.flow.sum() / batch.mel_lengths.sum())
    torch.testing.assert_close(losses.duration, losses.utterances.duration.sum() / batch.symbol_lengths.sum())
    assert losses.prior >= 0.918  # 0.5 log(2 pi)
    assert torch.equal(losses.token_durations.sum(1), batch.mel_lengths)


def test_a_step_lowers_the_loss(model):
    batch = collate(make_utterances(4))
    before = model(batch, seeded())
    before.total.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
    assert model(batch, seeded()).total < before.total


def test_duration_loss_leaves_the_encoder_alone():
    model = build(CONFIGS["convolutions"])
    losses = model(collate(make_utterances(3)), seeded())
    losses.utterances.duration.sum().backward()
    assert all(parameter.grad is None for parameter in model.encoder.parameters())
    assert any(parameter.grad.any() for parameter in model.durations.parameters())


def test_inference_is_deterministic_and_obeys_the_length_scale(model):
    model.eval()
    symbols = torch.tensor([3, 5, 7, 2])
    mel = model.infer(symbols, 1, 3, seeded())
    assert mel.shape[0] == NUM_MELS
    assert mel.shape[1] >= 9
    assert torch.equal(mel, model.infer(symbols, 1, 3, seeded()))
    assert not torch.equal(mel, model.infer(symbols, 1, 3, seeded(8)))
    assert model.infer(symbols, 1, 3, seeded(), 20.0).shape[1] > model.infer(symbols, 1, 3, seeded(), 10.0).shape[1]


def test_resynthesis_stands_frame_by_frame_beside_the_recording(model):
    batch = collate(make_utterances(3))
    mels = model.eval().resynthesize(batch, 2, seeded())
    assert mels.shape == batch.mels.shape
    for row, length in enumerate(batch.mel_lengths.tolist()):
        assert mels[row, :, :length].all()
        assert not mels[row, :, length:].any()


def test_fewer_frames_than_tokens_do_not_crash(model):
    symbols, mel, speaker = make_utterances(1)[0]
    short = (symbols.repeat(3), mel[:, :2], speaker)
    assert model(collate([short]), seeded()).total.isfinite()


@pytest.mark.parametrize(("config", "low", "high"), [(TINY, 2e6, 4e6), (BASE, 16e6, 20e6)], ids=["tiny", "base"])
def test_sizes_have_the_parameters_they_promise(config, low, high):
    with torch.device("meta"):
        model = AcousticModel(config, 200, 10, 80)
    assert low < sum(parameter.numel() for parameter in model.parameters()) < high
