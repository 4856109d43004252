"""The only conversions between seconds, samples and frames, each with its one rounding rule."""

from __future__ import annotations

import math


def seconds_to_samples(seconds: float, sample_rate_hz: int) -> int:
    """Samples in `seconds`, halves rounded up.

    >>> seconds_to_samples(0.5, 22050)
    11025
    """
    return math.floor(seconds * sample_rate_hz + 0.5)


def samples_to_seconds(num_samples: int, sample_rate_hz: int) -> float:
    """Length in seconds of `num_samples`."""
    return num_samples / sample_rate_hz


def samples_to_frames(num_samples: int, hop_length: int) -> int:
    """Frames of a spectrogram whose frame `i` is centred on sample `(i + 0.5) * hop_length`: whole hops only.

    This is the length of the `center=False` transform with `(n_fft - hop_length) / 2` samples of padding at each end.

    >>> samples_to_frames(22050, 256)
    86
    """
    return num_samples // hop_length
