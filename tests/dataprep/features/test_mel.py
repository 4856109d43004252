"""Our mel against librosa's: an independent computation on made and on real recordings."""

import librosa
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.features.mel import log_mel
from schemas.errors import AudioError
from schemas.features import HIFIGAN_22K
from tests.helpers.recordings import DATA, files_below, needs_data
from tests.helpers.sounds import tone


def by_librosa(samples):
    padded = np.pad(samples, (1024 - 256) // 2, mode="reflect")
    mel = librosa.feature.melspectrogram(
        y=padded,
        sr=22050,
        n_fft=1024,
        hop_length=256,
        win_length=1024,
        center=False,
        power=1.0,
        n_mels=80,
        fmin=0,
        fmax=8000,
    )
    return np.log(np.maximum(mel, 1e-5))


@needs_data
@pytest.mark.parametrize("corpus", ["en_ljspeech", "zh_aishell_16k", "zh_aishell3_44k", "en_digits_fsdd_8k"])
def test_equals_librosa_on_real_recordings(corpus):
    for path in files_below(f"corpora/{corpus}/wavs")[:6]:
        samples, _ = librosa.load(path, sr=22050)
        np.testing.assert_allclose(log_mel(samples, HIFIGAN_22K), by_librosa(samples), rtol=0, atol=1e-4)
    assert DATA.is_dir()


def test_equals_librosa_on_made_noise():
    samples = np.random.default_rng(0).normal(0, 0.1, 22050).astype(np.float32)
    np.testing.assert_allclose(log_mel(samples, HIFIGAN_22K), by_librosa(samples), rtol=0, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(1024, 20000))
def test_frames_are_whole_hops(num_samples):
    samples = np.zeros(num_samples, np.float32)
    mel = log_mel(samples, HIFIGAN_22K)
    assert mel.shape == (80, num_samples // 256)
    assert mel.dtype == np.float32
    np.testing.assert_allclose(mel, np.log(1e-5), rtol=1e-6)


def test_a_tone_is_loudest_in_its_own_band():
    mel = log_mel(tone(1000.0, 1.0, 22050), HIFIGAN_22K)
    centres = librosa.mel_frequencies(n_mels=82, fmin=0, fmax=8000)[1:-1]
    assert abs(int(mel.mean(axis=1).argmax()) - int(np.abs(centres - 1000.0).argmin())) <= 1


def test_twice_the_amplitude_adds_log_two():
    samples = np.random.default_rng(1).normal(0, 0.1, 8192).astype(np.float32)
    np.testing.assert_allclose(log_mel(2 * samples, HIFIGAN_22K) - log_mel(samples, HIFIGAN_22K), np.log(2), atol=1e-5)


def test_two_specs_in_one_process_keep_apart():
    samples = np.random.default_rng(2).normal(0, 0.1, 8192).astype(np.float32)
    before = log_mel(samples, HIFIGAN_22K)
    other = HIFIGAN_22K.model_copy(update={"name": "other", "num_mels": 40, "fmax_hz": 4000.0})
    assert log_mel(samples, other).shape[0] == 40
    np.testing.assert_array_equal(log_mel(samples, HIFIGAN_22K), before)


def test_less_than_a_frame_is_an_error():
    with pytest.raises(AudioError, match="less than one frame"):
        log_mel(np.zeros(255, np.float32), HIFIGAN_22K)
