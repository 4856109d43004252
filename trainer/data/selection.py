"""Which utterances of a split can be trained on, and which of them an epoch is planned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from schemas.utterance import Split

_NAMED = 10
_CHUNK = 1 << 20


class Columns(Protocol):
    """Columns of an index `[num_rows]`."""

    @property
    def frames(self) -> NDArray[np.uint32]:
        """Frames of each utterance."""

    @property
    def symbols(self) -> NDArray[np.uint32]:
        """Symbols of each utterance."""


class Rows(Protocol):
    """A shard set, or several as one: what can be asked of its index."""

    @property
    def columns(self) -> Columns:
        """Lengths."""

    def rows_of(self, split: Split) -> NDArray[np.int64]:
        """Rows of a split, ascending."""

    def key(self, row: int) -> str:
        """Key of the utterance in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The utterances of a split that are planned, and those that are not; a plan's rows are places in here.

    Of a split that can be trained on as a whole, it holds views of the index and not an integer for each utterance.
    """

    first_row: int
    """Row of the index at place 0, where `kept` is None."""
    kept: NDArray[np.uint32] | None
    """Row of the index at each place `[n]`; None where they are neighbours."""
    num_frames: NDArray[np.integer[Any]]
    """Frames of each utterance `[n]`."""
    num_symbols: NDArray[np.integer[Any]]
    """Symbols of each utterance `[n]`."""
    excluded: tuple[str, ...] = ()
    """Keys of the utterances that cannot be trained on."""

    def __len__(self) -> int:
        return len(self.num_frames)

    def rows_at(self, places: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Rows of the index at some places, int64."""
        if self.kept is None:
            return np.asarray(places, dtype=np.int64) + self.first_row
        return np.asarray(self.kept[places], dtype=np.int64)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of the index at all places, int64 `[n]`; made when asked for."""
        return self.rows_at(np.arange(len(self)))

    def take(self, places: NDArray[np.integer[Any]]) -> Selection:
        """The utterances at some places, each as often as it is named."""
        return Selection(
            first_row=0,
            kept=self.rows_at(places).astype(np.uint32),
            num_frames=self.num_frames[places],
            num_symbols=self.num_symbols[places],
            excluded=self.excluded,
        )

    def without(self, rows: Sequence[int]) -> Selection:
        """The utterances but for those in some rows of the index."""
        if not len(rows):
            return self
        return self.take(np.flatnonzero(~np.isin(self.rows, np.asarray(rows, dtype=np.int64))))

    def warning(self, split: Split) -> str | None:
        """One sentence that names the excluded, or None."""
        if not self.excluded:
            return None
        count = len(self.excluded)
        more = count - _NAMED
        named = ", ".join(self.excluded[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        return (
            f"{count} utterance{'s' * (count > 1)} of the {split} split left out: no symbols, or fewer frames than "
            f"2 x symbols + 1, so that not every symbol and gap could get a frame: {named}"
        )


def select(shards: Rows, split: Split) -> Selection:
    """The trainable utterances of a split.

    The aligner gives at least one frame to each symbol and to each of the gaps around them, which are 2 x symbols + 1.
    """
    rows, columns = shards.rows_of(split), shards.columns
    num_rows = len(rows)
    if num_rows and int(rows[-1]) - int(rows[0]) + 1 == num_rows:
        where = slice(int(rows[0]), int(rows[-1]) + 1)
        frames, symbols = columns.frames[where], columns.symbols[where]
    else:
        frames, symbols = columns.frames[rows], columns.symbols[rows]
    refused = _untrainable(frames, symbols)
    if not len(refused):
        neighbours = num_rows == 0 or int(rows[-1]) - int(rows[0]) + 1 == num_rows
        return Selection(
            first_row=int(rows[0]) if num_rows else 0,
            kept=None if neighbours else rows.astype(np.uint32),
            num_frames=frames,
            num_symbols=symbols,
        )
    trainable = np.ones(num_rows, bool)
    trainable[refused] = False
    return Selection(
        first_row=0,
        kept=rows[trainable].astype(np.uint32),
        num_frames=frames[trainable],
        num_symbols=symbols[trainable],
        excluded=tuple(shards.key(int(row)) for row in rows[refused]),
    )


def _untrainable(frames: NDArray[np.uint32], symbols: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Places of what cannot be aligned, ascending."""
    found = [np.empty(0, np.int64)]
    for begin in range(0, len(frames), _CHUNK):
        some, more = (values[begin : begin + _CHUNK].astype(np.int64) for values in (frames, symbols))
        found.append(begin + np.flatnonzero((more == 0) | (some < 2 * more + 1)))
    return np.concatenate(found)
