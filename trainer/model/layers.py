"""The blocks that encoder and decoder are stacks of.

Axes: B utterances, C channels, T positions (tokens or frames). Everything is [B, C, T]; masks are bool [B, 1, T].
Each convolution sees zeros beyond an utterance's end, and nothing is averaged over positions, so a longer padding
changes nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class ChannelNorm(nn.Module):
    """Layer normalisation over the channels of each position of [B, C, T]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, T] -> [B, C, T]."""
        normed: Tensor = self.norm(x.transpose(1, 2))
        return normed.transpose(1, 2)


class ConvBlock(nn.Module):
    """Residual pair of convolutions, steered by a condition: scale and shift after the norm.

    Args:
        channels: width C.
        kernel_size: taps of both convolutions, odd.
        condition_channels: width D of the condition.
        dropout: share of activations dropped between the convolutions.
    """

    def __init__(self, channels: int, kernel_size: int, condition_channels: int, dropout: float) -> None:
        super().__init__()
        self.norm = ChannelNorm(channels)
        self.steer = nn.Linear(condition_channels, 2 * channels)
        self.widen = nn.Conv1d(channels, channels, kernel_size, padding=kernel_size // 2)
        self.dropout = nn.Dropout(dropout) if dropout > 0 else nn.Identity()
        self.narrow = nn.Conv1d(channels, channels, kernel_size, padding=kernel_size // 2)
        nn.init.zeros_(self.narrow.weight)  # a new block changes nothing: deep stacks start calmly

    def forward(self, x: Tensor, mask: Tensor, condition: Tensor) -> Tensor:
        """`x` [B, C, T], `mask` [B, 1, T], `condition` [B, D] -> [B, C, T]."""
        scale, shift = self.steer(condition)[:, :, None].chunk(2, dim=1)  # [B, C, 1] each
        hidden = torch.addcmul(shift, self.norm(x), 1 + scale) * mask
        hidden = functional.gelu(self.widen(hidden)) * mask
        narrowed: Tensor = self.narrow(self.dropout(hidden))
        return x + narrowed * mask


class AttentionBlock(nn.Module):
    """Residual self-attention with rotary positions, then a residual feed-forward layer.

    Args:
        channels: width C, a multiple of twice `heads`.
        heads: attention heads.
        feed_forward_channels: width of the feed-forward layer.
        dropout: share of activations dropped before each sum.
    """

    def __init__(self, channels: int, heads: int, feed_forward_channels: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(channels)
        self.to_query_key_value = nn.Linear(channels, 3 * channels)
        self.from_heads = nn.Linear(channels, channels)
        narrow = nn.Linear(feed_forward_channels, channels)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(channels), nn.Linear(channels, feed_forward_channels), nn.GELU(), nn.Dropout(dropout), narrow
        )
        self.dropout = nn.Dropout(dropout)
        for last in (self.from_heads, narrow):
            nn.init.zeros_(last.weight)  # as in ConvBlock

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """`x` [B, C, T], `mask` [B, 1, T] -> [B, C, T]."""
        y: Tensor = x.transpose(1, 2)  # [B, T, C]
        B, T, C = y.shape
        packed = self.to_query_key_value(self.attention_norm(y)).view(B, T, 3, self.heads, C // self.heads)
        query, key, value = packed.permute(2, 0, 3, 1, 4)  # [B, H, T, C/H] each
        mixed = functional.scaled_dot_product_attention(rotate(query), rotate(key), value, attn_mask=mask[:, None])
        y = y + self.dropout(self.from_heads(mixed.transpose(1, 2).reshape(B, T, C)))
        y = y + self.dropout(self.feed_forward(y))
        return y.transpose(1, 2) * mask


def rotate(x: Tensor) -> Tensor:
    """Turns pairs of channels by angles that grow with the position, so that attention sees distances.

    Rotary position embedding of Su et al. 2021 (https://arxiv.org/abs/2104.09864), base 10,000, halves as pairs.

    Args:
        x: [B, H, T, D], D even.
    """
    half = x.shape[-1] // 2
    rates = 10_000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = torch.arange(x.shape[2], device=x.device, dtype=torch.float32)[:, None] * rates  # [T, D/2]
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)


class Stack(nn.Module):
    """`num_blocks` convolution blocks, each followed by attention where `heads` is not 0, and a norm at the end.

    Args:
        channels: width C.
        num_blocks: blocks.
        kernel_size: taps of the convolutions.
        condition_channels: width D of the condition.
        heads: attention heads, or 0.
        feed_forward_channels: width of the attention's feed-forward layer.
        dropout: share of activations dropped.
    """

    def __init__(
        self,
        *,
        channels: int,
        num_blocks: int,
        kernel_size: int,
        condition_channels: int,
        heads: int,
        feed_forward_channels: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            ConvBlock(channels, kernel_size, condition_channels, dropout) for _ in range(num_blocks)
        )
        self.attentions = nn.ModuleList(
            AttentionBlock(channels, heads, feed_forward_channels, dropout) for _ in range(num_blocks if heads else 0)
        )
        self.norm = ChannelNorm(channels)

    def forward(self, x: Tensor, mask: Tensor, condition: Tensor) -> Tensor:
        """`x` [B, C, T], `mask` [B, 1, T], `condition` [B, D] -> [B, C, T], zero beyond each utterance's end."""
        for number, convolution in enumerate(self.convolutions):
            x = convolution(x, mask, condition)
            if self.attentions:
                x = self.attentions[number](x, mask)
        normed: Tensor = self.norm(x)
        return normed * mask
