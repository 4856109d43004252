"""What a run leaves behind: checkpoints that are whole or not there, and what the voice sounds like so far."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.io.torch_io import TorchCheckpointIO
from numpy.typing import NDArray
from pytorch_lightning.callbacks import Callback, Checkpoint, ModelCheckpoint
from pytorch_lightning.loggers import TensorBoardLogger
from pytorch_lightning.utilities.exceptions import SIGTERMException

from dataprep.shards.atomic import atomic_file
from schemas.errors import MachineError
from trainer.data.batch import Batch
from trainer.data.dataset import ShardDataset
from trainer.data.module import ShardDataModule
from trainer.data.sampler import BatchRequest
from trainer.lit import VoiceModule
from trainer.recipe import mixed_seed
from trainer.synth.checkpoint import read_checkpoint, require_resumable
from trainer.synth.vocoder import GriffinLim, Vocoder

LAST_NAME = "last.ckpt"


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

    def on_train_batch_end(self, trainer: pl.Trainer, *_: object) -> None:
        """Saves if the last one is `every_seconds` old."""
        if trainer.global_step % self.CHECK_EVERY_STEPS == 0:
            due = time.monotonic() - self._saved_at >= self.every_seconds
            if trainer.strategy.broadcast(due):
                self._save(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Saves, so that best and last belong together."""
        self._save(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Saves in any case."""
        self._save(trainer)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:  # noqa: ARG002
        """Saves when the scheduler asks the run to go, which Lightning raises between two steps.

        Not on other exceptions: they may come from the middle of a step, and from one rank alone.
        """
        if isinstance(exception, SIGTERMException) and trainer.world_size == 1:
            self._save(trainer)

    def _save(self, trainer: pl.Trainer) -> None:
        trial: object = trainer.fast_dev_run  # type: ignore[attr-defined]  # set when the Trainer is made
        if trainer.sanity_checking or trial or trainer.global_step == self._saved_step:
            return
        trainer.save_checkpoint(self.path, weights_only=False)
        self._saved_at, self._saved_step = time.monotonic(), trainer.global_step


def how_to_go_on(run: Path, shards: Path | None = None) -> str:
    """What to do after a run was ended from outside: go on from its last checkpoint, if it has one."""
    if (run / "checkpoints" / LAST_NAME).is_file():
        return f"trainer fit {shards or 'SHARDS'} --ckpt_path {run} continues from its last checkpoint"
    return "start it again: it had no checkpoint yet"


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


class InterruptStop(Callback):
    """Ctrl-C ends the run after the step that is being computed, with a checkpoint; a second one ends it at once.

    On one rank only: several would be told at different steps.
    """

    def __init__(self) -> None:
        self._usual: object = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Listens to the signal."""
        if trainer.world_size > 1 or threading.current_thread() is not threading.main_thread():
            return

        owner = os.getpid()

        def stop(*_: object) -> None:
            if os.getpid() != owner:
                return  # a data worker: it inherits this, the terminal's Ctrl-C reaches it too, and its owner ends it
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.stderr.write("stopping after this step; Ctrl-C again ends at once, with the last checkpoint\n")
            trainer.should_stop = True

        self._usual = signal.signal(signal.SIGINT, stop)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Listens no more."""
        if self._usual is not None:
            signal.signal(signal.SIGINT, self._usual)  # type: ignore[arg-type]  # as signal.signal gave it


class SampleWriter(Callback):
    """After each validation, shows and plays a few utterances of the validation split in TensorBoard.

    For each: the recorded mel, the alignment, and what the averaged weights make of its symbols, as mel and as sound
    (Griffin-Lim). Cost: a few short utterances on one rank.

    Args:
        num_utterances: how many.
        max_frames: longest utterance that is taken.
        num_steps: steps of the flow.
    """

    def __init__(self, num_utterances: int = 2, max_frames: int = 600, num_steps: int = 10) -> None:
        self.num_utterances, self.max_frames, self.num_steps = num_utterances, max_frames, num_steps
        self._vocoder: Vocoder | None = None

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Writes them, on the first rank."""
        loggers = [logger for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]
        data: object = trainer.datamodule  # type: ignore[attr-defined]  # set by Trainer.fit
        if trainer.sanity_checking or not trainer.is_global_zero or not loggers:
            return
        if not isinstance(pl_module, VoiceModule) or not isinstance(data, ShardDataModule):
            return
        with pl_module.average.applied(pl_module.model):
            for place, row in enumerate(data.example_rows(self.num_utterances, self.max_frames)):
                self._write(loggers[0], pl_module, single(data, row), place)

    def _write(self, logger: TensorBoardLogger, module: VoiceModule, batch: Batch, place: int) -> None:
        assert module.header is not None
        board, step = logger.experiment, module.global_step
        spec = module.header.feature_spec
        self._vocoder = self._vocoder or GriffinLim(spec)
        moved = batch.to(module.device)
        generator = torch.Generator(module.device).manual_seed(mixed_seed(module.seed, place))
        with torch.no_grad():
            durations = module.model(moved, generator).token_durations[0]
        mel = module.model.infer(moved.symbol_ids[0], int(batch.speakers[0]), self.num_steps, generator)
        spoken = mel.float().cpu().numpy()
        name = batch.keys[0]
        board.add_image(f"{name}/recorded", picture(batch.mels[0].numpy()), step, dataformats="HW")
        board.add_image(f"{name}/spoken", picture(spoken), step, dataformats="HW")
        board.add_image(f"{name}/alignment", picture(alignment(durations.cpu().numpy())), step, dataformats="HW")
        board.add_audio(f"{name}/spoken", self._vocoder(spoken)[None], step, sample_rate=spec.sample_rate)


def single(data: ShardDataModule, row: int) -> Batch:
    """A batch of one utterance, by its row in the index."""
    columns = data.shard_set.columns
    request = BatchRequest(
        rows=np.array([row]), weights=np.ones(1, np.float32), group_frames=int(columns.frames[row]),
        group_symbols=int(columns.symbols[row]), num_slots=1,
    )  # fmt: skip
    return ShardDataset(data.shard_set).read(request)


def picture(values: NDArray[Any]) -> NDArray[np.uint8]:
    """`[rows, columns]` as grey values, the lowest row at the bottom."""
    low, high = float(values.min()), float(values.max())
    return ((values[::-1] - low) / max(high - low, 1e-6) * 255).astype(np.uint8)


def alignment(durations: NDArray[np.int64]) -> NDArray[np.float32]:
    """Frames of each token `[N]` as the path of the alignment, `[N, T]`: 1 where a token has a frame."""
    ends = durations.cumsum()
    frames = np.arange(int(ends[-1]))
    return ((frames >= (ends - durations)[:, None]) & (frames < ends[:, None])).astype(np.float32)
