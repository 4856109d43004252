"""`trainer plan`: what an epoch will be, before any training. Needs no torch."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.errors import UsageError
from trainer.commands.data_config import DataConfig
from trainer.commands.shard_folder import open_shards
from trainer.data.collection import ShardMix
from trainer.data.epochs import Epochs, SetShare
from trainer.data.plan import PlanSettings, overlong_rows
from trainer.data.selection import Selection
from trainer.data.shapes import BatchShapes, LargeBatch, LengthClass, batch_shapes, largest_batches, length_classes
from trainer.data.summary import PlanSummary, summarize

_LARGEST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedBatch:
    """One of the largest micro-batches, by the key of its longest utterance."""

    batch: LargeBatch
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """The plan of one epoch of one or more shard sets, as figures."""

    settings: PlanSettings
    """What it was made with."""
    epoch: int
    """Which epoch, from 0."""
    summary: PlanSummary
    """The figures."""
    overlong: tuple[str, ...]
    """Keys of the utterances over a limit by themselves."""
    selection: Selection
    """What can be trained on, and what is left out."""
    sets: tuple[SetShare, ...]
    """What the epoch takes of each shard set."""
    shared_speakers: tuple[str, ...]
    """Names of speakers that several shard sets have."""
    classes: tuple[LengthClass, ...]
    """Utterances by length."""
    most_frames: tuple[NamedBatch, ...]
    """The largest micro-batches by padded frames."""
    most_symbols: tuple[NamedBatch, ...]
    """The largest micro-batches by padded symbols."""
    shapes: BatchShapes
    """Shape of each micro-batch."""
    frames_per_second: float
    """Of the mels."""

    @property
    def hours(self) -> float:
        """Hours of the epoch, each utterance as often as it comes."""
        return sum(one.hours for one in self.sets)


def view_plan(config: DataConfig, shards: Sequence[str], epoch: int) -> PlanView:
    """Plans an epoch of the training split.

    Raises:
        FormatError: not a shard set.
        IdentityError: the shard sets do not go together.
        MachineError: an object store cannot be reached.
        UsageError: no shard set, or a prepared data set; or an utterance is over the limits and `settings.overlong` is
            `error`; or weights or temperature make no sense.
    """
    if not shards:
        raise UsageError("no shard set was given", hint="trainer plan SHARDS... [OPTIONS]")
    settings = config.settings
    mix = ShardMix([open_shards(location, config.cache) for location in shards])
    epochs = Epochs(mix, settings, config.weights, config.temperature)
    planned, selection = epochs.planned(epoch)
    plan, frames, symbols = planned.plan, selection.num_frames, selection.num_symbols
    shapes = batch_shapes(plan, frames, symbols)
    spec = mix.manifest.feature_spec
    frames_per_second = spec.sample_rate / spec.hop_length

    def keys(places: NDArray[np.integer]) -> list[str]:
        return [mix.key(row) for row in selection.rows_at(places).tolist()]

    def largest(padded: NDArray[np.int64], lengths: NDArray[np.integer]) -> tuple[NamedBatch, ...]:
        found = largest_batches(plan, padded, lengths, _LARGEST)
        named = keys(np.array([one.place for one in found], dtype=np.int64))
        return tuple(NamedBatch(batch=one, key=key) for one, key in zip(found, named, strict=True))

    return PlanView(
        settings=settings,
        epoch=epoch,
        summary=summarize(plan, frames, symbols, settings),
        overlong=tuple(dict.fromkeys(keys(overlong_rows(frames, symbols, settings)))),  # a mix may repeat them
        selection=selection,
        sets=tuple(epochs.realised(epoch)),
        shared_speakers=mix.shared_speakers(),
        classes=tuple(length_classes(plan, shapes, frames, frames_per_second)),
        most_frames=largest(shapes.padded_frames, frames),
        most_symbols=largest(shapes.padded_symbols, symbols),
        shapes=shapes,
        frames_per_second=frames_per_second,
    )


def plan_json(view: PlanView) -> str:
    """The figures as JSON; `overlong` and `excluded` are lists of keys."""

    def large(batches: Sequence[NamedBatch]) -> list[dict[str, object]]:
        return [
            {"utterances": one.utterances, "longest": one.longest, "padded": one.padded, "key": named.key}
            for named in batches
            for one in [named.batch]
        ]

    content = {
        **view.summary.to_dict(),
        "hours": view.hours,
        "overlong": view.overlong,
        "excluded": view.selection.excluded,
        "epoch": view.epoch,
        "sets": [dataclasses.asdict(one) for one in view.sets],
        "shared_speakers": view.shared_speakers,
        "length_classes": [dataclasses.asdict(one) for one in view.classes],
        "most_frames": large(view.most_frames),
        "most_symbols": large(view.most_symbols),
        "settings": view.settings.to_dict(),
    }
    return json.dumps(content, ensure_ascii=False, indent=2)
