"""Log-mel spectrogram of a `FeatureSpec`, in numpy and scipy.

The transform runs in double precision: in single precision scipy's differs from librosa's by up to 1.4e-3 in the log of
quiet bands of real recordings (rounding of the loudest bins reaches them), in double by under 1e-6.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from schemas.errors import AudioError
from schemas.features import FeatureSpec
from schemas.units import samples_to_frames

_FRAMES_AT_ONCE = 8192
"""Bounds the memory of the framed signal to 67 MB at n_fft 1024, whatever the length; fixed, so that bytes repeat."""


@lru_cache(maxsize=32)
def mel_filters(spec: FeatureSpec) -> NDArray[np.float32]:
    """Filter bank `[num_mels, n_fft // 2 + 1]`, float32: librosa's Slaney mel scale with area normalisation."""
    from librosa.filters import mel

    filters: NDArray[np.float32] = mel(
        sr=spec.sample_rate,
        n_fft=spec.n_fft,
        n_mels=spec.num_mels,
        fmin=spec.fmin_hz,
        fmax=spec.fmax_hz,
        dtype=np.float32,
    )
    filters.setflags(write=False)
    return filters


@lru_cache(maxsize=32)
def window(spec: FeatureSpec) -> NDArray[np.float64]:
    """Periodic Hann window, centred in `[n_fft]`, float64."""
    import scipy.signal

    hann = scipy.signal.get_window("hann", spec.win_length, fftbins=True)
    left = (spec.n_fft - spec.win_length) // 2
    padded: NDArray[np.float64] = np.pad(hann, (left, spec.n_fft - spec.win_length - left))
    padded.setflags(write=False)
    return padded


def log_mel(samples: NDArray[np.float32], spec: FeatureSpec) -> NDArray[np.float32]:
    """Natural logarithm of the mel magnitude spectrogram, as HiFi-GAN's 22.05 kHz models take it.

    The signal is padded by reflection with `(n_fft - hop_length) / 2` samples at each end and framed without further
    centring, so that frame `i` is centred on sample `(i + 0.5) * hop_length`.

    Args:
        samples: float32 `[num_samples]` at `spec.sample_rate`, full scale 1.0.
        spec: what to compute.

    Returns:
        float32 `[num_mels, num_samples // hop_length]`, at least `log(log_floor)`.

    Raises:
        AudioError: fewer samples than one hop.
    """
    num_frames = samples_to_frames(len(samples), spec.hop_length)
    if num_frames == 0:
        raise AudioError(f"{len(samples)} samples are less than one frame of {spec.hop_length}")
    left = (spec.n_fft - spec.hop_length) // 2
    padded = np.pad(samples, (left, spec.n_fft - spec.hop_length - left), mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, spec.n_fft)[:: spec.hop_length][:num_frames]
    filters, hann = mel_filters(spec), window(spec)
    mel = np.empty((spec.num_mels, num_frames), dtype=np.float32)
    for start in range(0, num_frames, _FRAMES_AT_ONCE):
        stop = start + _FRAMES_AT_ONCE
        spectrum = scipy.fft.rfft(frames[start:stop] * hann, axis=1)
        mel[:, start:stop] = filters @ np.abs(spectrum).T.astype(np.float32)
    np.maximum(mel, np.float32(spec.log_floor), out=mel)
    return np.log(mel, out=mel)
