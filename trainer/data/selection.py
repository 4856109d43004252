"""Which utterances of a split can be trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dataprep.shards.reader import ShardSet
from schemas.utterance import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The utterances of a split that are planned, and those that are not."""

    rows: NDArray[np.int64]
    """Rows of the index `[n]`, ascending; a plan's rows are places in here."""
    num_frames: NDArray[np.int64]
    """Frames of each `[n]`."""
    num_symbols: NDArray[np.int64]
    """Symbols of each `[n]`."""
    excluded: tuple[str, ...]
    """Keys of the utterances that cannot be trained on."""

    def warning(self, split: Split) -> str | None:
        """One sentence that names the excluded, or None."""
        if not self.excluded:
            return None
        count = len(self.excluded)
        more = count - 10
        named = ", ".join(self.excluded[:10]) + (f" and {more} more" if more > 0 else "")
        return (
            f"{count} utterance{'s' * (count > 1)} of the {split} split left out: no symbols, or fewer frames than "
            f"2 x symbols + 1, so that not every symbol and gap could get a frame: {named}"
        )


def select(shards: ShardSet, split: Split) -> Selection:
    """The trainable utterances of a split.

    The aligner gives at least one frame to each symbol and to each of the gaps around them, which are 2 x symbols + 1.
    """
    rows = shards.rows_of(split)
    frames = shards.columns.frames[rows].astype(np.int64)
    symbols = shards.columns.symbols[rows].astype(np.int64)
    trainable = (symbols > 0) & (frames >= 2 * symbols + 1)
    return Selection(
        rows=rows[trainable],
        num_frames=frames[trainable],
        num_symbols=symbols[trainable],
        excluded=tuple(shards.key(int(row)) for row in rows[~trainable]),
    )
