"""`Waveform`: one decoded recording."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FULL_SCALE = 32767 / 32768
"""Largest value that 16 bits can hold, as a share of 1.0: a sample at or beyond it (either sign) counts as clipped."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waveform:
    """One channel of sound."""

    samples: NDArray[np.float32]
    """float32 `[num_samples]`, 1.0 = full scale; a float recording may go beyond."""
    sample_rate: int
    """Samples per second."""
    clipped_share: float
    """Share (0 to 1) of the recording's samples, over all its channels, at or beyond `FULL_SCALE`."""
