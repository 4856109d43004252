"""Masked losses as sums per utterance, and how they become the loss of a micro-batch.

Sums, not means: an utterance counts by its own frames and symbols, however it is batched and padded. The totals that
they are divided by are those of the whole step group, so a step's gradient is the same for any number of ranks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.data.batch import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class UtteranceLosses:
    """Sums of each utterance, float32 [B]."""

    duration: Tensor
    """Deviance of the durations: mean over tokens, times symbols."""
    prior: Tensor
    """Negative log density of the mel around its tokens' means: mean over bands, sum over frames."""
    flow: Tensor
    """Squared error of the velocity: mean over bands, sum over frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Losses of a micro-batch; their mean over the step group's slots is the weighted mean over the group."""

    total: Tensor
    """Sum of the three below; scalar with gradient."""
    duration: Tensor
    """Mean deviance of a token's duration; scalar."""
    prior: Tensor
    """A frame's mean negative log density in each band, never below 0.5 log(2 pi) = 0.919; scalar."""
    flow: Tensor
    """A frame's mean squared error of the velocity in each band; scalar."""
    utterances: UtteranceLosses
    """What they are made of."""
    token_durations: Tensor
    """Frames of each token by the alignment, int64 [B, 2 L + 1]."""


def duration_sums(predicted_logs: Tensor, durations: Tensor, token_mask: Tensor, symbol_lengths: Tensor) -> Tensor:
    """Gamma deviance of the durations [B]: w / v - 1 - log(w / v), doubled, of w frames where v were predicted.

    Near v = w it is the squared error of the logarithms, but it is smallest where v is the mean of w, not its geometric
    mean, so that utterances come out as long as those recorded. Squared logarithms made spoken digits 15 % too short.

    Args:
        predicted_logs: log v, [B, L].
        durations: w, int64 [B, L], 0 where there is no token.
        token_mask: bool [B, 1, L].
        symbol_lengths: int64 [B]; a row's mean over tokens is multiplied by it.
    """
    mask = token_mask[:, 0]
    log_ratios = durations.clamp(min=1).to(predicted_logs.dtype).log() - predicted_logs
    deviances = 2 * (log_ratios.exp() - 1 - log_ratios) * mask
    return deviances.sum(1) * symbol_lengths / mask.sum(1)


def prior_sums(means: Tensor, mels: Tensor, mask: Tensor) -> Tensor:
    """Negative log density under a unit normal [B]; `means` and `mels` [B, M, T], `mask` bool [B, 1, T]."""
    densities = 0.5 * ((mels - means).square() + math.log(2 * math.pi)) * mask
    return densities.mean(1).sum(1)


def flow_sums(velocity: Tensor, wanted: Tensor, mask: Tensor) -> Tensor:
    """Squared error [B]; `velocity` and `wanted` [B, M, T], `mask` bool [B, 1, T] applied to both."""
    return ((velocity - wanted).square() * mask).mean(1).sum(1)


def micro_batch_losses(sums: UtteranceLosses, batch: Batch, token_durations: Tensor) -> Losses:
    """Weights the sums: `num_slots` * sum of weight x sum / the group's total frames (symbols for durations)."""

    def weighted(values: Tensor, group_total: float) -> Tensor:
        return batch.num_slots * torch.dot(batch.weights, values) / group_total

    duration = weighted(sums.duration, batch.group_symbols)
    prior = weighted(sums.prior, batch.group_frames)
    flow = weighted(sums.flow, batch.group_frames)
    return Losses(
        total=duration + prior + flow,
        duration=duration.detach(),
        prior=prior.detach(),
        flow=flow.detach(),
        utterances=sums,
        token_durations=token_durations,
    )
