"""`LockstepModule`: a Lightning module that computes micro-batches in parts and lets ranks exchange once a step.

`training_step` computes the gradients itself; Lightning's own backward only puts them into their places. The ranks
exchange before the optimizer's step, so each takes part once, in however many parts it computed its micro-batches and
whether or not something went wrong on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from pytorch_lightning.plugins import MixedPrecision
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor
from torch.nn import Parameter

from schemas.errors import FormatError
from trainer.chance import Chance
from trainer.data.batch import Batch
from trainer.exchange import Stop, Word, agree, average_gradients, gather_news, switch_off_reducer
from trainer.gradients import GradientSum
from trainer.memory import Budget
from trainer.model.losses import Losses


class LockstepModule(pl.LightningModule):
    """What every rank does, whatever is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget()
        self.stop_wanted = Stop.NO
        """Set by a signal to this rank."""
        self.stop_agreed = Stop.NO
        """What all ranks have heard with the last step."""

    def train_on(self, parameters: Iterable[Parameter]) -> None:
        """Says whose gradients are computed."""
        self.trained = list(parameters)
        self.gradients = GradientSum(self.trained)

    def losses(self, batch: Batch, generator: torch.Generator) -> Losses:
        """The losses of what is computed at once, with all chance from `generator` and torch's own."""
        raise NotImplementedError

    def on_fit_start(self) -> None:
        """Takes the exchange over from the strategy. Raises UsageError where it is one that would not have it."""
        switch_off_reducer(self.trainer)
        self.budget.rank = self.trainer.global_rank

    def add_gradients(self, batch: Batch, chance: Chance) -> Tensor:
        """Adds the gradients of a micro-batch to `self.gradients`, in as many parts as memory takes.

        Returns:
            total, duration, prior and flow loss, float32 [4]; without meaning where the last of `budget.news` is a
            single utterance, which did not fit.
        """
        losses_of_all = torch.zeros(4, device=self.device)

        def compute(part: Batch, first: int) -> Tensor:
            with chance.part(first) as generator:
                losses = self.losses(part, generator)
                total = losses.total.detach()
                # A loss that is not finite may have finite gradients. Poisoned, they reach all ranks, and all skip.
                self.gradients.add(self._scaled(losses.total * torch.where(total.isfinite(), 1.0, torch.nan)))
            return torch.stack([total, losses.duration, losses.prior, losses.flow])

        for _, values in self.budget.computed(batch, compute):
            losses_of_all += values
        return losses_of_all

    def _scaled(self, loss: Tensor) -> Tensor:
        """The loss whose gradients add up to the step's: a mean over accumulations, scaled for float16 if need be."""
        plugin, mean = self.trainer.precision_plugin, loss / self.trainer.accumulate_grad_batches
        if isinstance(plugin, MixedPrecision) and plugin.scaler is not None:
            scaled: Tensor = plugin.scaler.scale(mean)
            return scaled
        return mean

    def backward(self, loss: Tensor, *_: Any, **__: Any) -> None:  # noqa: ANN401, ARG002
        """Gives the parameters the gradients that `add_gradients` has computed; Lightning has zeroed them by now."""
        self.gradients.hand_over()

    def optimizer_step(
        self,
        epoch: int,
        batch_idx: int,
        optimizer: torch.optim.Optimizer | LightningOptimizer,
        optimizer_closure: Callable[[], Any] | None = None,
    ) -> None:
        """Steps, after an exchange between what the closure does (training step and backward) and all else.

        So it comes before gradients in float16 are unscaled: what is infinite on one rank must be so on all.

        Raises:
            TrainingError: as `conclude`.
        """
        assert optimizer_closure is not None

        def exchanged() -> object:
            result = optimizer_closure()
            self.conclude()
            if self.trainer.world_size > 1:
                average_gradients(self.trained, self.trainer.world_size)
            return result

        super().optimizer_step(epoch, batch_idx, optimizer, exchanged)
        for item in self.trained:
            item.grad = None  # not needed while the next step's are computed beside them

    def conclude(self) -> None:
        """Brings all ranks to one limit and one wish to stop; each has to call it.

        Raises:
            TrainingError: a single utterance did not fit into the memory of a rank; on all ranks.
        """
        world_size, budget = self.trainer.world_size, self.budget
        mine = Word(stop=self.stop_wanted, limit=budget.limit, has_news=bool(budget.news))
        word = agree(mine, self.device, world_size)
        self.stop_agreed = word.stop
        budget.take(word.limit)
        if not word.has_news:
            return
        news = gather_news(budget.news, world_size)
        budget.news.clear()
        for item in news:
            if item.is_single:
                raise item.error()
            rank_zero_warn(f"{item}; from now on, at most {budget.limit} padded frames are computed at once")

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keeps what was learnt of the memory."""
        checkpoint["max_frames_at_once"] = self.budget.limit

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Starts with what was learnt of the memory. Raises FormatError where it is no number."""
        limit = checkpoint.get("max_frames_at_once")
        if limit is not None and not isinstance(limit, int):
            raise FormatError(
                f"max_frames_at_once is {limit!r}, not a whole number", hint="use a checkpoint that `trainer fit` wrote"
            )
        self.budget.take(limit)
