"""Griffin-Lim on made tones."""

import numpy as np
import pytest

from schemas.features import HIFIGAN_22K, FeatureSpec
from tests.helpers.sounds import pitch_hz, tone
from trainer.synth.vocoder import GriffinLim, linear_magnitudes

SPEC_16K = FeatureSpec(
    name="test-16k",
    sample_rate=16000,
    n_fft=512,
    win_length=400,
    hop_length=160,
    num_mels=64,
    fmin_hz=20.0,
    fmax_hz=7600.0,
)
SPECS = pytest.mark.parametrize("spec", [HIFIGAN_22K, SPEC_16K], ids=lambda spec: spec.name)


def log_mel_of(samples, spec, filters):
    """Straight from the definition: frame i sees n_fft samples around (i + 0.5) * hop, the ends reflected."""
    padded = np.pad(samples, (spec.n_fft - spec.hop_length) // 2, mode="reflect")
    window = np.zeros(spec.n_fft)
    start = (spec.n_fft - spec.win_length) // 2
    window[start : start + spec.win_length] = np.hanning(spec.win_length + 1)[:-1]
    num_frames = len(samples) // spec.hop_length
    frames = np.stack([padded[i * spec.hop_length : i * spec.hop_length + spec.n_fft] for i in range(num_frames)])
    mels = filters @ np.abs(np.fft.rfft(frames * window)).T
    return np.log(np.maximum(mels, spec.log_floor)).astype(np.float32)


@SPECS
@pytest.mark.parametrize("hz", [220.0, 1000.0, 3000.0])
def test_a_tone_keeps_its_length_pitch_and_level(spec, hz):
    vocoder = GriffinLim(spec)
    samples = tone(hz, 0.5, spec.sample_rate, amplitude=0.3)
    log_mel = log_mel_of(samples, spec, vocoder.filters)
    spoken = vocoder(log_mel)
    assert spoken.dtype == np.float32
    assert len(spoken) == log_mel.shape[1] * spec.hop_length
    # a mel band at 3 kHz is 140 Hz wide: it says no more about the pitch than that, and a tone spread over it is weaker
    assert pitch_hz(spoken, spec.sample_rate) == pytest.approx(hz, rel=0.03)
    assert np.sqrt(np.mean(spoken**2)) == pytest.approx(0.3 / np.sqrt(2), rel=0.2 if hz < 2000 else 0.45)


@SPECS
def test_sound_stays_where_it_was(spec):
    vocoder = GriffinLim(spec)
    samples = np.zeros(60 * spec.hop_length, dtype=np.float32)
    burst = slice(20 * spec.hop_length, 30 * spec.hop_length)
    samples[burst] = tone(800.0, 10 * spec.hop_length / spec.sample_rate, spec.sample_rate)
    spoken = vocoder(log_mel_of(samples, spec, vocoder.filters))
    energy = spoken.astype(np.float64) ** 2
    centre = (energy * np.arange(len(spoken))).sum() / energy.sum()
    assert centre == pytest.approx(25 * spec.hop_length, abs=spec.hop_length)
    assert energy[burst].sum() > 0.8 * energy.sum()


def test_same_seed_same_samples():
    log_mel = np.random.default_rng(0).normal(-4, 1, (80, 12)).astype(np.float32)
    first = GriffinLim(HIFIGAN_22K, seed=3)(log_mel)
    np.testing.assert_array_equal(first, GriffinLim(HIFIGAN_22K, seed=3)(log_mel))
    assert not np.array_equal(first, GriffinLim(HIFIGAN_22K, seed=4)(log_mel))


@pytest.mark.parametrize("num_frames", [1, 2, 3])
def test_a_few_frames_are_enough(num_frames):
    spoken = GriffinLim(HIFIGAN_22K)(np.full((80, num_frames), -3.0, dtype=np.float32))
    assert spoken.shape == (num_frames * 256,)
    assert np.isfinite(spoken).all()


def test_silence_is_silent():
    spoken = GriffinLim(HIFIGAN_22K)(np.full((80, 20), np.log(1e-5), dtype=np.float32))
    assert np.abs(spoken).max() < 1e-3


def test_linear_magnitudes_are_not_negative_and_give_their_mels_back():
    rng = np.random.default_rng(0)
    filters = GriffinLim(HIFIGAN_22K).filters
    mels = filters @ rng.gamma(1.0, 1.0, (513, 9)).astype(np.float32)
    spectra = linear_magnitudes(mels, filters, num_iterations=200)
    assert spectra.min() >= 0
    np.testing.assert_allclose(filters @ spectra, mels, rtol=0.05)
