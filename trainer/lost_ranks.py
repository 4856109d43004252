"""A rank that is gone ends the others, which may wait for it in an exchange and cannot end by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.strategies.launchers import _SubprocessScriptLauncher

from trainer.going_on import how_to_go_on

LOST = "another process of this run is gone: killed, perhaps because memory ran out, or ended by an error of its own"
_SIGNS = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "gloo", "NCCL", "ProcessGroup")
"""What torch's exchanges say when the other side is gone."""


class LostRanks(Callback):
    """Watches the processes that this one has started, or the one that it was started by.

    Where one is gone, a rank usually ends within its next exchange, by an error of that exchange. Where it does not, as
    one that waits for a GPU's exchange may not, this ends it.

    Lightning has a watch of its own (`lightning_fabric.strategies.launchers`), which looks every five seconds and kills
    all processes, the first too, so that nobody could say what has happened. This one takes its place.

    Args:
        run: folder of the run.
        shards: the shard sets, as they were given, for what is told.
    """

    CHECK_SECONDS, GRACE_SECONDS = 0.5, 30.0

    def __init__(self, run: Path, shards: str) -> None:
        self._run, self._shards = run, shards
        self._ended = threading.Event()
        self._is_told = False
        self._watch: threading.Thread | None = None

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:  # noqa: ARG002
        """Starts to watch, where there is more than one process."""
        launcher = trainer.strategy.launcher
        if trainer.world_size == 1 or not isinstance(launcher, _SubprocessScriptLauncher) or self._watch is not None:
            return
        _dismiss_lightning_s()
        arguments = (launcher.procs, os.getppid(), trainer.is_global_zero)
        self._watch = threading.Thread(target=self._look, args=arguments, name="lost-ranks", daemon=True)
        self._watch.start()

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:  # noqa: ARG002
        """Watches no more."""
        self._ended.set()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:  # noqa: ARG002
        """The main thread is on its way out, and tells why."""
        self._is_told = True

    def _look(self, children: Sequence[subprocess.Popen[bytes]], parent: int, is_first: bool) -> None:
        while not self._ended.wait(self.CHECK_SECONDS):
            if any(child.poll() for child in children) or os.getppid() != parent:
                break
        if self._ended.wait(self.GRACE_SECONDS):
            return
        for child in children:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
        if is_first and not self._is_told:
            sys.stderr.write(f"error: {LOST}\nnext: {how_to_go_on(self._run, self._shards)}\n")
            sys.stderr.flush()
        os._exit(1)  # the main thread is in an exchange that nothing ends


def _dismiss_lightning_s() -> None:
    for thread in threading.enumerate():
        if thread.name == "child-process-observer":
            thread._child_processes = []  # type: ignore[attr-defined]  # it ends when none of its processes is left


def is_lost_rank(error: RuntimeError) -> bool:
    """Whether an error says that an exchange failed since another rank is gone."""
    return any(sign in str(error) for sign in _SIGNS)
