"""What a run leaves behind to go on from: checkpoints that are whole or not there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.io.torch_io import TorchCheckpointIO
from pytorch_lightning.callbacks import Checkpoint, ModelCheckpoint
from pytorch_lightning.utilities.exceptions import SIGTERMException

from dataprep.shards.atomic import atomic_file
from schemas.errors import MachineError
from trainer.exchange import Stop
from trainer.going_on import LAST_NAME, how_to_go_on
from trainer.lockstep import LockstepModule
from trainer.synth.checkpoint import read_checkpoint, require_resumable


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint under a temporary name beside it, synced, then renamed.

    Lightning's own goes through the system's temporary folder, from where a move to another disk is a copy.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:  # noqa: ANN401, ARG002
        """Saves, or leaves the checkpoint of that name as it was.

        Raises:
            MachineError: it could not be written, as to a full disk.
        """
        try:
            with atomic_file(Path(path)) as handle:
                torch.save(checkpoint, handle)
        except (OSError, RuntimeError) as error:
            # torch hides the machine's error behind one of its ZIP writer, which missed the bytes
            cause = error if isinstance(error, OSError) else error.__context__
            if not isinstance(cause, OSError) and "enforce fail" not in str(error):
                raise
            reason = cause.strerror if isinstance(cause, OSError) else "is the disk full?"
            again = f"free some space (or mend what the message says); then {how_to_go_on(Path(path).parent.parent)}"
            raise MachineError(f"the checkpoint could not be written: {reason}", hint=again, path=path) from error

    def load_checkpoint(
        self,
        path: Any,  # noqa: ANN401
        map_location: Any | None = None,  # noqa: ANN401, ARG002
        weights_only: bool | None = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Loads onto the CPU what training can go on from. Raises FormatError."""
        content = read_checkpoint(Path(path))
        require_resumable(content, Path(path))
        return dict(content)


class LastCheckpoint(Checkpoint):
    """Keeps `last.ckpt`: after a while of training, after each validation, and when training ends or is told to.

    Args:
        folder: where it is written.
        every_seconds: how much training a crash may cost.
    """

    CHECK_EVERY_STEPS = 10  # ranks agree on the time by a broadcast, which is not free

    def __init__(self, folder: Path, every_seconds: float = 120.0) -> None:
        self.path = folder / LAST_NAME
        self.every_seconds = every_seconds
        self._saved_at = time.monotonic()
        self._saved_step = -1

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """The clock starts."""
        self._saved_at = time.monotonic()

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: object) -> None:
        """Saves if the last one is `every_seconds` old. Checkpoint callbacks are called after all others."""
        _end_if_terminated(pl_module)
        if trainer.global_step % self.CHECK_EVERY_STEPS == 0:
            due = time.monotonic() - self._saved_at >= self.every_seconds
            if trainer.strategy.broadcast(due):
                self._save(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Saves, so that best and last belong together."""
        self._save(trainer)
        _end_if_terminated(pl_module)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Saves in any case."""
        self._save(trainer)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:  # noqa: ARG002
        """Saves when the scheduler asks the run to go, which is raised between two steps, on all ranks.

        Not on other exceptions: they may come from the middle of a step, and from one rank alone.
        """
        if isinstance(exception, SIGTERMException):
            self._save(trainer)

    def _save(self, trainer: pl.Trainer) -> None:
        trial: object = trainer.fast_dev_run  # type: ignore[attr-defined]  # set when the Trainer is made
        if trainer.sanity_checking or trial or trainer.global_step == self._saved_step:
            return
        trainer.save_checkpoint(self.path, weights_only=False)
        self._saved_at, self._saved_step = time.monotonic(), trainer.global_step


def _end_if_terminated(pl_module: pl.LightningModule) -> None:
    """Raises SIGTERMException where ranks have agreed to end. One rank alone needs none of this: Lightning does it."""
    if isinstance(pl_module, LockstepModule) and pl_module.stop_agreed is Stop.TERMINATED:
        raise SIGTERMException


def best_checkpoint(folder: Path) -> ModelCheckpoint:
    """Keeps `best.ckpt`, of the lowest validation loss."""
    return ModelCheckpoint(
        dirpath=str(folder),
        filename="best",
        monitor="val/loss",
        auto_insert_metric_name=False,
        save_on_train_epoch_end=False,
        enable_version_counter=False,
    )
