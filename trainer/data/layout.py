"""Puts a cut window into the order of training: utterances dealt within a step group, groups shuffled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trainer.data.cut import Cut
from trainer.data.keys import mix64, rows_of

KeyOf = Callable[[NDArray[np.uint32]], NDArray[np.uint64]]

_GATHERED_ROWS = 1 << 20  # worked on at once, for the sake of memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Utterances of a window in training order, as the arrays of an `EpochPlan`."""

    order: NDArray[np.uint32]
    sizes: NDArray[np.int64]
    """Utterances of each micro-batch `[M]`."""
    group_sizes: NDArray[np.int64]
    """Micro-batches of each step group `[S]`."""


def lay_out(
    rows: NDArray[np.uint32], cut: Cut, last: tuple[NDArray[np.uint32], list[int]], *, group_size: int,
    length_classes: int, key: np.uint64, key_of: KeyOf,
) -> Runs:  # fmt: skip
    """The groups of a window in random order.

    Args:
        rows: sorted rows, at least those that `cut` cuts.
        cut: how they become step groups.
        last: rows and micro-batch sizes of one smaller group more; empty where there is none.
        group_size: micro-batches of a full step group.
        length_classes: parts of a step group, each from another length class.
        key: of the shuffle.
        key_of: by what the rows of a group are sorted from long to short.
    """
    part_size = group_size // length_classes
    part_rows = cut.sizes.reshape(-1, part_size).sum(1)
    parts = _shuffled_parts(cut.num_groups, length_classes, key)
    dealt = deal(rows[: cut.num_rows], cut.sizes, part_size, key_of)
    order = _gathered(dealt, part_rows, parts)
    sizes = cut.sizes.reshape(-1, part_size)[parts].ravel()
    group_sizes = np.full(cut.num_groups, group_size, np.int64)
    last_rows, last_sizes = last
    if not last_sizes:
        return Runs(order=order, sizes=sizes, group_sizes=group_sizes)
    place = int(mix64(np.array([cut.num_groups], np.uint64), key)[0] % np.uint64(cut.num_groups + 1))
    before = int(sizes[: place * group_size].sum())
    return Runs(
        order=np.insert(order, before, last_rows),
        sizes=np.insert(sizes, place * group_size, last_sizes),
        group_sizes=np.insert(group_sizes, place, len(last_sizes)),
    )


def _shuffled_parts(num_groups: int, length_classes: int, key: np.uint64) -> NDArray[np.int64]:
    """Parts in the order of training: each group takes one of every class, the longest first."""
    chance = mix64(np.arange(num_groups * length_classes, dtype=np.uint64), key).reshape(length_classes, num_groups)
    picked = np.argsort(chance, axis=1, kind="stable") + num_groups * np.arange(length_classes)[:, None]
    return np.asarray(picked.T.ravel())


def deal(rows: NDArray[np.uint32], sizes: NDArray[np.int64], part_size: int, key_of: KeyOf) -> NDArray[np.uint32]:
    """The rows of each part, dealt like cards to those of its micro-batches that are of the same size.

    So each gets one of the longest, and they cost the same.

    Args:
        rows: from long to short but for the jitter `[n]`.
        sizes: of the micro-batches, ascending, `[M]`; their sum is n.
        part_size: micro-batches of a part.
        key_of: by what rows are sorted from long to short, without jitter.
    """
    if part_size == 1:
        return rows
    dealt = np.empty_like(rows)
    place = 0
    for size, num_batches, num_parts in _stretches(sizes, part_size):
        cards = size * num_batches
        at_once = max(1, _GATHERED_ROWS // cards)
        for first in range(0, num_parts, at_once):
            stop = place + cards * min(at_once, num_parts - first)
            keys = key_of(rows[place:stop]).reshape(-1, cards)
            keys.sort(axis=1)
            by_card = rows_of(keys).reshape(-1, size, num_batches)
            dealt[place:stop] = by_card.transpose(0, 2, 1).ravel()
            place = stop
    return dealt


def _stretches(sizes: NDArray[np.int64], part_size: int) -> list[tuple[int, int, int]]:
    """(size, micro-batches, parts): stretches of one size, cut where parts begin; whole parts are taken together."""
    stretches: list[tuple[int, int, int]] = []
    edges = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(sizes)] if len(sizes) else []
    for first, stop in pairwise(edges):
        size = int(sizes[first])
        begun = min(-first % part_size, stop - first)
        whole, rest = divmod(stop - first - begun, part_size)
        for num_batches, num_parts in ((begun, 1), (part_size, whole), (rest, 1)):
            if num_batches and num_parts:
                stretches.append((size, num_batches, num_parts))
    return stretches


def _gathered(rows: NDArray[np.uint32], part_rows: NDArray[np.int64], parts: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The rows of the parts in their new order."""
    order = np.empty_like(rows)
    counts = part_rows[parts]
    sources = (part_rows.cumsum() - part_rows)[parts]
    targets = counts.cumsum() - counts
    first = 0
    while first < len(parts):
        stop = max(first + 1, int(np.searchsorted(targets, targets[first] + _GATHERED_ROWS)))
        begin, end = int(targets[first]), int(targets[stop - 1] + counts[stop - 1])
        moved = np.repeat(sources[first:stop] - targets[first:stop], counts[first:stop])
        moved += np.arange(begin, end)
        order[begin:end] = rows[moved]
        first = stop
    return order
