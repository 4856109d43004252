"""Monotonic alignment search: which token speaks in which frame.

Of all ways to give the frames to the tokens in order, each token at least one frame, it finds the one with the largest
total score (Glow-TTS, Kim et al. 2020, https://arxiv.org/abs/2005.11129, section 3.1). A loop over frames, each step
vectorised over utterances and tokens, so no compiler is needed: on one core 0.7 ms for 32 x 11 x 40 (utterances x
tokens x frames), 23 ms for 32 x 150 x 800.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def log_likelihood(means: Tensor, mels: Tensor) -> Tensor:
    """Log density of each frame under a unit normal around each token's mean.

    Args:
        means: float32 [B, M, L].
        mels: float32 [B, M, T], normalised.

    Returns:
        float32 [B, L, T], natural logarithm, summed over the M bands.
    """
    constant = -0.5 * math.log(2 * math.pi) * means.shape[1]
    cross = means.transpose(1, 2) @ mels  # [B, L, T]
    squares = means.square().sum(1)[:, :, None] + mels.square().sum(1)[:, None, :]
    return constant + cross - 0.5 * squares


def align(scores: Tensor, num_tokens: Tensor, num_frames: Tensor) -> Tensor:
    """Frames of each token on the best monotonic path.

    Args:
        scores: float [B, L, T], of each token in each frame.
        num_tokens: int64 [B], from 1 to L.
        num_frames: int64 [B], from 1 to T.

    Returns:
        Durations int64 [B, L]: each at least 1 up to `num_tokens` and 0 after it, with the sum `num_frames`. In a row
        with fewer frames than tokens, which no path can serve, the sum still holds but some durations are 0.
    """
    B, L, T = scores.shape
    by_frame = scores.permute(2, 0, 1).contiguous()  # [T, B, L]
    best = scores.new_full((B, L + 1), -torch.inf)  # column l + 1: best score of a path that is in token l by now
    best[:, 1] = by_frame[0, :, 0]
    moved = torch.zeros((T, B, L), dtype=torch.bool, device=scores.device)
    for frame in range(1, T):
        stay, move = best[:, 1:], best[:, :-1]
        torch.gt(move, stay, out=moved[frame])
        best[:, 1:] = torch.maximum(stay, move) + by_frame[frame]
    return _trace_back(moved, num_tokens, num_frames)


def _trace_back(moved: Tensor, num_tokens: Tensor, num_frames: Tensor) -> Tensor:
    """Walks from each row's last token and frame to its first, counting frames. `moved` bool [T, B, L]."""
    T, B, L = moved.shape
    token = (num_tokens - 1)[:, None]  # [B, 1]
    durations = torch.zeros((B, L), dtype=torch.int64, device=moved.device)
    inside = (torch.arange(T, device=moved.device)[:, None, None] < num_frames[:, None]).to(torch.int64)  # [T, B, 1]
    for frame in range(T - 1, -1, -1):
        durations.scatter_add_(1, token, inside[frame])
        token = token - moved[frame].gather(1, token).to(torch.int64) * inside[frame]
    return durations
