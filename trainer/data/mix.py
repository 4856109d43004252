"""How often an epoch takes each utterance of several shard sets: pure functions of sizes, seed and epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from schemas.errors import UsageError
from trainer.data.keys import CHUNK, mix64

_HIGH = np.uint64(0xFFFFFFFF00000000)


def repeats_of(
    hours: Sequence[float], weights: Sequence[float] | None = None, temperature: float | None = None
) -> tuple[float, ...]:
    """How often an epoch takes each utterance of each set.

    `weights` says it directly. With `temperature` T the share of a set of h hours is h^(1/T) over the sum of all, and
    an epoch is as long as all sets together, as in multilingual training (Conneau et al., 2020, "Unsupervised
    Cross-lingual Representation Learning at Scale", section 3.1, with alpha = 1/T). T = 1 takes everything once, a
    large T takes the same hours of each set.

    Raises:
        UsageError: both are given, another number of weights than of sets, or a value outside its range.

    >>> repeats_of([9.0, 1.0], temperature=2.0)
    (0.833333333, 2.5)
    """
    hint = "change --data.weights or --data.temperature"
    if weights is not None and temperature is not None:
        raise UsageError("weights and temperature exclude each other", hint="leave one of them out")
    if weights is not None:
        if len(weights) != len(hours):
            raise UsageError(f"{len(weights)} weights for {len(hours)} shard sets", hint=hint)
        if not all(0 <= weight < math.inf for weight in weights) or not any(weights):
            raise UsageError(f"weights {list(weights)} must be at least 0, and one of them above", hint=hint)
        return tuple(float(weight) for weight in weights)
    if temperature is None:
        return (1.0,) * len(hours)
    if not 1 <= temperature < math.inf:
        raise UsageError(f"temperature {temperature} must be at least 1", hint=hint)
    wanted = [value ** (1 / temperature) for value in hours]
    total, scale = sum(hours), sum(wanted)
    exact = [part / scale * total / value if value else 0.0 for part, value in zip(wanted, hours, strict=True)]
    return tuple(float(f"{times:.9g}") for times in exact)  # powers differ in their last bits between machines


def mixed_places(sizes: Sequence[int], repeats: Sequence[float], seed: int, epoch: int) -> NDArray[np.uint32]:
    """The places that an epoch is planned from, ascending, each as often as it comes.

    A set that is taken r times comes floor(r) times as a whole, and a part of it once more. The parts of consecutive
    epochs follow each other through one random order of the set after the other, so that before an utterance comes in
    a part again, all others have. A part may hold the end of one order and the start of the next, and an utterance
    twice that is in both.

    Args:
        sizes: utterances of each set; place 0 is the first of the first set.
        repeats: how often each is taken.
        seed: of the orders.
        epoch: number of the epoch, from 0.
    """
    places: list[NDArray[np.uint32]] = []
    first = 0
    for number, (size, times) in enumerate(zip(sizes, repeats, strict=True)):
        once = np.arange(first, first + size, dtype=np.uint32)
        whole, fraction = int(times), times - int(times)
        often: int | NDArray[np.intp] = whole
        if fraction and size:
            often = whole + _part(size, fraction, (seed, number), epoch)
        places.append(np.repeat(once, often))
        first += size
    return np.concatenate(places) if places else np.empty(0, np.uint32)


def _part(size: int, fraction: float, seeds: tuple[int, int], epoch: int) -> NDArray[np.intp]:
    """How often each place is in stretch number `epoch` of `fraction` x `size` places, `[size]`.

    The stretches lie one after the other in an endless row of shuffled sets, each edge at the nearest place.
    """
    begin, end = (math.floor(fraction * size * number + 0.5) for number in (epoch, epoch + 1))
    often = np.zeros(size, np.intp)
    for cycle in range(begin // size, -(-end // size)):
        key = np.random.SeedSequence([*seeds, cycle]).generate_state(1, np.uint64)[0]
        often += _ranked(size, key, max(begin - cycle * size, 0), min(end - cycle * size, size))
    return often


def _ranked(size: int, key: np.uint64, first: int, stop: int) -> NDArray[np.bool_]:
    """Whether a place is one of number `first` to `stop` in a random order of `size` places, `[size]`.

    The order is that of unique random integers, and only its two edges are looked for: a tenth of a sort's time.
    """
    if first >= stop:
        return np.zeros(size, bool)
    keys = np.empty(size, np.uint64)
    for begin in range(0, size, CHUNK):
        rows = np.arange(begin, min(begin + CHUNK, size), dtype=np.uint64)
        keys[begin : begin + CHUNK] = (mix64(rows, key) & _HIGH) | rows
    edges = np.partition(keys, [first, stop - 1])[[first, stop - 1]]
    return np.asarray((keys >= edges[0]) & (keys <= edges[1]))
