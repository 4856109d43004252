"""The limits of a run, said before it starts, and told when a resumed run has nothing left of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Timer

from schemas.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What ends a run, or how much of it a run has used."""

    steps: int | None
    """Optimizer steps, counted from the run's first start."""
    epochs: int | None
    """Epochs, counted likewise."""
    seconds: float | None
    """Time spent training, counted likewise."""

    @classmethod
    def of(cls, trainer: pl.Trainer) -> Limits:
        """Those of a Trainer that has not started yet."""
        times = [callback.time_remaining() for callback in trainer.callbacks if isinstance(callback, Timer)]  # type: ignore[attr-defined]  # set when made
        known = [seconds for seconds in times if seconds is not None]
        epochs = trainer.max_epochs
        return cls(
            steps=None if trainer.max_steps == -1 else trainer.max_steps,
            epochs=None if epochs in (None, -1) else epochs,
            seconds=min(known, default=None),
        )

    @classmethod
    def used_by(cls, checkpoint: Mapping[str, Any]) -> Limits:
        """What the run that wrote a checkpoint had used."""
        times = checkpoint.get("callbacks", {}).get("Timer", {}).get("time_elapsed", {})
        return cls(
            steps=int(checkpoint["global_step"]),
            epochs=int(checkpoint["loops"]["fit_loop"]["epoch_progress"]["current"]["processed"]),
            seconds=float(times.get("train", 0.0)),
        )

    def __str__(self) -> str:
        told = [
            *([f"{self.steps} steps"] if self.steps is not None else []),
            *([f"{self.epochs} epochs"] if self.epochs is not None else []),
            *([duration(self.seconds)] if self.seconds is not None else []),
        ]
        return f"at most {' or '.join(told)}" if told else "without a limit"

    def require_more_than(self, used: Limits) -> None:
        """Checks that something is left to train.

        Raises:
            UsageError: one of the limits was reached before; the hint says what to give.
        """
        counted = "counted from the run's first start"
        if self.seconds is not None and self.seconds <= (used.seconds or 0):
            raise UsageError(
                f"the run had already used its max_time {duration(self.seconds)}: there is nothing left to train",
                hint=f"give a larger --trainer.max_time, {counted}",
            )
        for name, limit, done in (("steps", self.steps, used.steps), ("epochs", self.epochs, used.epochs)):
            if limit is not None and limit <= (done or 0):
                raise UsageError(
                    f"the run had already reached its max_{name} {limit}: there is nothing left to train",
                    hint=f"give a larger --trainer.max_{name}, {counted}",
                )


def duration(seconds: float) -> str:
    """Seconds as DD:HH:MM:SS, as `--trainer.max_time` takes them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return ":".join(f"{part:02d}" for part in (days, hours, minutes, rest))
