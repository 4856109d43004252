"""The options of training, and the optimizer and its learning rate that they make."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import get_args

import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch.nn import Parameter
from torch.optim.lr_scheduler import LambdaLR

from schemas.errors import UsageError
from trainer.recipe import Schedule, learning_rate_factor


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """How a model is trained: AdamW, whose learning rate is a pure function of the optimizer step.

    Raises:
        UsageError: values outside their range; the message names all of them.
    """

    learning_rate: float
    """After the warm-up."""
    warmup_steps: int
    """Optimizer steps over which it rises from 0."""
    schedule: Schedule
    """What it does then."""
    weight_decay: float
    """For weights with two or more axes."""
    ema_decay: float
    """Share of the averaged weights that each step keeps."""
    seed: int
    """Of the initial weights and of all chance."""
    max_skipped_steps: int
    """Steps that may be left out because loss or gradient is not finite."""

    def __post_init__(self) -> None:
        schedules = get_args(Schedule)
        allowed = {
            "learning_rate": (0 < self.learning_rate < math.inf, "above 0"),
            "warmup_steps": (self.warmup_steps >= 0, "at least 0"),
            "schedule": (self.schedule in schedules, f"one of {', '.join(schedules)}"),
            "weight_decay": (0 <= self.weight_decay < math.inf, "at least 0"),
            "ema_decay": (0 <= self.ema_decay < 1, "from 0 to below 1"),
            "seed": (self.seed >= 0, "at least 0"),
            "max_skipped_steps": (self.max_skipped_steps >= 0, "at least 0"),
        }
        wrong = [
            f"{name} = {getattr(self, name)!r} must be {told}" for name, (fits, told) in allowed.items() if not fits
        ]
        if wrong:
            raise UsageError("training: " + "; ".join(wrong), hint="change the value")

    def to_dict(self) -> dict[str, int | float | str]:
        """The options by name, as a checkpoint stores them."""
        return dataclasses.asdict(self)

    @property
    def factor(self) -> Callable[[int], float]:
        """Factor on the learning rate at an optimizer step."""
        return partial(learning_rate_factor, warmup_steps=self.warmup_steps, schedule=self.schedule)

    def optimizer(self, parameters: Iterable[Parameter]) -> OptimizerLRScheduler:
        """Optimizer and schedule of some parameters, as Lightning takes them."""
        parameters = list(parameters)
        groups = [
            {"params": [item for item in parameters if item.ndim >= 2], "weight_decay": self.weight_decay},
            {"params": [item for item in parameters if item.ndim < 2], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=self.learning_rate)
        scheduler = LambdaLR(optimizer, self.factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def impose_on(self, schedulers: Iterable[LambdaLR]) -> None:
        """Gives these options to what `optimizer` made and a checkpoint has changed to those of another run."""
        for scheduler in schedulers:
            scheduler.base_lrs = [self.learning_rate] * len(scheduler.base_lrs)
            decayed, other = scheduler.optimizer.param_groups
            decayed["weight_decay"] = self.weight_decay
            for group in (decayed, other):
                group["initial_lr"] = self.learning_rate
                group["lr"] = self.learning_rate * self.factor(scheduler.last_epoch)
