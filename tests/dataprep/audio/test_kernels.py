"""Resampling, trimming, measuring and FLAC against closed forms."""

import math

import librosa
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hypothesis_numpy

from dataprep.audio import decode_flac, encode_flac, find_speech, measure, resample
from dataprep.audio.resample import resampled_length
from schemas.errors import AudioError
from tests.helpers.sounds import tone

RATES = st.sampled_from([4000, 8000, 11025, 16000, 22050, 24000, 44100, 48000, 96000, 384000])


@settings(deadline=None)
@given(num_samples=st.integers(0, 3000), from_hz=RATES, to_hz=RATES)
def test_length_is_the_quotient_with_halves_rounded_up(num_samples, from_hz, to_hz):
    samples = np.ones(num_samples, np.float32)
    resampled = resample(samples, from_hz, to_hz)
    assert resampled.dtype == np.float32
    assert len(resampled) == resampled_length(num_samples, from_hz, to_hz)
    assert len(resampled) == math.floor(num_samples * to_hz / from_hz + 0.5)


def test_resampling_to_the_same_rate_changes_nothing():
    samples = tone(440, 0.1, 16000)
    assert resample(samples, 16000, 16000) is samples


def test_what_lies_above_half_the_new_rate_is_gone():
    samples = resample(tone(10_000, 1.0, 48000), 48000, 16000)
    assert 20 * np.log10(np.abs(samples[1000:-1000]).max() / 0.5) < -100


def _silence_tone_silence(before, sounding, after, sample_rate=22050):
    parts = [np.zeros(before, np.float32), tone(300, sounding / sample_rate, sample_rate), np.zeros(after, np.float32)]
    return np.concatenate(parts)


def test_speech_is_found_to_within_half_a_frame():
    samples = _silence_tone_silence(10000, 8000, 12000)
    start, end = find_speech(samples, 22050, 40.0, 0.0)
    assert 10000 - 1024 - 512 <= start <= 10000
    assert 18000 <= end <= 18000 + 1024 + 512


def test_the_margin_is_added_where_there_is_as_much():
    samples = _silence_tone_silence(10000, 8000, 100)
    start, end = find_speech(samples, 22050, 40.0, 0.0)
    assert find_speech(samples, 22050, 40.0, 0.1) == (start - 2205, len(samples))
    assert find_speech(samples, 22050, 40.0, 9.0) == (0, len(samples))
    assert end <= len(samples)


@pytest.mark.parametrize("num_samples", [0, 1, 511, 512, 2048, 20000])
def test_silence_throughout_is_nothing(num_samples):
    assert find_speech(np.zeros(num_samples, np.float32), 22050, 40.0, 0.05) == (0, 0)
    one_step = np.full(num_samples, 1 / 32768, np.float32)
    assert find_speech(one_step, 22050, 40.0, 0.05) == (0, 0)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.tuples(st.integers(0, 5000), st.integers(500, 9000), st.integers(0, 5000)),
    noise_db=st.integers(-90, -20),
    top_db=st.sampled_from([10.0, 30.0, 40.0, 60.0]),
)
def test_trimming_equals_librosa(lengths, noise_db, top_db):
    samples = _silence_tone_silence(*lengths)
    samples += (10 ** (noise_db / 20) * np.random.default_rng(0).standard_normal(len(samples))).astype(np.float32)
    _, expected = librosa.effects.trim(samples, top_db=top_db)
    assert find_speech(samples, 22050, top_db, 0.0) == tuple(expected)


def test_level_of_a_sine_and_of_nothing():
    measures = measure(tone(441, 1.0, 44100, amplitude=1.0), 0.25)
    assert measures.rms_dbfs == pytest.approx(20 * math.log10(math.sqrt(0.5)), abs=1e-4)
    assert measures.peak == pytest.approx(1.0, abs=1e-6)
    assert measures.clipped_share == 0.25
    for nothing in (np.zeros(0, np.float32), np.zeros(100, np.float32)):
        assert (measure(nothing, 0.0).peak, measure(nothing, 0.0).rms_dbfs) == (0.0, -120.0)
    assert measure(np.array([0.25, -0.75], np.float32), 0.0).peak == 0.75


@settings(max_examples=50, deadline=None)
@given(
    whole=hypothesis_numpy.arrays(np.int16, st.integers(1, 5000)), sample_rate=st.sampled_from([16000, 22050, 48000])
)
def test_flac_returns_16_bit_values_exactly(whole, sample_rate):
    samples = whole.astype(np.float32) / 32768
    waveform = decode_flac(encode_flac(samples, sample_rate))
    assert waveform.sample_rate == sample_rate
    np.testing.assert_array_equal(waveform.samples, samples)


def test_flac_is_limited_to_full_scale_and_rounds_halves_to_even():
    samples = np.array([2.0, -2.0, 1.0, -1.0, 0.5 / 32768, 1.5 / 32768, -0.5 / 32768], np.float32)
    expected = np.array([32767, -32768, 32767, -32768, 0, 2, 0]) / 32768
    np.testing.assert_array_equal(decode_flac(encode_flac(samples, 22050)).samples, expected)


def test_flac_bytes_repeat():
    samples = tone(440, 0.7, 22050)
    assert encode_flac(samples, 22050) == encode_flac(samples.copy(), 22050)


def test_nothing_cannot_be_encoded():
    with pytest.raises(AudioError, match="no samples"):
        encode_flac(np.zeros(0, np.float32), 22050)
