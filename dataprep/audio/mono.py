"""Adds up the channels of a recording, block by block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dataprep.audio.waveform import FULL_SCALE

INT16_SCALE = np.float32(1 / 32768)


class ChannelMix:
    """The mean over channels of blocks as they are decoded, and the share of samples that are clipped."""

    def __init__(self) -> None:
        self.num_samples = 0
        self._blocks: list[NDArray[np.float32]] = []
        self._num_clipped = 0
        self._num_seen = 0

    def add(self, block: NDArray[np.int16] | NDArray[np.float32]) -> None:
        """Takes `block`: int16 (32768 = full scale) or float32 (1.0 = full scale), `[num_samples, num_channels]`."""
        self.num_samples += len(block)
        self._num_seen += block.size
        self._num_clipped += _num_clipped(block)
        self._blocks.append(_mean(block))

    def samples(self) -> NDArray[np.float32]:
        """The mean over channels, float32 `[num_samples]`."""
        if not self._blocks:
            return np.zeros(0, np.float32)
        return self._blocks[0] if len(self._blocks) == 1 else np.concatenate(self._blocks)

    def clipped_share(self) -> float:
        """Share of the samples of all channels at or beyond `FULL_SCALE`."""
        return self._num_clipped / self._num_seen if self._num_seen else 0.0


def _mean(block: NDArray[np.int16] | NDArray[np.float32]) -> NDArray[np.float32]:
    # Column by column: numpy's sum over a short last axis takes ten times as long. Sums of int16 are whole numbers,
    # which float32 holds exactly up to 512 channels.
    num_channels = block.shape[1]
    scale = INT16_SCALE if block.dtype == np.int16 else np.float32(1)
    planes = block.astype(np.float32, copy=False)
    if scale == 1 and num_channels == 1:
        return planes[:, 0]
    # Damaged floats may overflow: the caller refuses what is not finite, and a warning would only be noise.
    with np.errstate(over="ignore", invalid="ignore"):
        mean: NDArray[np.float32] = planes[:, 0] + planes[:, 1] if num_channels > 1 else planes[:, 0]
        for channel in range(2, num_channels):
            mean += planes[:, channel]
        return np.multiply(mean, scale / np.float32(num_channels), out=mean)


def _num_clipped(block: NDArray[np.int16] | NDArray[np.float32]) -> int:
    limit = 32767 if block.dtype == np.int16 else FULL_SCALE
    # Most recordings have none: the two extremes cost a third of counting.
    if not block.size or (block.max() < limit and block.min() > -limit):
        return 0
    return int(np.count_nonzero((block >= limit) | (block <= -limit)))
