"""What the micro-batches of a plan look like: by length class, and the largest of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.keys import Lengths
from trainer.data.plan import EpochPlan

_CLASS_SECONDS = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0, 30.0, 60.0, 120.0)
_CHUNK = 1 << 20


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
    least_frames: int
    """Frames of the shortest that would be in it."""
    most_frames: int | None
    """Frames of the longest that would be in it; no limit where None."""
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
        return BatchShapes(sizes=sizes, longest_frames=sizes, longest_symbols=sizes, real_frames=sizes)
    frames = np.asarray(num_frames)[plan.order]
    symbols = np.asarray(num_symbols)[plan.order]
    return BatchShapes(
        sizes=sizes,
        longest_frames=np.maximum.reduceat(frames, starts).astype(np.int64),
        longest_symbols=np.maximum.reduceat(symbols, starts).astype(np.int64),
        real_frames=np.add.reduceat(frames, starts, dtype=np.int64),
    )


def length_classes(
    plan: EpochPlan, shapes: BatchShapes, num_frames: Lengths, frames_per_second: float
) -> list[LengthClass]:
    """The classes that hold anything, from short to long.

    Args:
        plan: the plan; what it leaves out does not count.
        shapes: of its micro-batches, each of which is in the class of its longest.
        num_frames: frames of each utterance that it was made from `[n]`.
        frames_per_second: of the mels.
    """
    edges = np.array([0, *(math.ceil(seconds * frames_per_second) for seconds in _CLASS_SECONDS)])
    lengths, count = np.asarray(num_frames), len(edges)
    utterances, frames = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for begin in range(0, len(plan.order), _CHUNK):
        some = lengths[plan.order[begin : begin + _CHUNK]].astype(np.int64)
        of_rows = np.searchsorted(edges, some, side="right") - 1
        utterances += np.bincount(of_rows, minlength=count)
        frames += np.bincount(of_rows, weights=some, minlength=count).astype(np.int64)  # whole below 2^53
    batches = np.bincount(np.searchsorted(edges, shapes.longest_frames, side="right") - 1, minlength=count)
    seconds = (0.0, *_CLASS_SECONDS, None)
    return [
        LengthClass(
            above_seconds=seconds[at] or 0.0,
            below_seconds=seconds[at + 1],
            least_frames=int(edges[at]),
            most_frames=int(edges[at + 1]) - 1 if at + 1 < count else None,
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
