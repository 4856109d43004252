"""Duration predictor: how many frames each token lasts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainer.model.config import ModelConfig
from trainer.model.layers import ConvBlock

START_LOG_FRAMES = 1.0
"""What an untrained predictor is near, 2.7 frames: from 1 frame the first gradients of long tokens dwarf all others."""


class DurationPredictor(nn.Module):
    """Two convolution blocks on the encoder's states, which it reads but does not train.

    Args:
        config: sizes.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        channels = config.duration_channels
        self.enter = nn.Conv1d(config.encoder_channels, channels, 1)
        self.blocks = nn.ModuleList(
            ConvBlock(channels, config.kernel_size, config.speaker_channels, config.duration_dropout) for _ in range(2)
        )
        self.leave = nn.Conv1d(channels, 1, 1)

    def forward(self, hidden: Tensor, mask: Tensor, speaker: Tensor) -> Tensor:
        """Predicts.

        Args:
            hidden: encoder's states [B, C, L]; no gradient goes back into them, because the alignment, and with it the
                target, follows the encoder, and a moving target would pull the text's representation along.
            mask: bool [B, 1, L].
            speaker: speakers' embeddings [B, S].

        Returns:
            natural logarithm of the frames of each token [B, L].
        """
        x = self.enter(hidden.detach()) * mask
        for block in self.blocks:
            x = block(x, mask, speaker)
        logs: Tensor = self.leave(x)
        return logs[:, 0] + START_LOG_FRAMES


def whole_frames(log_durations: Tensor, length_scale: float) -> Tensor:
    """Rounds predicted durations to whole frames so that the roundings do not add up.

    Args:
        log_durations: natural logarithm of frames [L].
        length_scale: factor on all durations; above 1 is slower.

    Returns:
        int64 [L], each at least 1; their sum is within half a frame of the sum of what was predicted, unless tokens
        were raised to 1.
    """
    lengths = (log_durations.double().exp() * length_scale).clamp(min=1.0)
    ends = (lengths.cumsum(0) + 0.5).floor().to(torch.int64)
    return torch.diff(ends, prepend=ends.new_zeros(1))
