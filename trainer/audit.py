"""What a run computed, written down while it trains: bitmaps of the plan's places, by rank and stretch of steps.

A stretch ends with a checkpoint, an epoch or the run, so a run that goes on from a checkpoint follows on whole ones.
What was computed after the last checkpoint of a killed run is in no stretch that counts, as it is in no weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
from numpy.typing import NDArray
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor

from dataprep.shards.atomic import write_atomic
from schemas.audit import AuditOrigin, AuditPoint, AuditRun, AuditStretch
from schemas.checkpoint import PlanState
from trainer.data.batch import Batch
from trainer.data.module import ShardDataModule
from trainer.data.stretches import AUDIT_FOLDER, RUN_NAME, write_stretch


class Audit(Callback):
    """Writes `audit/` in the folder of a run.

    It stands before the callbacks that save checkpoints: what they save has to be noted by then. Lightning moves those
    that are `Checkpoint` to the end by itself.

    Args:
        run: folder of the run.
    """

    def __init__(self, run: Path) -> None:
        self._folder = run / AUDIT_FOLDER
        self._trainer: pl.Trainer | None = None
        self._run: AuditRun | None = None
        self._epoch, self._first = 0, 0  # of the stretch
        self._batches: list[tuple[int, tuple[int, ...], Tensor]] = []  # (step group, places, their weights)
        self._unreadable: list[tuple[int, int]] = []  # (step group, place)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Writes which data and plan this is, and what the run went on from."""
        self._trainer, data = trainer, _data(trainer)
        state = PlanState.model_validate(data.state_dict())
        origin = None
        if trainer.ckpt_path is not None:
            epoch, groups_done = data.resumed_at
            parent = Path(str(trainer.ckpt_path)).absolute().parent.parent
            origin = AuditOrigin(run=str(parent), epoch=epoch, groups_done=groups_done, is_reset=data.reset_data)
        self._run = AuditRun(
            shards=tuple(str(Path(name).absolute()) if "://" not in name else name for name in data.locations),
            index_sha256=state.index_sha256,
            plan_sha256=state.plan_sha256,
            plan_settings=state.plan_settings,
            repeats=data.repeats,
            origin=origin,
            reached=AuditPoint(epoch=state.epoch, groups_done=state.groups_done),
        )
        self._write_run(trainer, self._run)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: object, batch: Batch, batch_idx: int
    ) -> None:
        """Takes note of what was computed. The weights are looked at later: on a GPU, a look waits for all before."""
        del trainer, pl_module, outputs, batch_idx
        if batch.epoch != self._epoch:
            self._batches.clear()  # of a step group that the end of the last epoch cut short
            self._unreadable.clear()
        if not self._batches:
            self._epoch, self._first = batch.epoch, batch.group
        self._batches.append((batch.group, batch.places, batch.weights))
        self._unreadable += [(batch.group, bad.place) for bad in batch.bad]

    def state_dict(self) -> dict[str, Any]:
        """Nothing. Lightning asks every rank for it before a checkpoint is written: there a stretch ends."""
        trainer = self._trainer
        # also within a validation, at whose end checkpoints are saved
        if trainer is not None and trainer.state.fn is TrainerFn.FITTING and (trainer.training or trainer.validating):
            self._end_stretch(trainer)
        return {}

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """A stretch ends with its epoch."""
        self._end_stretch(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """A stretch ends with the run."""
        self._end_stretch(trainer)

    def _end_stretch(self, trainer: pl.Trainer) -> None:
        """Every rank takes part. When it returns, all stretches up to here are on disk, and `run.json` says so.

        So no checkpoint names groups whose stretch is not there.
        """
        assert self._run is not None
        state = PlanState.model_validate(_data(trainer).state_dict())
        self._flush(trainer, self._run, state.groups_done)
        trainer.strategy.barrier("Audit")
        reached = AuditPoint(epoch=state.epoch, groups_done=state.groups_done)
        if reached != self._run.reached:
            self._run = self._run.model_copy(update={"reached": reached})
            self._write_run(trainer, self._run)

    def _write_run(self, trainer: pl.Trainer, run: AuditRun) -> None:
        if trainer.is_global_zero:
            write_atomic(self._folder / RUN_NAME, run.pretty_json())

    def _flush(self, trainer: pl.Trainer, run: AuditRun, end_group: int) -> None:
        """Writes the stretch up to a step group; what is there of later ones stays for the next."""
        done = [_weighted(places, weights) for group, places, weights in self._batches if group < end_group]
        if not done:
            return
        data = _data(trainer)
        num_places = len(data.selection_of(self._epoch))
        places, times = np.unique(np.concatenate(done), return_counts=True)
        computed = np.zeros(num_places, bool)
        computed[places] = True
        header = AuditStretch(
            index_sha256=run.index_sha256,
            plan_sha256=run.plan_sha256,
            epoch=self._epoch,
            first_group=self._first,
            end_group=end_group,
            rank=trainer.global_rank,
            world_size=trainer.world_size,
            num_places=num_places,
            left_out=data.left_out(self._epoch),
            repeated=tuple(np.repeat(places, times - 1).tolist()),
            unreadable=tuple(place for group, place in self._unreadable if group < end_group),
        )
        write_stretch(self._folder, header, computed)
        self._batches = [item for item in self._batches if item[0] >= end_group]
        self._unreadable = [item for item in self._unreadable if item[0] >= end_group]
        self._first = end_group  # where a micro-batch of the next group is there already


def _weighted(places: tuple[int, ...], weights: Tensor) -> NDArray[np.int64]:
    """The places that count in the loss; none of a made-up utterance."""
    return np.array(places, dtype=np.int64)[weights.cpu().numpy() > 0]


def _data(trainer: pl.Trainer) -> ShardDataModule:
    data: object = trainer.datamodule  # type: ignore[attr-defined]  # set by Trainer.fit
    assert isinstance(data, ShardDataModule)
    return data
