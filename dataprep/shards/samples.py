"""An utterance as training reads it, and how its members become that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataprep.shards.members import Content

_IDS = b'"phoneme_ids":['


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSample:
    """An utterance as training reads it."""

    phoneme_ids: NDArray[np.int64]
    """Symbol ids `[L]`."""
    mel: NDArray[np.floating[Any]] | None
    """Natural-log mel `[num_mels, T]` as stored, float32 or float16, not to be written to; None where not asked for."""
    samples: NDArray[np.float32] | None
    """The recording `[num_samples]`; None where not asked for."""


def write_padded(mel: NDArray[np.floating[Any]], out: NDArray[np.float32]) -> None:
    """Writes a mel `[num_mels, T]` to the start of `out` `[num_mels, at least T]`, and zeros behind it."""
    num_frames = mel.shape[1]
    out[:, :num_frames] = mel
    if num_frames < out.shape[1]:
        out[:, num_frames:] = 0


def phoneme_ids_of(content: bytes) -> NDArray[np.int64]:
    """The symbol ids in a JSON member, int64 `[L]`; only their list is parsed, at a fifth of the cost of all of it.

    No string of the JSON can hold the name as it is looked for: there its quotes have backslashes.

    Raises:
        ValueError: there is none.
    """
    start = content.index(_IDS) + len(_IDS)
    numbers = content[start : content.index(b"]", start)]
    return np.fromstring(numbers, dtype=np.int64, sep=",") if numbers else np.empty(0, np.int64)


def samples_of(flac: Content) -> NDArray[np.float32]:
    """The recording, float32 `[num_samples]`. Raises AudioError where it cannot be decoded."""
    from dataprep.audio import decode_flac

    samples: NDArray[np.float32] = decode_flac(bytes(flac)).samples
    return samples
