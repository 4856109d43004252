"""`trainer fit --probe`: the most expensive micro-batches of the epoch, computed before training."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback
from torch import Tensor

from trainer.chance import Chance
from trainer.data.batch import Batch
from trainer.data.dataset import ShardDataset
from trainer.data.expensive import Expensive, expensive_batches
from trainer.data.module import ShardDataModule
from trainer.data.sampler import BatchRequest
from trainer.data.selection import Selection
from trainer.lockstep import LockstepModule
from trainer.memory import padded_frames

_TITLES = ("padded frames", "padded symbols", "utterances", "seconds", "memory", "parts", "the most")
_ROW = "{:>13}  {:>14}  {:>10}  {:>7}  {:>8}  {:>5}  {}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What a micro-batch took."""

    seconds: float
    """Forward and backward."""
    peak_bytes: int | None
    """Most memory of the GPU in use; None on the CPU."""
    parts: int
    """Computed one after the other; 0 where a single utterance did not fit."""


class Probe(Callback):
    """Tries the micro-batches, the same on every rank, and changes nothing but the module's limit.

    Forward and backward, with room for what the optimizer will keep of each weight. A limit that came from a checkpoint
    is found anew. Prints what each took on the first rank.
    """

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Tries them.

        Raises:
            TrainingError: a single utterance does not fit; on all ranks.
        """
        data: object = trainer.datamodule  # type: ignore[attr-defined]  # set by Trainer.fit
        if not isinstance(pl_module, LockstepModule) or not isinstance(data, ShardDataModule):
            return
        planned, selection = data.planned_epoch(trainer.current_epoch)
        plans = (plan for _, plan in planned.windows(0))
        self._tell(trainer, f"probe of epoch {trainer.current_epoch}: forward and backward, no step\n")
        self._tell(trainer, _ROW.format(*_TITLES))
        pl_module.budget.forget()
        room = _optimizer_room(pl_module)
        reader = ShardDataset(data.shard_set)
        for item in expensive_batches(plans, selection.num_frames, selection.num_symbols):
            batch = reader.read(_request(item, selection)).to(pl_module.device)
            self._tell_tried(trainer, item, batch, tried(pl_module, batch))
        del room
        pl_module.conclude()
        limit = pl_module.budget.limit
        fits = "all of them fit" if limit is None else f"at most {limit} padded frames are computed at once"
        self._tell(trainer, f"probe: {fits}\n")

    def _tell_tried(self, trainer: pl.Trainer, item: Expensive, batch: Batch, took: Tried) -> None:
        memory = "-" if took.peak_bytes is None else f"{took.peak_bytes / 1e9:.2f} GB"
        figures = (padded_frames(batch), batch.symbol_ids.numel(), len(batch.keys), f"{took.seconds:.2f}", memory)
        self._tell(trainer, _ROW.format(*figures, took.parts or "-", ", ".join(item.measures)))

    def _tell(self, trainer: pl.Trainer, text: str) -> None:
        if trainer.is_global_zero:
            sys.stderr.write(text)


def tried(module: LockstepModule, batch: Batch) -> Tried:
    """Computes the gradients of a micro-batch, as training does, and throws them away."""
    device = module.device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    known, began = len(module.budget.news), time.monotonic()
    with torch.enable_grad(), module.trainer.precision_plugin.train_step_context():
        module.add_gradients(batch, Chance(0, device))
    parts = module.gradients.discard()
    peak = None
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        peak = torch.cuda.max_memory_allocated(device)
    failed = any(item.is_single for item in module.budget.news[known:])
    return Tried(seconds=time.monotonic() - began, peak_bytes=peak, parts=0 if failed else parts)


def _optimizer_room(module: LockstepModule) -> list[Tensor]:
    """As much memory as the first step will take for good: the gradients, and AdamW's two moments."""
    kept = sum(len(optimizer.state) for optimizer in module.trainer.optimizers)
    copies = 1 if kept else 3
    return [torch.empty_like(item) for item in module.trained for _ in range(copies)]


def _request(item: Expensive, selection: Selection) -> BatchRequest:
    places = item.places
    return BatchRequest(
        rows=selection.rows_at(places),
        weights=np.ones(len(places), np.float32),
        group_frames=int(selection.num_frames[places].sum(dtype=np.int64)),
        group_symbols=int(selection.num_symbols[places].sum(dtype=np.int64)),
        num_slots=1,
    )
