"""The windows of an epoch: which utterances are sorted together, and what each window hands on to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.cut import Cut, LongestBySize, cut
from trainer.data.keys import CHUNK, Lengths, largest_sizes, lengths_of, mix64, rows_of, shares, sort_keys
from trainer.data.plan_settings import PlanSettings

_BLOCK_ROWS = 1024  # rows that stay together where nothing is said of shards


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Sorted utterances of one window and how they are cut."""

    keys: NDArray[np.uint64]
    """Sorted, from long to short `[n]`."""
    cut: Cut
    """What of them is used; the rest is in the next window, or in the last group."""
    is_last: bool
    """Whether it is the epoch's last."""
    blocks: NDArray[np.int64]
    """Blocks that it adds, in the order in which they were drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochInput:
    """What an epoch is planned from."""

    num_frames: Lengths
    num_symbols: Lengths
    settings: PlanSettings
    epoch: int
    block_offsets: NDArray[np.int64] | None = None
    """Where each block of rows starts, and the end `[num_blocks + 1]`."""

    def random_keys(self) -> tuple[np.uint64, np.uint64, np.uint64]:
        """For the rows, the groups and the blocks of this epoch."""
        row, group, block = np.random.SeedSequence([self.settings.seed, self.epoch]).generate_state(3, np.uint64)
        return row, group, block

    def jitter(self) -> float:
        """The settings' jitter, or where they name none, enough to mix the few groups of a small epoch."""
        if self.settings.jitter is not None:
            return self.settings.jitter
        return min(max(self.settings.ranks / max(self._micro_batches(), 1.0), 0.01), 0.05)

    def _micro_batches(self) -> float:
        """About how many there will be: from sums of integers, which are the same on every machine."""
        settings, frames, symbols, squares = self.settings, 0, 0, 0
        for begin in range(0, len(self.num_frames), CHUNK):
            chunk = self.num_frames[begin : begin + CHUNK].astype(np.int64)
            frames += int(chunk.sum())
            squares += int((chunk * chunk).sum()) if settings.quadratic else 0
            symbols += int(self.num_symbols[begin : begin + CHUNK].sum(dtype=np.int64))
        filled = (frames + settings.quadratic * squares) / settings.max_frames
        return max(filled, symbols / settings.max_symbols) if settings.max_symbols else filled

    def keys_without_jitter(self, rows: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Keys that sort rows from long to short, equal ones by chance."""
        taken = shares(self.num_frames[rows], self.num_symbols[rows], self.settings)
        return sort_keys(rows.astype(np.uint64), taken, 0.0, self.random_keys()[0])


def block_windows(epoch_input: EpochInput) -> list[NDArray[np.int64]]:
    """The blocks of each window; all in one window and in order where no window is set."""
    offsets, settings = _offsets(epoch_input), epoch_input.settings
    num_blocks = len(offsets) - 1
    if settings.window is None:
        return [np.arange(num_blocks)]
    chance = mix64(np.arange(num_blocks, dtype=np.uint64), epoch_input.random_keys()[2])
    blocks = np.argsort(chance, kind="stable")
    ends = np.diff(offsets)[blocks].cumsum()
    num_windows = max(1, int(offsets[-1]) // settings.window)
    # windows of about equal size, each with at least one block
    edges = np.unique(np.searchsorted(ends, np.arange(1, num_windows) * (int(offsets[-1]) / num_windows)) + 1)
    return np.split(blocks, edges[edges < num_blocks])


def windows(epoch_input: EpochInput) -> Iterator[Window]:
    """Sorts and cuts one window after the other; rows that do not fill a group go to the next."""
    offsets, settings = _offsets(epoch_input), epoch_input.settings
    row_key, jitter = epoch_input.random_keys()[0], epoch_input.jitter()
    carried = np.empty(0, np.uint64)
    parts = block_windows(epoch_input)
    for number, blocks in enumerate(parts):
        longest = LongestBySize(settings.max_batch_size)
        pieces = [_noted(carried, epoch_input, longest)]
        for first, stop in _ranges(offsets, blocks):
            pieces.append(_keys(first, stop, epoch_input, row_key, jitter, longest))
        keys = np.concatenate(pieces) if len(pieces) > 2 or len(carried) else pieces[-1]
        del pieces
        keys.sort()
        window_cut = cut(longest.starts(keys), len(keys), settings)
        carried = keys[window_cut.num_rows :].copy()
        yield Window(keys=keys, cut=window_cut, is_last=number == len(parts) - 1, blocks=blocks)


def _offsets(epoch_input: EpochInput) -> NDArray[np.int64]:
    num_rows = len(epoch_input.num_frames)
    if epoch_input.settings.window is None:
        return np.array([0, num_rows], np.int64)
    if epoch_input.block_offsets is not None:
        return epoch_input.block_offsets
    return np.append(np.arange(0, num_rows, _BLOCK_ROWS, dtype=np.int64), num_rows)


def _ranges(offsets: NDArray[np.int64], blocks: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The blocks' rows, in the order of the rows, neighbours together."""
    ascending = np.sort(blocks)
    breaks = np.flatnonzero(np.diff(ascending) != 1) + 1
    for run in np.split(ascending, breaks):
        if len(run):
            yield int(offsets[run[0]]), int(offsets[run[-1] + 1])


def _keys(
    first: int, stop: int, epoch_input: EpochInput, row_key: np.uint64, jitter: float, longest: LongestBySize
) -> NDArray[np.uint64]:
    """Keys of the rows from `first` to `stop`; the overlong are left out where they are dropped."""
    settings, keys, filled = epoch_input.settings, np.empty(stop - first, np.uint64), 0
    for begin in range(first, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        rows = np.arange(begin, end, dtype=np.uint64)
        taken = shares(epoch_input.num_frames[begin:end], epoch_input.num_symbols[begin:end], settings)
        sizes = largest_sizes(taken, settings.max_batch_size)
        if settings.overlong == "drop" and not sizes.all():
            rows, taken, sizes = rows[sizes > 0], taken[sizes > 0], sizes[sizes > 0]
        chunk = sort_keys(rows, taken, jitter, row_key)
        longest.add(sizes, lengths_of(chunk))
        keys[filled : filled + len(chunk)] = chunk
        filled += len(chunk)
    return keys[:filled]


def _noted(carried: NDArray[np.uint64], epoch_input: EpochInput, longest: LongestBySize) -> NDArray[np.uint64]:
    """The carried keys, taken note of in `longest`."""
    rows = rows_of(carried)
    taken = shares(epoch_input.num_frames[rows], epoch_input.num_symbols[rows], epoch_input.settings)
    longest.add(largest_sizes(taken, epoch_input.settings.max_batch_size), lengths_of(carried))
    return carried
