"""Utterances that cannot be read: noted by every rank, agreed on by all, left out of the next epoch's plan.

A micro-batch that lacks some or all of its utterances is computed all the same, so no rank ever takes another number of
steps. Ranks tell each other only whether there is anything to tell, and that every tenth step.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities import rank_zero_warn

from dataprep.shards.atomic import write_atomic
from schemas.checkpoint import QuarantinedUtterance
from schemas.errors import TrainingError
from trainer.data.batch import Batch
from trainer.data.module import ShardDataModule

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
        self._in_validation: set[str] = set()

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Remembers the Trainer, which `state_dict` is not given."""
        self._trainer = trainer

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
        if self._trainer is not None and self._trainer.training:
            self._agree(self._trainer)
        return {}

    def on_validation_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: object, batch: Batch, *_: object
    ) -> None:
        """Warns of each once; validation goes on without it."""
        del trainer, pl_module, outputs
        for bad in batch.bad:
            if bad.key not in self._in_validation:
                self._in_validation.add(bad.key)
                rank_zero_warn(f"left out of the validation: {bad.message}")

    def _agree(self, trainer: pl.Trainer) -> None:
        """Puts what any rank has found into the data module's quarantine, the same on all.

        Raises:
            TrainingError: there are more than the data module's `max_bad_samples`.
        """
        data: object = trainer.datamodule  # type: ignore[attr-defined]  # set by Trainer.fit
        if not isinstance(data, ShardDataModule):
            return
        count = torch.tensor(float(len(self._found)), device=trainer.strategy.root_device)
        if trainer.world_size > 1:
            torch.distributed.all_reduce(count)
        if not int(count):
            return
        known = {item.row for item in data.quarantine}
        new = {item.row: item for item in sorted(self._gathered(trainer), key=_order) if item.row not in known}
        self._found = []
        data.quarantine = tuple(sorted((*data.quarantine, *new.values()), key=_order))
        pl_module = trainer.lightning_module
        pl_module.log("train/bad_samples", float(len(data.quarantine)), rank_zero_only=True)
        for item in new.values():
            rank_zero_warn(f"left out: {item.reason}")
        if self._folder is not None and trainer.is_global_zero:
            lines = [item.canonical_json() + b"\n" for item in data.quarantine]
            write_atomic(self._folder / QUARANTINE_NAME, b"".join(lines))
        if len(data.quarantine) > data.max_bad_samples:
            raise too_many(data.quarantine, data.max_bad_samples, data.location)

    def _gathered(self, trainer: pl.Trainer) -> list[QuarantinedUtterance]:
        if trainer.world_size == 1:
            return self._found
        by_rank: list[list[QuarantinedUtterance]] = [[] for _ in range(trainer.world_size)]
        torch.distributed.all_gather_object(by_rank, self._found)
        return [item for found in by_rank for item in found]


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
