"""`SkippingModule`: steps whose loss or gradient is not finite are left out, on all ranks, and counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from pytorch_lightning.utilities import rank_zero_warn

from schemas.errors import TrainingError
from trainer.lockstep import LockstepModule


class SkippingModule(LockstepModule):
    """Looks at the gradients after their exchange, so all ranks decide alike.

    Args:
        max_skipped_steps: steps that may be left out before the run is ended.
    """

    def __init__(self, max_skipped_steps: int) -> None:
        super().__init__()
        self.max_skipped_steps, self.skipped_steps = max_skipped_steps, 0
        self._skip = False

    def on_stepped(self) -> None:
        """Called after each step that was taken."""

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clips as the Trainer says. Gradients that are not finite are dropped: without any, AdamW changes nothing."""
        norm = torch.nn.utils.get_total_norm([item.grad for item in self.trained if item.grad is not None])
        self.log("train/gradient_norm", norm)
        self._skip = not bool(norm.isfinite())
        if self._skip:
            optimizer.zero_grad(set_to_none=True)
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def optimizer_step(
        self,
        epoch: int,
        batch_idx: int,
        optimizer: torch.optim.Optimizer | LightningOptimizer,
        optimizer_closure: Callable[[], Any] | None = None,
    ) -> None:
        """Steps, and counts the steps that were skipped.

        Raises:
            TrainingError: more than `max_skipped_steps` were, or as `conclude`.
        """
        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)
        if not self._skip:
            self.on_stepped()
            return
        self.skipped_steps += 1
        step = self.trainer.global_step
        rank_zero_warn(f"step {step} is skipped: its loss or gradient is not finite ({self.skipped_steps} so far)")
        if self.skipped_steps > self.max_skipped_steps:
            raise TrainingError(
                f"{self.skipped_steps} steps up to step {step} had a loss or gradient that is not finite, "
                f"at most {self.max_skipped_steps} may",
                hint="resume the last checkpoint with a lower --model.learning_rate, or --trainer.precision 32",
            )

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keeps the count."""
        super().on_save_checkpoint(checkpoint)
        checkpoint["skipped_steps"] = self.skipped_steps

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Goes on counting."""
        super().on_load_checkpoint(checkpoint)
        self.skipped_steps = int(checkpoint["skipped_steps"])
