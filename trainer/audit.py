"""What a run computed, written down while it trains: bitmaps of the plan's places, by rank and stretch of steps.

A stretch ends with a checkpoint, an epoch or the run, so a run that goes on from a checkpoint follows on whole ones.
What was computed after the last checkpoint of a killed run is in no stretch, as it is in no weights.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
from numpy.typing import NDArray
from pytorch_lightning.callbacks import Callback

from dataprep.shards.atomic import write_atomic
from schemas.audit import AuditOrigin, AuditRun, AuditStretch
from schemas.base import canonical_json
from schemas.checkpoint import PlanState
from schemas.errors import FormatError
from trainer.data.batch import Batch
from trainer.data.module import ShardDataModule

AUDIT_FOLDER = "audit"
RUN_NAME = "run.json"


class Audit(Callback):
    """Writes `audit/` in the folder of a run.

    Args:
        run: folder of the run.
    """

    def __init__(self, run: Path) -> None:
        self._folder = run / AUDIT_FOLDER
        self._trainer: pl.Trainer | None = None
        self._epoch, self._first = 0, 0  # of the stretch
        self._places: list[tuple[int, NDArray[np.int64]]] = []  # (step group, what was computed in it)
        self._unreadable: list[tuple[int, int]] = []  # (step group, place)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """Writes which data and plan this is, and what the run went on from."""
        self._trainer, data = trainer, _data(trainer)
        state = PlanState.model_validate(data.state_dict())
        self._epoch, self._first = state.epoch, state.groups_done
        if not trainer.is_global_zero:
            return
        origin = None
        if trainer.ckpt_path is not None:
            epoch, groups_done = data.resumed_at
            origin = AuditOrigin(
                run=str(Path(str(trainer.ckpt_path)).absolute().parent.parent), epoch=epoch, groups_done=groups_done
            )
        run = AuditRun(
            shards=tuple(str(Path(name).absolute()) if "://" not in name else name for name in data.locations),
            index_sha256=state.index_sha256,
            plan_sha256=state.plan_sha256,
            plan_settings=state.plan_settings,
            repeats=data.repeats,
            origin=origin,
        )
        write_atomic(self._folder / RUN_NAME, run.pretty_json())

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: object, batch: Batch, batch_idx: int
    ) -> None:
        """Takes note of what was computed."""
        del trainer, pl_module, outputs, batch_idx
        if batch.epoch != self._epoch:
            self._epoch, self._first = batch.epoch, batch.group
        weighted = np.flatnonzero(batch.weights.cpu().numpy() > 0)
        self._places.append((batch.group, np.array(batch.places, dtype=np.int64)[weighted]))
        self._unreadable += [(batch.group, bad.place) for bad in batch.bad]

    def state_dict(self) -> dict[str, Any]:
        """Nothing. Lightning asks every rank for it before a checkpoint is written: there a stretch ends.

        All ranks wait for each other, so that no checkpoint names groups whose stretch is not on disk.
        """
        if self._trainer is not None and self._trainer.training:
            self._flush(self._trainer, PlanState.model_validate(_data(self._trainer).state_dict()).groups_done)
            self._trainer.strategy.barrier()
        return {}

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """A stretch ends with its epoch."""
        self._flush(trainer, PlanState.model_validate(_data(trainer).state_dict()).groups_done)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:  # noqa: ARG002
        """A stretch ends with the run."""
        self._flush(trainer, PlanState.model_validate(_data(trainer).state_dict()).groups_done)

    def _flush(self, trainer: pl.Trainer, end_group: int) -> None:
        """Writes the stretch up to a step group; what is there of later ones stays for the next."""
        data = _data(trainer)
        done = [places for group, places in self._places if group < end_group]
        if end_group <= self._first or not done:
            return
        places = np.concatenate(done)
        counts = np.bincount(places, minlength=len(data.selection_of(self._epoch)))
        header = AuditStretch(
            epoch=self._epoch,
            first_group=self._first,
            end_group=end_group,
            rank=trainer.global_rank,
            world_size=trainer.world_size,
            num_places=len(counts),
            left_out=data.left_out(self._epoch),
            repeated=tuple(np.repeat(np.arange(len(counts)), np.maximum(counts - 1, 0)).tolist()),
            unreadable=tuple(place for group, place in self._unreadable if group < end_group),
        )
        write_stretch(self._folder, header, counts > 0)
        self._places = [item for item in self._places if item[0] >= end_group]
        self._unreadable = [item for item in self._unreadable if item[0] >= end_group]
        self._first = end_group


def write_stretch(folder: Path, header: AuditStretch, computed: Sequence[bool] | NDArray[np.bool_]) -> Path:
    """Writes a stretch atomically; `computed` `[num_places]`. Returns its path."""
    name = (
        f"epoch-{header.epoch:05d}-groups-{header.first_group:08d}-{header.end_group:08d}"
        f"-rank-{header.rank:05d}-of-{header.world_size:05d}.bits"
    )
    bits = zlib.compress(np.packbits(np.asarray(computed, dtype=bool)).tobytes())
    write_atomic(folder / name, canonical_json(header.model_dump(mode="json")) + b"\n" + bits)
    return folder / name


def read_stretch(path: Path) -> tuple[AuditStretch, NDArray[np.bool_]]:
    """The header and what was computed `[num_places]`.

    Raises:
        FormatError: not such a file, or a damaged one.
    """
    import json

    line, _, bits = path.read_bytes().partition(b"\n")
    hint = "the audit cannot vouch for these steps"
    try:
        content = json.loads(line)
        packed = np.frombuffer(zlib.decompress(bits), np.uint8)
    except (ValueError, zlib.error) as error:
        raise FormatError(f"is damaged: {error}", hint=hint, path=path) from error
    header = AuditStretch.from_content(content, path)
    if len(packed) != -(-header.num_places // 8):
        raise FormatError(f"holds {len(packed)} bytes for {header.num_places} places", hint=hint, path=path)
    return header, np.unpackbits(packed, count=header.num_places).astype(bool)


def _data(trainer: pl.Trainer) -> ShardDataModule:
    data: object = trainer.datamodule  # type: ignore[attr-defined]  # set by Trainer.fit
    assert isinstance(data, ShardDataModule)
    return data
