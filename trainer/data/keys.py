"""The order of an epoch: one integer for each utterance, by which a window is sorted from long to short.

    key = length, the longest first (22 bits) | chance (10 bits) | row (32 bits)

Random numbers are a hash of (key of the epoch, row): every rank, every window and every machine gets the same integer
for a row, with no word exchanged and in any order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainer.data.plan_settings import PlanSettings

Lengths = NDArray[np.integer]

CHUNK = 1 << 16
"""Rows worked on at once: the temporaries of one chunk stay in the processor's cache."""
_LENGTH_STEPS = 1 << 21  # steps into which the budget is divided for sorting: 0.01 frames of 20,000
_LONGEST = 2 * _LENGTH_STEPS - 1
_TIE_BITS = 10  # equal lengths are ordered by chance, even without jitter
LENGTH_SHIFT = np.uint64(32 + _TIE_BITS)
_ROUNDING = 1e-12  # over the rounding of a division, under the smallest step of a length


def mix64(values: NDArray[np.uint64], key: np.uint64) -> NDArray[np.uint64]:
    """A random 64-bit number of each value and `key`.

    The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), with
    the counter `key + (value + 1) * golden gamma`.
    """
    with np.errstate(over="ignore"):
        mixed = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + key
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def shares(num_frames: Lengths, num_symbols: Lengths, settings: PlanSettings) -> NDArray[np.float64]:
    """The share of a micro-batch that an utterance takes, by cost or by symbols, whichever is more, float64 `[n]`."""
    frames = np.asarray(num_frames, dtype=np.float64)
    cost = frames + settings.quadratic * frames * frames if settings.quadratic else frames
    taken = cost * (1 / settings.max_frames)
    if settings.max_symbols is not None:
        np.maximum(taken, np.asarray(num_symbols, dtype=np.float64) * (1 / settings.max_symbols), out=taken)
    return taken


def largest_sizes(taken: NDArray[np.float64], max_batch_size: int) -> NDArray[np.int64]:
    """Utterances of this share that fit into a micro-batch, int64 `[n]`, from 0 (overlong) to `max_batch_size`."""
    with np.errstate(divide="ignore"):
        return np.minimum((1 + _ROUNDING) / taken, max_batch_size).astype(np.int64)


def sort_keys(
    rows: NDArray[np.uint64], taken: NDArray[np.float64], jitter: float, key: np.uint64
) -> NDArray[np.uint64]:
    """Keys of rows that take these shares of a micro-batch, uint64 `[n]`."""
    chance = mix64(rows, key)
    jittered = taken * (_LENGTH_STEPS * (1 + jitter * ((chance >> np.uint64(11)) * 2.0**-52 - 1)))
    keys = _LONGEST - np.minimum(jittered, _LONGEST).astype(np.uint64)
    keys <<= np.uint64(_TIE_BITS)
    keys |= chance & np.uint64((1 << _TIE_BITS) - 1)
    keys <<= np.uint64(32)
    keys |= rows
    return keys


def lengths_of(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The part of the keys that says the length, 0 for the longest."""
    return np.asarray(keys >> LENGTH_SHIFT)


def rows_of(keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The rows in keys, uint32 `[n]`."""
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)
