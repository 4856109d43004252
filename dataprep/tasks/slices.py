"""Rows of a source cut into slices whose borders depend on the rows around them alone.

A border stands after every row whose id hashes to a multiple of 64, so that an added or removed row touches its own
slice and at most its neighbour, and every other part keeps its name (content-defined chunking, as in LBFS:
Muthitacharoen et al. 2001). Caps bound the memory and time of a slice; they too are counted from the last border.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from dataprep.sources import SourceRow

MEAN_ROWS = 64
"""64 files a task keep two cores busy; one file a task costs up to twice the CPU."""
MAX_ROWS = 256
MAX_BYTES = 256 * 1024 * 1024


def cut_slices(rows: Sequence[SourceRow]) -> list[tuple[SourceRow, ...]]:
    """Slices of `rows` (sorted by id), in order, none empty."""
    slices: list[tuple[SourceRow, ...]] = []
    slice_: list[SourceRow] = []
    num_bytes = 0
    for row in rows:
        if slice_ and (len(slice_) >= MAX_ROWS or num_bytes + row.num_bytes > MAX_BYTES):
            slices.append(tuple(slice_))
            slice_, num_bytes = [], 0
        slice_.append(row)
        num_bytes += row.num_bytes
        if is_border(row.id):
            slices.append(tuple(slice_))
            slice_, num_bytes = [], 0
    if slice_:
        slices.append(tuple(slice_))
    return slices


def is_border(utterance_id: str) -> bool:
    """Whether a slice ends after the row with this id."""
    return int.from_bytes(hashlib.sha256(utterance_id.encode()).digest()[:4]) % MEAN_ROWS == 0
