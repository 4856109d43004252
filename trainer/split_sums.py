"""`SplitSums`: losses of a whole split, added up utterance by utterance: batches and ranks do not matter."""

from __future__ import annotations

import torch
from pytorch_lightning.strategies import Strategy
from torch import Tensor

from trainer.data.batch import Batch
from trainer.model.losses import UtteranceLosses


class SplitSums:
    """Sums over the utterances that this rank has computed, in float64.

    Args:
        device: where they are added up.
    """

    def __init__(self, device: torch.device | str) -> None:
        self._sums = torch.zeros(5, dtype=torch.float64, device=device)

    def add(self, batch: Batch, losses: UtteranceLosses) -> None:
        """Adds utterances, each by its weight."""
        values = (losses.duration, losses.prior, losses.flow, batch.symbol_lengths, batch.mel_lengths)
        self._sums += torch.stack([torch.dot(batch.weights.double(), value.double()) for value in values])

    def means(self, strategy: Strategy) -> dict[str, Tensor]:
        """Duration loss a symbol, prior and flow loss a frame, and their sum, over all ranks, float32 scalars."""
        duration, prior, flow, symbols, frames = strategy.reduce(self._sums, reduce_op="sum")
        means = {"duration": duration / symbols, "prior": prior / frames, "flow": flow / frames}
        means["loss"] = means["duration"] + means["prior"] + means["flow"]
        return {name: value.float() for name, value in means.items()}
