"""Reads many members of a shard set at once: sorted by place, neighbours in one read, each checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from isal import isal_zlib
from numpy.typing import NDArray

from dataprep.shards.files import ShardFiles
from schemas.errors import FormatError

Content = bytes | memoryview
Loaded = Content | FormatError

MAX_GAP_BYTES = 32 * 1024
"""Bytes between two members that are read and thrown away rather than read around."""
_MAX_SPAN_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """A member to be read."""

    place: int
    """Where the caller wants it."""
    member: str
    """json, flac or mel."""
    row: int
    """Row of the index."""
    shard: int
    """Number of its shard."""
    offset: int
    """Where its content begins in a tar; the row group in Parquet."""
    size: int
    """Bytes in a tar; the row in its row group in Parquet."""
    crc32: int
    """Its checksum."""


@dataclass(frozen=True, slots=True)
class MemberColumns:
    """Where a member lies, by row of the index: offset and size in a tar, row group and row in Parquet."""

    first: NDArray[np.integer]
    second: NDArray[np.integer]
    crc32: NDArray[np.uint32]


def wanted(
    member: str, rows: NDArray[np.int64], shard: NDArray[np.uint32], columns: MemberColumns, first_place: int
) -> list[Wanted]:
    """One member of some rows, to be put at `first_place` and after."""
    values = (rows, shard[rows], columns.first[rows], columns.second[rows], columns.crc32[rows])
    return [
        Wanted(first_place + place, member, *of_row)
        for place, of_row in enumerate(zip(*(value.tolist() for value in values), strict=True))
    ]


def read_members(
    files: ShardFiles, members: Iterable[Wanted], *, is_tar: bool, fault: Callable[[Wanted, str], FormatError]
) -> dict[int, Loaded]:
    """Contents by the place that each is wanted at; an error in the place of what cannot be read.

    Args:
        files: the open files.
        members: what to read, in any order.
        is_tar: tar or Parquet.
        fault: makes the error of a member.

    Raises:
        MachineError: the shards cannot be reached.
    """
    ordered = sorted(members, key=lambda item: (item.shard, item.offset, item.size))
    read = _read_tar if is_tar else _read_parquet
    loaded: dict[int, Loaded] = {}
    for item, content in read(files, ordered, fault):
        if not isinstance(content, FormatError) and isal_zlib.crc32(content) != item.crc32:
            content = fault(item, "differs from its checksum in the index")
        loaded[item.place] = content
    return loaded


def spans(ordered: Sequence[Wanted]) -> Iterator[list[Wanted]]:
    """Members of a tar, in the order of their places, in groups that are read at once."""
    group: list[Wanted] = []
    for item in ordered:
        if group:
            first, last = group[0], group[-1]
            near = item.shard == last.shard and item.offset - (last.offset + last.size) <= MAX_GAP_BYTES
            if not near or item.offset + item.size - first.offset > _MAX_SPAN_BYTES:
                yield group
                group = []
        group.append(item)
    if group:
        yield group


def _read_tar(
    files: ShardFiles, ordered: Sequence[Wanted], fault: Callable[[Wanted, str], FormatError]
) -> Iterator[tuple[Wanted, Loaded]]:
    for group in spans(ordered):
        start = group[0].offset
        try:
            content = files.read_span(group[0].shard, start, group[-1].offset + group[-1].size - start)
        except (OSError, FormatError) as error:
            yield from ((item, fault(item, _reason(error))) for item in group)
            continue
        if len(group) == 1 and len(content) == group[0].size:
            yield group[0], content
            continue
        view = memoryview(content)
        for item in group:
            part = view[item.offset - start : item.offset - start + item.size]
            yield item, part if len(part) == item.size else fault(item, "cannot be read: the shard ends before it")


def _read_parquet(
    files: ShardFiles, ordered: Sequence[Wanted], fault: Callable[[Wanted, str], FormatError]
) -> Iterator[tuple[Wanted, Loaded]]:
    columns = tuple(sorted({item.member for item in ordered}))
    for item in ordered:
        try:
            column = files.row_group(item.shard, item.offset, columns).column(item.member)
            yield item, memoryview(column[item.size].as_buffer())
        except (OSError, FormatError, pa.ArrowInvalid, IndexError) as error:
            yield item, fault(item, _reason(error))


def _reason(error: Exception) -> str:
    """What an error says, without the path that the message names anyway."""
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"cannot be read: {error.message if isinstance(error, FormatError) else error}"
