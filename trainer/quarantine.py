"""Utterances that cannot be read: noted by every rank, agreed on by all, left out of the next epoch's plan.

A micro-batch that lacks some or all of its utterances is computed all the same, so no rank ever takes another number of
steps. Ranks tell each other only whether there is anything to tell, and that every tenth step, before a checkpoint is
written, and at the end of an epoch, after which the next one is planned (`FitLoop.on_advance_start` asks for its
loader).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.trainer.states import TrainerFn
from pytorch_lightning.utilities import rank_zero_warn

from dataprep.shards.atomic import write_atomic
from schemas.checkpoint import QuarantinedUtterance
from schemas.errors import TrainingError
from trainer.data.batch import BadSample, Batch
from trainer.data.module import ShardDataModule
from trainer.exchange import gather_news

QUARANTINE_NAME = "quarantine.jsonl"
_LISTED = 10


class Quarantine(Callback):
    """Collects what could not be read, and ends the run where it is too much.

    Args:
        folder: where `quarantine.jsonl` is kept; nowhere where None.
    """

    AGREE_EVERY_STEPS = 10

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._found: list[QuarantinedUtterance] = []  # by this rank, since ranks last told each other
        self._trainer: pl.Trainer | None = None
        self._found_in_validation: list[BadSample] = []  # by this rank, in the validation that is under way
        self._in_validation: set[int] = set()  # rows that were told

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Remembers the Trainer, which `state_dict` is not given."""
        self._trainer = trainer

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """A resumed run begins with what the one before it has found."""
        data = _data(trainer)
        if data is not None and data.quarantine:
            self._write(trainer, data)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: object, batch: Batch, batch_idx: int
    ) -> None:
        """Takes note of the batch; every tenth step ranks agree."""
        del pl_module, outputs
        self._found += [
            QuarantinedUtterance(row=bad.row, key=bad.key, epoch=batch.epoch, reason=bad.message) for bad in batch.bad
        ]
        stepped = (batch_idx + 1) % trainer.accumulate_grad_batches == 0
        if stepped and trainer.global_step % self.AGREE_EVERY_STEPS == 0:
            self._agree(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Ranks agree before the next epoch is planned."""
        self._agree(trainer)

    def state_dict(self) -> dict[str, Any]:
        """Nothing. Lightning asks every rank for it just before it asks the data module, whose state has the list."""
        trainer = self._trainer
        # also within a validation, at whose end checkpoints are saved
        if trainer is not None and trainer.state.fn is TrainerFn.FITTING and (trainer.training or trainer.validating):
            self._agree(trainer)
        return {}

    def on_validation_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: object, batch: Batch, *_: object
    ) -> None:
        """Takes note; validation goes on without it."""
        del trainer, pl_module, outputs
        self._found_in_validation += batch.bad

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Warns of what any rank has found, of each once, and counts."""
        found, self._found_in_validation = self._found_in_validation, []
        if not _any(trainer, found):
            return
        told = {bad.row: bad for bad in gather_news(found, trainer.world_size)}
        for row in sorted(told.keys() - self._in_validation):
            rank_zero_warn(f"left out of the validation: {told[row].message}")
        self._in_validation |= told.keys()
        _log(trainer, "val/bad_samples", len(told))

    def _agree(self, trainer: pl.Trainer) -> None:
        """Puts what any rank has found into the data module's quarantine, the same on all.

        Raises:
            TrainingError: there are more than the data module's `max_bad_samples`.
        """
        data = _data(trainer)
        if data is None or not _any(trainer, self._found):
            return
        found, self._found = gather_news(self._found, trainer.world_size), []
        known = {item.row for item in data.quarantine}
        new = {item.row: item for item in sorted(found, key=_order, reverse=True) if item.row not in known}
        data.quarantine = tuple(sorted((*data.quarantine, *new.values()), key=_order))
        for row in sorted(new):
            rank_zero_warn(f"left out: {new[row].reason}")
        _log(trainer, "train/bad_samples", len(data.quarantine))
        self._write(trainer, data)
        if len(data.quarantine) > data.max_bad_samples:
            raise too_many(data.quarantine, data.max_bad_samples, data.location)

    def _write(self, trainer: pl.Trainer, data: ShardDataModule) -> None:
        if self._folder is not None and trainer.is_global_zero:
            lines = [item.canonical_json() + b"\n" for item in data.quarantine]
            write_atomic(self._folder / QUARANTINE_NAME, b"".join(lines))


def _data(trainer: pl.Trainer) -> ShardDataModule | None:
    data: object = trainer.datamodule  # type: ignore[attr-defined]  # set by Trainer.fit
    return data if isinstance(data, ShardDataModule) else None


def _any(trainer: pl.Trainer, found: Sequence[object]) -> bool:
    """Whether any rank has found something; every one of them has to ask."""
    if trainer.world_size == 1:
        return bool(found)
    count = torch.tensor(float(len(found)), device=trainer.strategy.root_device)
    torch.distributed.all_reduce(count)
    return bool(count)


def _log(trainer: pl.Trainer, name: str, count: int) -> None:
    """Not by the module's `log`, which Lightning forbids at the end of a validation, where checkpoints are saved."""
    for logger in trainer.loggers:
        logger.log_metrics({name: float(count)}, step=trainer.global_step)


def _order(item: QuarantinedUtterance) -> tuple[int, int]:
    return item.row, item.epoch


def too_many(quarantine: Sequence[QuarantinedUtterance], limit: int, location: str) -> TrainingError:
    """The error that ends a run, with the first of the list."""
    listed = "; ".join(item.reason for item in quarantine[:_LISTED])
    more = f"; and {len(quarantine) - _LISTED} more" if len(quarantine) > _LISTED else ""
    return TrainingError(
        f"{len(quarantine)} utterances could not be read, at most {limit} may: {listed}{more}",
        hint=f"`dataprep validate {location}` shows all that is damaged, `dataprep shard` makes it again; "
        "--data.max_bad_samples allows more",
    )
