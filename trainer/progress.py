"""How a run is shown while it trains: the model's size, the mix, and on a terminal one line that is drawn over."""

from __future__ import annotations

import sys
import time

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from torch import Tensor

from trainer.data.module import ShardDataModule

_REDRAW_SECONDS = 0.25


class RunProgress(Callback):
    """Says how many parameters are trained on what mix, and on a terminal shows epoch, step, time and losses.

    Args:
        console: where it is shown; standard error by default.
        enabled: whether the line is drawn on a terminal.
    """

    def __init__(self, console: Console | None = None, *, enabled: bool = True) -> None:
        self._console, self._enabled = console, enabled
        self._progress: Progress | None = None
        self._task = TaskID(0)
        self._drawn_at = 0.0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The size of the model, what an epoch takes of each shard set, and the line's first state."""
        if not trainer.is_global_zero:
            return
        count = sum(parameter.numel() for parameter in pl_module.parameters() if parameter.requires_grad)
        size = f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count:,}"
        sys.stderr.write(f"{size} parameters on {pl_module.device}\n{mix(trainer)}")
        console = self._console or Console(stderr=True)
        if not self._enabled or not console.is_terminal:
            return
        # no thread draws it: one that holds a lock while a data worker is forked would leave that worker stuck
        self._progress = Progress(
            TextColumn("epoch {task.fields[epoch]}  step"),
            MofNCompleteColumn(),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("{task.fields[told]}"),
            console=console,
            auto_refresh=False,
        )
        total = None if trainer.max_steps == -1 else trainer.max_steps
        self._task = self._progress.add_task(
            "", total=total, completed=trainer.global_step, epoch=trainer.current_epoch, told=""
        )
        self._progress.start()

    def on_train_batch_end(self, trainer: pl.Trainer, *_: object) -> None:
        """Draws, but not more often than can be read."""
        if time.monotonic() - self._drawn_at >= _REDRAW_SECONDS:
            self._draw(trainer)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Says why the steps stand still."""
        self._draw(trainer, "validating")

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Draws the new validation loss."""
        self._draw(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Leaves the last state on the screen."""
        self._draw(trainer)
        self._close()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:  # noqa: ARG002
        """Gives the terminal back."""
        self._close()

    def _draw(self, trainer: pl.Trainer, doing: str = "") -> None:
        if self._progress is None:
            return
        self._drawn_at = time.monotonic()
        self._progress.update(
            self._task, completed=trainer.global_step, epoch=trainer.current_epoch, told=f"{losses(trainer)}{doing}"
        )
        self._progress.refresh()

    def _close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def mix(trainer: pl.Trainer) -> str:
    """What the epoch takes of each of several shard sets, a line each; nothing where all of one set is taken."""
    data = getattr(trainer, "datamodule", None)
    if not isinstance(data, ShardDataModule) or data.repeats == (1.0,):
        return ""
    epoch = trainer.current_epoch
    return "".join(
        f"epoch {epoch}: {one.utterances:,} utterances, {one.hours:,.2f} hours of {one.location}, each comes "
        f"{one.repeats:.4g} times\n"
        for one in data.realised(epoch)
    )


def losses(trainer: pl.Trainer) -> str:
    """The losses logged last, as far as there are any."""
    known = {name: trainer.callback_metrics.get(name) for name in ("train/loss", "val/loss")}
    return "".join(f"{name} {float(value):.3f}  " for name, value in known.items() if isinstance(value, Tensor))
