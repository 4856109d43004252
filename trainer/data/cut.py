"""Cuts the sorted utterances of a window into micro-batches and says how they make step groups.

Going from long to short, a micro-batch holds as many utterances as fit if each were as long as the longest that is
still to come; so sizes only grow, and the cut is a short list of runs: n micro-batches of b utterances each. It takes a
few operations for each size, not for each micro-batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.keys import LENGTH_SHIFT
from trainer.data.plan_settings import PlanSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How the first utterances of a sorted window become full step groups; the rest of them is carried over."""

    sizes: NDArray[np.int64]
    """Utterances of each micro-batch that belongs to a full step group, from long to short `[M]`."""
    num_groups: int
    """Full step groups."""

    @property
    def num_rows(self) -> int:
        """Utterances in full step groups."""
        return int(self.sizes.sum())


class LongestBySize:
    """For each size of a micro-batch the shortest utterance, in the order of sorting, that is too long for it."""

    def __init__(self, max_batch_size: int) -> None:
        # maximum of the length key (0 is the longest) plus one; 0 where there is none
        self._last = np.zeros(max_batch_size + 1, np.uint64)

    def add(self, sizes: NDArray[np.int64], lengths: NDArray[np.uint64]) -> None:
        """Takes note of utterances, of which `sizes` fit into a micro-batch, by their length keys."""
        np.maximum.at(self._last, sizes, lengths + np.uint64(1))

    def starts(self, sorted_keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Where in the sorted keys each size may begin, int64 `[max_batch_size]`, ascending; the first is size 1."""
        # size b may begin behind all of which fewer than b fit; size 1 anywhere
        first_keys = np.maximum.accumulate(self._last)[:-1] << LENGTH_SHIFT
        first_keys[0] = 0
        return np.searchsorted(sorted_keys, first_keys).astype(np.int64)


def cut(starts: NDArray[np.int64], num_rows: int, settings: PlanSettings) -> Cut:
    """Cuts `num_rows` sorted utterances, of which each size of a micro-batch may begin at `starts`."""
    part_size = settings.ranks // settings.length_classes
    runs: list[tuple[int, int]] = []
    place = num_batches = 0
    while place < num_rows:
        size = int(np.searchsorted(starts, place, side="right"))
        stop, beyond = (int(starts[at]) if at < len(starts) else num_rows for at in (size, size + 1))
        count = -(-(stop - place) // size)
        # A group of one size costs its ranks the same: it is filled up if it does not reach over a whole size for that.
        missing = -(num_batches + count) % part_size
        if place + (count + missing) * size <= beyond:
            count += missing
        count = min(count, (num_rows - place) // size)
        if count == 0:
            break
        runs.append((size, count))
        place += size * count
        num_batches += count
    sizes = np.repeat(*np.array(runs, dtype=np.int64).reshape(-1, 2).T)
    num_groups = num_batches // settings.ranks
    return Cut(sizes=sizes[: num_groups * settings.ranks], num_groups=num_groups)


def spread(taken: NDArray[np.float64], slots: int, max_batch_size: int) -> list[int]:
    """Sizes of the micro-batches of the last group, which is smaller than the others.

    The smallest budget under which all fit, in as many micro-batches as can be.

    Args:
        taken: shares of a micro-batch that the utterances take, from long to short `[n]`.
        slots: micro-batches of a step group.
        max_batch_size: most utterances of a micro-batch.
    """
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if sum(_filled(taken, slots, max_batch_size, middle)) == len(taken):
            high = middle
        else:
            low = middle
    sizes = _filled(taken, slots, max_batch_size, high)
    assert sum(sizes) == len(taken)
    # Short utterances may share a micro-batch and leave slots empty: halve the largest until none is.
    while len(sizes) < min(slots, len(taken)):
        place = int(np.argmax(sizes))
        sizes[place : place + 1] = [sizes[place] - sizes[place] // 2, sizes[place] // 2]
    return sizes


def _filled(taken: NDArray[np.float64], slots: int, max_batch_size: int, budget: float) -> list[int]:
    """Sizes of micro-batches, each as full as `budget` allows, at least one utterance in each."""
    sizes: list[int] = []
    place = 0
    while len(sizes) < slots and place < len(taken):
        fitting = budget * (1 + 1e-12) / max(float(taken[place]), 1e-12)
        size = max(1, min(int(fitting), max_batch_size, len(taken) - place))
        sizes.append(size)
        place += size
    return sizes
