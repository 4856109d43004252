"""What the micro-batches of a plan look like: by length class, and the largest of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.keys import Lengths
from trainer.data.plan import EpochPlan

_CLASS_SECONDS = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchShapes:
    """Shape of each micro-batch `[M]`."""

    sizes: NDArray[np.int64]
    """Utterances."""
    longest_frames: NDArray[np.int64]
    """Frames of the longest utterance."""
    longest_symbols: NDArray[np.int64]
    """Symbols of the utterance with the most."""
    real_frames: NDArray[np.int64]
    """Frames of all utterances."""

    @property
    def padded_frames(self) -> NDArray[np.int64]:
        """Utterances times the longest."""
        return self.sizes * self.longest_frames

    @property
    def padded_symbols(self) -> NDArray[np.int64]:
        """Utterances times the most symbols."""
        return self.sizes * self.longest_symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthClass:
    """Utterances of about one length, and the micro-batches whose longest is of that length."""

    above_seconds: float
    """Longer than this, or equal."""
    below_seconds: float | None
    """Shorter than this; no limit where None."""
    utterances: int
    frames_share: float
    """Share of all frames, 0 to 1."""
    micro_batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeBatch:
    """One of the largest micro-batches."""

    utterances: int
    longest: int
    """Frames or symbols of the longest."""
    padded: int
    """Utterances times the longest."""
    place: int
    """Place of the longest in what the plan was made from."""


def batch_shapes(plan: EpochPlan, num_frames: Lengths, num_symbols: Lengths) -> BatchShapes:
    """Shapes of a plan's micro-batches; the lengths `[n]` are those it was made from."""
    starts, sizes = plan.batch_offsets[:-1], np.diff(plan.batch_offsets)
    if not len(starts):
        nothing = np.zeros(0, np.int64)
        return BatchShapes(sizes=sizes, longest_frames=nothing, longest_symbols=nothing, real_frames=nothing)
    frames = np.asarray(num_frames)[plan.order].astype(np.int64)
    return BatchShapes(
        sizes=sizes,
        longest_frames=np.maximum.reduceat(frames, starts),
        longest_symbols=np.maximum.reduceat(np.asarray(num_symbols)[plan.order].astype(np.int64), starts),
        real_frames=np.add.reduceat(frames, starts),
    )


def length_classes(shapes: BatchShapes, num_frames: Lengths, frames_per_second: float) -> list[LengthClass]:
    """The classes that hold anything, from short to long."""
    edges = np.array(_CLASS_SECONDS) * frames_per_second
    of_rows = np.searchsorted(edges, np.asarray(num_frames), side="right")
    of_batches = np.searchsorted(edges, shapes.longest_frames, side="right")
    count = len(edges) + 1
    utterances = np.bincount(of_rows, minlength=count)
    frames = np.bincount(of_rows, weights=np.asarray(num_frames), minlength=count)
    batches = np.bincount(of_batches, minlength=count)
    bounds = (0.0, *_CLASS_SECONDS, None)
    return [
        LengthClass(
            above_seconds=bounds[at] or 0.0,
            below_seconds=bounds[at + 1],
            utterances=int(utterances[at]),
            frames_share=float(frames[at] / frames.sum()),
            micro_batches=int(batches[at]),
        )
        for at in range(count)
        if utterances[at]
    ]


def largest_batches(plan: EpochPlan, padded: NDArray[np.int64], lengths: Lengths, count: int) -> list[LargeBatch]:
    """The micro-batches with the most padded frames or symbols, the largest first; of equal ones the first.

    Args:
        plan: the plan.
        padded: frames or symbols of each micro-batch, utterances times the longest `[M]`.
        lengths: the same of each utterance `[n]`.
        count: how many.
    """
    largest = np.argsort(-padded, kind="stable")[:count]
    found = []
    for batch in largest.tolist():
        places = plan.order[plan.batch_offsets[batch] : plan.batch_offsets[batch + 1]]
        of_batch = np.asarray(lengths)[places]
        place = int(places[np.argmax(of_batch)])
        found.append(
            LargeBatch(utterances=len(places), longest=int(of_batch.max()), padded=int(padded[batch]), place=place)
        )
    return found
