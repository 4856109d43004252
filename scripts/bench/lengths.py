"""Made lengths for the benchmarks of plan and loader."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FRAMES_PER_SECOND = 22050 / 256


def seconds_like_libritts(num_rows: int, seed: int = 0) -> NDArray[np.float64]:
    """Seconds of utterances as in read audiobooks: log-normal around 5 s, cut to 0.5 to 30 s, float64 `[num_rows]`."""
    return np.clip(np.random.default_rng(seed).lognormal(np.log(5.0), 0.65, num_rows), 0.5, 30.0)


def frames_like_libritts(num_rows: int, seed: int = 0) -> NDArray[np.uint32]:
    """The same in frames of 256 samples at 22,050 Hz, uint32 `[num_rows]`; made in pieces, for the sake of memory."""
    frames = np.empty(num_rows, np.uint32)
    for piece, begin in enumerate(range(0, num_rows, 1 << 20)):
        seconds = seconds_like_libritts(min(1 << 20, num_rows - begin), seed + piece)
        frames[begin : begin + len(seconds)] = seconds * FRAMES_PER_SECOND
    return frames
