"""The form in which cleaned recordings are kept: FLAC, one channel, 16 bits."""

from __future__ import annotations

import io

import numpy as np
import soundfile
from numpy.typing import NDArray

from dataprep.audio.decode import decode_mono
from dataprep.audio.waveform import Waveform
from schemas.errors import AudioError


def to_int16(samples: NDArray[np.float32]) -> NDArray[np.int16]:
    """Float32 to int16: times 32768, halves to even, limited to -32768..32767. Multiples of 1/32768 come back exactly.

    >>> to_int16(np.array([-1.0, 0.0, 1.0], np.float32))
    array([-32768,      0,  32767], dtype=int16)
    """
    scaled = samples * np.float32(32768)
    return np.clip(np.rint(scaled, out=scaled), -32768, 32767, out=scaled).astype(np.int16)


def encode_flac(samples: NDArray[np.float32], sample_rate: int) -> bytes:
    """Encodes float32 `[num_samples]`, rounded as `to_int16` says. The same samples give the same bytes.

    Raises:
        AudioError: no samples, or a sample rate that FLAC cannot hold.
    """
    if not len(samples):
        raise AudioError("there are no samples to encode", hint="drop the utterance before this step")
    buffer = io.BytesIO()
    try:
        soundfile.write(buffer, to_int16(samples), sample_rate, format="FLAC", subtype="PCM_16")
    except soundfile.LibsndfileError as error:
        raise AudioError(
            f"{sample_rate} samples per second cannot be kept as FLAC: {error.error_string.strip()}",
            hint="choose a common rate, such as 16000, 22050, 24000, 44100 or 48000",
        ) from error
    return buffer.getvalue()


def decode_flac(content: bytes, name: str = "FLAC") -> Waveform:
    """Decodes what `encode_flac` wrote. Raises AudioError as `decode_mono` does."""
    return decode_mono(content, name)
