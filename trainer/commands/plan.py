"""`trainer plan`: what an epoch will be, before any training. Needs no torch."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainer.commands.plan_plot import plot_shapes
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
    """The plan of one epoch of a shard set, as figures."""

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
    classes: tuple[LengthClass, ...]
    """Utterances by length."""
    most_frames: tuple[NamedBatch, ...]
    """The largest micro-batches by padded frames."""
    most_symbols: tuple[NamedBatch, ...]
    """The largest micro-batches by padded symbols."""
    shapes: BatchShapes
    """Shape of each micro-batch."""
    frames_per_second: float


def view_plan(
    shards: Sequence[str], settings: PlanSettings, epoch: int, *, weights: Sequence[float] | None = None,
    temperature: float | None = None,
) -> PlanView:  # fmt: skip
    """Plans an epoch of the training split.

    Raises:
        FormatError: not a shard set.
        IdentityError: the shard sets do not go together.
        UsageError: a prepared data set; or an utterance is over the limits and `settings.overlong` is `error`; or
            weights or temperature make no sense.
    """
    mix = ShardMix([open_shards(location) for location in shards])
    epochs = Epochs(mix, settings, weights, temperature)
    planned, selection = epochs.planned(epoch)
    plan = planned.plan
    frames, symbols = selection.num_frames, selection.num_symbols
    shapes = batch_shapes(plan, frames, symbols)
    spec = mix.manifest.feature_spec
    frames_per_second = spec.sample_rate / spec.hop_length

    def named(batches: list[LargeBatch]) -> tuple[NamedBatch, ...]:
        rows = [int(row) for row in selection.rows_at(_places(batches))]
        return tuple(NamedBatch(batch=one, key=mix.key(row)) for one, row in zip(batches, rows, strict=True))

    return PlanView(
        settings=settings,
        epoch=epoch,
        summary=summarize(plan, frames, symbols, settings),
        overlong=tuple(mix.key(int(row)) for row in selection.rows_at(overlong_rows(frames, symbols, settings))),
        selection=selection,
        sets=tuple(epochs.realised(epoch)),
        classes=tuple(length_classes(shapes, frames, frames_per_second)) if len(selection) else (),
        most_frames=named(largest_batches(plan, shapes.padded_frames, frames, _LARGEST)),
        most_symbols=named(largest_batches(plan, shapes.padded_symbols, symbols, _LARGEST)),
        shapes=shapes,
        frames_per_second=frames_per_second,
    )


def _places(batches: Sequence[LargeBatch]) -> NDArray[np.int64]:
    return np.array([one.place for one in batches], dtype=np.int64)


def plan_json(view: PlanView) -> str:
    """The figures as JSON; `overlong` and `excluded` are lists of keys."""

    def large(batches: Sequence[NamedBatch]) -> list[dict[str, object]]:
        return [
            {
                "utterances": one.batch.utterances,
                "longest": one.batch.longest,
                "padded": one.batch.padded,
                "key": one.key,
            }
            for one in batches
        ]

    content = {
        **view.summary.to_dict(),
        "overlong": view.overlong,
        "excluded": view.selection.excluded,
        "epoch": view.epoch,
        "sets": [dataclasses.asdict(one) for one in view.sets],
        "length_classes": [dataclasses.asdict(one) for one in view.classes],
        "most_frames": large(view.most_frames),
        "most_symbols": large(view.most_symbols),
        "settings": view.settings.to_dict(),
    }
    return json.dumps(content, ensure_ascii=False, indent=2)


def plot_plan(view: PlanView, path: Path) -> None:
    """Draws the shapes of the micro-batches. Raises UsageError as `plot_shapes` does."""
    summary = view.summary
    title = (
        f"epoch {view.epoch}: {summary.utterances:,} utterances in {summary.micro_batches:,} micro-batches, "
        f"{summary.padding_share:.1%} padding"
    )
    plot_shapes(view.shapes, view.settings, view.frames_per_second, title, path)
