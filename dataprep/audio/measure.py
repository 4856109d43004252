"""What is measured on a cleaned recording."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from schemas.utterance import Measures

FLOOR_DBFS = -120.0


def measure(samples: NDArray[np.float32], clipped_share: float) -> Measures:
    """Peak and level of float32 `[num_samples]`; `clipped_share` is that of the recording as it was decoded.

    The level is `20 log10` of the root mean square: a sine at full scale has -3.01 dBFS. Nothing at all has -120.
    """
    if not len(samples):
        return Measures(peak=0.0, rms_dbfs=FLOOR_DBFS, clipped_share=clipped_share)
    peak = max(float(samples.max()), -float(samples.min()))
    # einsum adds in float32 unless told; float64 keeps the sum exact to the digits shown, whatever the length.
    power = float(np.einsum("i,i->", samples, samples, dtype=np.float64)) / len(samples)
    rms_dbfs = FLOOR_DBFS if power <= 0 else max(FLOOR_DBFS, 10 * math.log10(power))
    return Measures(peak=peak, rms_dbfs=rms_dbfs, clipped_share=clipped_share)
