"""Ctrl-C and SIGTERM end a run between two steps, on all ranks at the same one."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities.exceptions import SIGTERMException

from trainer.exchange import Stop
from trainer.lockstep import LockstepModule


class StopSignals(Callback):
    """Ctrl-C ends the run after the step that is being computed, with a checkpoint; a second one ends it at once.

    SIGTERM does the same, and ends validation too. A signal only leaves a note; ranks read it with the next gradients,
    so it is enough if one of them got it. Lightning's own handler of SIGTERM is left alone on one rank. On several it
    would broadcast from within the handler, in the middle of whatever the other ranks are exchanging.
    """

    def __init__(self) -> None:
        self._usual: object = None

    def on_sanity_check_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Listens to SIGTERM from here on: Lightning has just put its handler into place."""
        self._listen(trainer, pl_module)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Listens to both signals."""
        self._listen(trainer, pl_module)

    def _listen(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._usual is not None or threading.current_thread() is not threading.main_thread():
            return
        if not isinstance(pl_module, LockstepModule):
            return
        owner, module = os.getpid(), pl_module

        def stop(number: int, _: object) -> None:
            if os.getpid() != owner:
                return  # a data worker: it inherits this, signals to the whole group reach it too, its owner ends it
            if number == signal.SIGTERM:
                module.stop_wanted = Stop.TERMINATED
                return
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if trainer.is_global_zero:
                sys.stderr.write("stopping after this step; Ctrl-C again ends at once, with the last checkpoint\n")
            module.stop_wanted = max(module.stop_wanted, Stop.INTERRUPTED)

        self._usual = signal.signal(signal.SIGINT, stop)
        if trainer.world_size > 1:
            signal.signal(signal.SIGTERM, stop)  # Lightning puts back what was there before its own
            # Lightning asks rank 0 for its SIGTERM before each micro-batch, and waits for the answer
            trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = _nothing  # type: ignore[method-assign]

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: object) -> None:
        """Stops after Ctrl-C."""
        self._stop_if_agreed(trainer, pl_module)

    def on_validation_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: object) -> None:
        """Ranks ask each other: validation may take longer than a scheduler waits. Raises SIGTERMException."""
        if trainer.world_size > 1 and isinstance(pl_module, LockstepModule):
            pl_module.conclude()
            if pl_module.stop_agreed is Stop.TERMINATED:
                raise SIGTERMException

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stops after Ctrl-C."""
        self._stop_if_agreed(trainer, pl_module)

    def _stop_if_agreed(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if isinstance(pl_module, LockstepModule) and pl_module.stop_agreed is Stop.INTERRUPTED:
            trainer.should_stop = True

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Listens no more to Ctrl-C."""
        if self._usual is not None:
            signal.signal(signal.SIGINT, self._usual)  # type: ignore[arg-type]  # as signal.signal gave it


def _nothing() -> None:
    """What is left to do where the gradients carry the wish to stop."""
