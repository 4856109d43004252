"""`FeatureSpec`: everything that decides what a mel spectrogram is, so that two that are equal mean equal mels."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.base import Record


class FeatureSpec(Record):
    """Log-mel spectrogram settings; shape of the result `[num_mels, num_frames]`, float32, natural logarithm."""

    name: str = Field(description="name of the preset")
    kind: Literal["log_mel"] = Field("log_mel", description="what is computed")
    sample_rate: int = Field(description="samples per second of the audio it is computed from", gt=0)
    n_fft: int = Field(description="length of the Fourier transform in samples", gt=0)
    win_length: int = Field(description="length of the periodic Hann window in samples", gt=0)
    hop_length: int = Field(description="samples from one frame to the next", gt=0)
    num_mels: int = Field(description="mel bands", gt=0)
    fmin_hz: float = Field(description="lowest frequency of the filter bank in hertz", ge=0)
    fmax_hz: float = Field(description="highest frequency of the filter bank in hertz", gt=0)
    mel_scale: Literal["slaney"] = Field("slaney", description="mel scale, and area normalisation of the filters")
    log_floor: float = Field(1e-5, description="mel magnitudes below this are raised to it before the logarithm", gt=0)


class MelStatistics(Record):
    """Mean and standard deviation of each mel band over all frames of the training split."""

    mean: tuple[float, ...] = Field(description="mean of each band, natural logarithm units")
    std: tuple[float, ...] = Field(description="standard deviation of each band, at least 1e-3")


HIFIGAN_22K = FeatureSpec(
    name="hifigan-22k",
    sample_rate=22050,
    n_fft=1024,
    win_length=1024,
    hop_length=256,
    num_mels=80,
    fmin_hz=0.0,
    fmax_hz=8000.0,
)

PRESETS: dict[str, FeatureSpec] = {spec.name: spec for spec in (HIFIGAN_22K,)}
