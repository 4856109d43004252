"""The epoch plan: which utterances are computed together, and when. A pure function of lengths, settings and epoch.

    lengths [n] -> sorted by length, a little jittered -> runs that fill G micro-batches -> runs shuffled

The largest micro-batch of a step decides how long all ranks take, so all G of a step group are cut from one run of the
sorted utterances and each is filled to the same budget of padded frames. Random numbers are a hash of (seed, epoch,
row), so every rank computes the same plan with no word exchanged, and it is the same on every machine: what is sorted
are unique integers.

Cost: a few maxima over slices for each group, no loop over utterances. 10 M rows take 0.8 s for G = 8 and 2.5 s for
G = 1 on one core (scripts/bench/plan.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from schemas.base import canonical_json
from schemas.errors import UsageError

Overlong = Literal["own-batch", "error", "drop"]

DEFAULT_MAX_FRAMES = 16000
"""Padded frames of a micro-batch where no configuration says: three minutes at 22,050 Hz and a hop of 256 samples."""

_ALGORITHM = 1  # part of the digest: another way of cutting is another plan
_ROW_BITS = np.uint64(32)
_LENGTH_STEPS = 1 << 21  # steps into which the budget is divided for sorting: 0.01 frames of 20,000
_TIE_BITS = 10  # equal lengths are ordered by chance, even without jitter


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """Everything but the lengths and the epoch that decides a plan.

    Raises:
        UsageError: a value outside its range; the message names all of them.
    """

    max_frames: int
    """Most padded frames of a micro-batch: utterances times frames of the longest."""
    seed: int = 0
    """Seed of the order."""
    ranks: int = 1
    """Micro-batches of a step group: ranks times accumulations."""
    jitter: float = 0.03
    """Largest relative change of a length before sorting, so that batches are made anew; costs 0.9 of it in padding."""
    max_batch_size: int = 512
    """Most utterances of a micro-batch."""
    max_symbols: int | None = None
    """Most padded symbols of a micro-batch; no limit where None."""
    overlong: Overlong = "own-batch"
    """What becomes of an utterance that is over a limit by itself."""

    def __post_init__(self) -> None:
        wrong = [
            f"{name} = {getattr(self, name)!r} must be a whole number, at least {least} and below 2^63"
            for name, least in (("max_frames", 1), ("ranks", 1), ("max_batch_size", 1), ("max_symbols", 1), ("seed", 0))
            if not (_is_whole(getattr(self, name), least) or (name == "max_symbols" and self.max_symbols is None))
        ]
        jitter: object = self.jitter  # a configuration in YAML may say anything
        if isinstance(jitter, bool) or not isinstance(jitter, int | float) or not 0 <= jitter < 1:
            wrong.append(f"jitter = {self.jitter!r} must be from 0 to below 1")
        if self.overlong not in get_args(Overlong):
            wrong.append(f"overlong = {self.overlong!r} must be one of {', '.join(get_args(Overlong))}")
        if wrong:
            raise UsageError("plan: " + "; ".join(wrong), hint="change the value")

    def to_dict(self) -> dict[str, int | float | str | None]:
        """The settings by name, as a checkpoint stores them."""
        return dataclasses.asdict(self)

    def digest(self) -> str:
        """SHA-256 (hex) over the settings and the way of cutting: a plan's identity but for its data and epoch."""
        return hashlib.sha256(canonical_json({"algorithm": _ALGORITHM, **self.to_dict()})).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPlan:
    """One epoch: M micro-batches in S step groups. Micro-batch m is `order[batch_offsets[m]:batch_offsets[m + 1]]`."""

    order: NDArray[np.uint32]
    """Rows in the order of training `[num_utterances]`, each once."""
    batch_offsets: NDArray[np.int64]
    """Where each micro-batch starts in `order`, and the end `[M + 1]`."""
    group_offsets: NDArray[np.int64]
    """Where each step group starts among the micro-batches, and the end `[S + 1]`."""

    @property
    def num_groups(self) -> int:
        """Optimizer steps of the epoch."""
        return len(self.group_offsets) - 1


def plan_epoch(
    num_frames: NDArray[np.integer], num_symbols: NDArray[np.integer], settings: PlanSettings, epoch: int
) -> EpochPlan:
    """Plans an epoch.

    Args:
        num_frames: frames of each utterance `[n]`.
        num_symbols: symbols of each utterance `[n]`.
        settings: budget, seed and group size.
        epoch: number of the epoch, from 0.

    Raises:
        UsageError: an utterance is over a limit by itself and `settings.overlong` is `error`.
    """
    row_key, group_key = np.random.SeedSequence([settings.seed, epoch]).generate_state(2, np.uint64)
    rows = _rows_by_length(num_frames, num_symbols, settings, row_key)
    groups = _Cutter(np.asarray(num_frames)[rows], np.asarray(num_symbols)[rows], settings).cut()
    return _shuffle(rows, groups, group_key)


def overlong_rows(
    num_frames: NDArray[np.integer], num_symbols: NDArray[np.integer], settings: PlanSettings
) -> NDArray[np.int64]:
    """Rows that are over a limit by themselves, int64, ascending."""
    over = np.asarray(num_frames) > settings.max_frames
    if settings.max_symbols is not None:
        over |= np.asarray(num_symbols) > settings.max_symbols
    return np.flatnonzero(over).astype(np.int64)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


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


def _rows_by_length(
    num_frames: NDArray[np.integer], num_symbols: NDArray[np.integer], settings: PlanSettings, key: np.uint64
) -> NDArray[np.uint32]:
    """Rows from long to short with jitter, uint32; the overlong first, or left out."""
    overlong = overlong_rows(num_frames, num_symbols, settings)
    if len(overlong) and settings.overlong == "error":
        worst = overlong[np.argmax(np.asarray(num_frames)[overlong])]
        raise UsageError(
            f"{len(overlong)} utterances are over the limits by themselves; row {worst} has {num_frames[worst]} frames "
            f"(at most {settings.max_frames}) and {num_symbols[worst]} symbols (at most {settings.max_symbols})",
            hint="raise max_frames or max_symbols, or set overlong to own-batch or drop",
        )
    # The share of a micro-batch that an utterance takes, by frames or by symbols, whichever is more.
    share = np.asarray(num_frames) / settings.max_frames
    if settings.max_symbols is not None:
        np.maximum(share, np.asarray(num_symbols) / settings.max_symbols, out=share)
    chance = mix64(np.arange(len(share), dtype=np.uint64), key)
    share *= 1 + settings.jitter * (2.0 * (chance >> np.uint64(11)) / 2**53 - 1)
    # One integer to sort by: length (22 bits, so that the jittered budget fits) | chance (10 bits) | row (32 bits).
    keys = np.minimum(share * _LENGTH_STEPS, 2 * _LENGTH_STEPS - 1).astype(np.uint64) << np.uint64(_TIE_BITS)
    keys |= chance & np.uint64((1 << _TIE_BITS) - 1)
    keys = (keys << _ROW_BITS) | np.arange(len(keys), dtype=np.uint64)
    fitting = np.delete(keys, overlong) if len(overlong) else keys
    fitting.sort()
    rows = (fitting & np.uint64(0xFFFFFFFF)).astype(np.uint32)[::-1]
    if not len(overlong) or settings.overlong == "drop":
        return rows
    # stable, so that equal lengths keep the order of their rows on every machine
    alone = overlong[np.argsort(-np.asarray(num_frames)[overlong].astype(np.int64), kind="stable")]
    return np.concatenate([alone.astype(np.uint32), rows])


class _Cutter:
    """Cuts sorted utterances into step groups; each is a list of the sizes of its micro-batches."""

    def __init__(self, frames: NDArray[np.integer], symbols: NDArray[np.integer], settings: PlanSettings) -> None:
        self.frames, self.symbols, self.settings = frames, symbols, settings

    def cut(self) -> list[list[int]]:
        """The groups in the order of the utterances."""
        groups: list[list[int]] = []
        start, num_rows, ranks = 0, len(self.frames), self.settings.ranks
        while start < num_rows:
            sizes = self._uniform(start) or self._filled(start, self.settings.max_frames)
            # What is left for the last group is spread over all its micro-batches.
            if ranks > 1 and start + sum(sizes) == num_rows:
                sizes = self._spread(start)
            groups.append(sizes)
            start += sum(sizes)
        return groups

    def _uniform(self, start: int) -> list[int] | None:
        """Sizes of a group whose micro-batches all hold the same number; None where they do not, or reach the end."""
        ranks, budget = self.settings.ranks, self.settings.max_frames
        size = self._fitting(start, start + 1, budget)
        size = min(size, self._fitting(start, start + size * ranks, budget))
        stop = start + size * ranks
        if stop >= len(self.frames) or (ranks > 1 and self._fitting(stop - size, stop, budget) != size):
            return None
        return [size] * ranks

    def _filled(self, start: int, budget: int) -> list[int]:
        """Sizes of a group, each micro-batch as full as `budget` frames allow; fewer micro-batches at the end."""
        sizes: list[int] = []
        while len(sizes) < self.settings.ranks and start < len(self.frames):
            size = self._fitting(start, start + 1, budget)
            size = min(size, self._fitting(start, start + size, budget), len(self.frames) - start)
            sizes.append(size)
            start += size
        return sizes

    def _spread(self, start: int) -> list[int]:
        """Sizes of the last group under the smallest budget that holds the rest, in as many micro-batches as can be."""
        remaining = len(self.frames) - start
        low, high = 1, self.settings.max_frames
        while low < high:
            middle = (low + high) // 2
            if sum(self._filled(start, middle)) == remaining:
                high = middle
            else:
                low = middle + 1
        sizes = self._filled(start, high)
        # Short utterances may share a micro-batch and leave slots empty: halve the largest until none is.
        while len(sizes) < min(self.settings.ranks, remaining):
            place = int(np.argmax(sizes))
            sizes[place : place + 1] = [sizes[place] - sizes[place] // 2, sizes[place] // 2]
        return sizes

    def _fitting(self, start: int, stop: int, budget: int) -> int:
        """Utterances as long as the longest of `start` to `stop` that fit into a micro-batch; at least one."""
        size = min(self.settings.max_batch_size, budget // max(int(self.frames[start:stop].max()), 1))
        if self.settings.max_symbols is not None:
            size = min(size, self.settings.max_symbols // max(int(self.symbols[start:stop].max()), 1))
        return max(size, 1)


def _shuffle(rows: NDArray[np.uint32], groups: list[list[int]], key: np.uint64) -> EpochPlan:
    """Puts the groups into random order, each with its rows."""
    shuffled = np.argsort(mix64(np.arange(len(groups), dtype=np.uint64), key), kind="stable")
    row_counts = np.array([sum(sizes) for sizes in groups], dtype=np.int64)
    starts = (row_counts.cumsum() - row_counts)[shuffled]
    row_counts = row_counts[shuffled]
    # Place of each row: its place in the new order, moved by how far its group was moved.
    moved = np.repeat(starts - (row_counts.cumsum() - row_counts), row_counts)
    batch_sizes = [size for group in shuffled.tolist() for size in groups[group]]
    return EpochPlan(
        order=rows[np.arange(len(rows)) + moved],
        batch_offsets=_offsets(batch_sizes),
        group_offsets=_offsets([len(groups[group]) for group in shuffled.tolist()]),
    )


def _offsets(counts: list[int]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(counts, dtype=np.int64))])
