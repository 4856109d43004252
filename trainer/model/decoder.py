"""Decoder: the velocity that carries noise towards the mel, given what each frame should sound like.

A plain stack of residual blocks without down-sampling, with attention where the configuration asks for it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.model.config import ModelConfig
from trainer.model.layers import Stack


class Decoder(nn.Module):
    """Estimates the velocity at one point of the flow.

    Args:
        config: sizes.
        num_mels: mel bands.
    """

    def __init__(self, config: ModelConfig, num_mels: int) -> None:
        super().__init__()
        self.condition_channels = config.condition_channels
        self.time = nn.Sequential(
            nn.Linear(config.condition_channels, config.condition_channels),
            nn.SiLU(),
            nn.Linear(config.condition_channels, config.condition_channels),
        )
        self.speaker = nn.Linear(config.speaker_channels, config.condition_channels)
        self.enter = nn.Conv1d(2 * num_mels + config.encoder_channels, config.decoder_channels, 1)
        self.stack = Stack(
            channels=config.decoder_channels,
            num_blocks=config.decoder_blocks,
            kernel_size=config.kernel_size,
            condition_channels=config.condition_channels,
            heads=config.attention_heads,
            feed_forward_channels=config.feed_forward_channels,
            dropout=config.dropout,
        )
        self.leave = nn.Conv1d(config.decoder_channels, num_mels, 1)

    def forward(self, x: Tensor, times: Tensor, text: Tensor, mask: Tensor, speaker: Tensor) -> Tensor:
        """Velocity.

        Args:
            x: point of the flow [B, M, T], normalised mel units.
            times: [B], from 0 (noise) to 1 (mel).
            text: mean mels and hidden states of each frame's token [B, M + C, T].
            mask: bool [B, 1, T].
            speaker: speakers' embeddings [B, S].

        Returns:
            [B, M, T], zero beyond each utterance's end.
        """
        condition = functional.silu(self.time(embed_time(times, self.condition_channels)) + self.speaker(speaker))
        hidden = self.enter(torch.cat([x, text], dim=1)) * mask
        velocity: Tensor = self.leave(self.stack(hidden, mask, condition))
        return velocity * mask


def embed_time(times: Tensor, channels: int) -> Tensor:
    """Sines and cosines of 1,000 x `times` [B] at geometric rates from 1 to 1/10,000: [B, channels]."""
    half = channels // 2
    rates = torch.exp(-math.log(10_000.0) * torch.arange(half, device=times.device, dtype=torch.float32) / half)
    angles = 1000.0 * times.float()[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)
