"""What the model makes of symbol ids: tokens, with a blank before, between and after the symbols.

A blank is where a pause or the passage between two sounds goes, so that the alignment need not give it to either.
Data and plan never see tokens: L symbols are 2 L + 1 tokens only in here.
"""

from __future__ import annotations

import torch
from torch import Tensor


def num_tokens(num_symbols: int) -> int:
    """Tokens of `num_symbols` symbols. An utterance needs at least as many frames to be aligned.

    >>> num_tokens(3)
    7
    """
    return 2 * num_symbols + 1


def interleave_blanks(symbol_ids: Tensor, blank_id: int) -> Tensor:
    """Ids int64 [B, L] -> token ids int64 [B, 2 L + 1]; symbol `i` becomes token `2 i + 1`."""
    tokens = symbol_ids.new_full((symbol_ids.shape[0], num_tokens(symbol_ids.shape[1])), blank_id)
    tokens[:, 1::2] = symbol_ids
    return tokens


def length_mask(lengths: Tensor, max_length: int) -> Tensor:
    """Lengths int64 [B] -> bool [B, 1, max_length], true where there is something."""
    return (torch.arange(max_length, device=lengths.device) < lengths[:, None])[:, None]


def spread(tokens: Tensor, durations: Tensor, num_frames: int) -> Tensor:
    """Repeats each token for its frames.

    Args:
        tokens: float [B, C, L].
        durations: int64 [B, L], frames of each token.
        num_frames: frames of the result; those after a row's last token repeat the last column of `tokens`.

    Returns:
        float [B, C, num_frames].
    """
    ends = durations.cumsum(dim=1)  # [B, L]
    frames = torch.arange(num_frames, device=durations.device).expand(durations.shape[0], -1).contiguous()
    owner = torch.searchsorted(ends, frames, right=True).clamp(max=durations.shape[1] - 1)  # [B, T]
    return tokens.gather(2, owner[:, None].expand(-1, tokens.shape[1], -1))
