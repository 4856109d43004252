"""Reads many members of a shard set at once: sorted by place, neighbours in one read, each checked."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from isal import isal_zlib
from numpy.typing import NDArray

from dataprep.shards.files import ShardFiles
from schemas.errors import FormatError, MachineError

Content = bytes | memoryview
Loaded = Content | FormatError

MAX_GAP_BYTES = 32 * 1024
"""Bytes between two members that are read and thrown away rather than read around."""
MAX_SPAN_BYTES = 16 * 1024 * 1024
_MAX_EXPECTED_BYTES = 64 * 1024 * 1024
"""Asked of an object store at once, and kept in memory meanwhile: hundreds of utterances."""
_OTHER_CHECKSUM = "differs from its checksum in the index"
_OF_THE_MACHINE = frozenset(
    {
        errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM,
        errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN,
    }
)  # fmt: skip
"""Failures that say nothing of the utterance: its shard is as good as before once the machine is."""


@dataclass(frozen=True, slots=True)
class MemberColumns:
    """Where a member lies, by row of the index: offset and size in a tar, row group and row in Parquet."""

    first: NDArray[np.integer]
    second: NDArray[np.integer]
    crc32: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Members to be read, in the order in which they lie; as lists, since thousands are read a second."""

    shard: list[int]
    """Number of the shard of each."""
    first: list[int]
    """Where its content begins in a tar; the row group in Parquet."""
    second: list[int]
    """Bytes in a tar; the row in its row group in Parquet."""
    crc32: list[int]
    """Its checksum."""
    place: list[int]
    """Where the caller wants it: by member, then by row."""
    spans: list[int]
    """What is read at once in a tar: edges of runs of members, from 0 to their number."""


def wanted(rows: NDArray[np.int64], shard: NDArray[np.uint32], members: Sequence[MemberColumns]) -> Wanted:
    """Some members of some rows; places count the rows of the first member, then those of the next."""
    shards = np.tile(shard[rows].astype(np.int64), len(members))
    first, second, crc32 = (
        np.concatenate([getattr(columns, name)[rows] for columns in members]).astype(np.int64)
        for name in ("first", "second", "crc32")
    )
    order = np.lexsort((second, first, shards))
    shards, first, second = shards[order], first[order], second[order]
    return Wanted(
        shard=shards.tolist(),
        first=first.tolist(),
        second=second.tolist(),
        crc32=crc32[order].tolist(),
        place=order.tolist(),
        spans=spans(shards, first, second),
    )


def spans(shard: NDArray[np.int64], offset: NDArray[np.int64], size: NDArray[np.int64]) -> list[int]:
    """Edges of the runs of members of tars that are one read each, of members in the order in which they lie.

    A run has no gap of more than `MAX_GAP_BYTES`, and is no longer than `MAX_SPAN_BYTES` and a member.
    """
    if not len(shard):
        return [0]
    end = offset + size
    begins = np.ones(len(shard), dtype=bool)
    begins[1:] = (shard[1:] != shard[:-1]) | (offset[1:] - end[:-1] > MAX_GAP_BYTES)
    length = end - offset[begins][np.cumsum(begins) - 1]
    begins[1:] |= length[1:] // MAX_SPAN_BYTES > length[:-1] // MAX_SPAN_BYTES
    return [*np.flatnonzero(begins).tolist(), len(shard)]


class Scratch:
    """Memory that is read into again and again, so that it stays in the processor's cache."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def __call__(self, num_bytes: int) -> memoryview:
        """Room for so many bytes; what was there is overwritten."""
        if len(self._buffer) < num_bytes:
            self._buffer = bytearray(num_bytes + num_bytes // 4)
        return memoryview(self._buffer)[:num_bytes]


def fresh(num_bytes: int) -> memoryview:
    """Room for so many bytes that nobody else has."""
    return memoryview(bytearray(num_bytes))


def iter_members(
    files: ShardFiles,
    members: Wanted,
    names: Sequence[str],
    *,
    fault: Callable[[int, str], FormatError],
    room: Callable[[int], memoryview] = fresh,
) -> Iterator[tuple[int, Loaded]]:
    """Places of members in the order in which they lie, each with the content, or an error where it cannot be read.

    Args:
        files: the open files.
        members: what to read.
        names: columns of Parquet in the order of the members; none for tar.
        fault: makes the error of the member of a place.
        room: gives memory to read a tar into; a `Scratch` makes contents valid until the next step only.

    Raises:
        MachineError: the shards cannot be reached.
    """
    return _read_parquet(files, members, names, fault) if names else _read_tar(files, members, fault, room)


def _read_tar(
    files: ShardFiles, members: Wanted, fault: Callable[[int, str], FormatError], room: Callable[[int], memoryview]
) -> Iterator[tuple[int, Loaded]]:
    shards, offsets, sizes, checksums, places = (
        members.shard, members.first, members.second, members.crc32, members.place,
    )  # fmt: skip
    runs = pairwise(members.spans)
    for begin, end in _expected(files, members, runs) if files.is_remote else runs:
        start = offsets[begin]
        try:
            view = files.read_span(shards[begin], start, room(offsets[end - 1] + sizes[end - 1] - start))
        except (OSError, FormatError) as error:
            reason = _reason(error)
            yield from ((place, fault(place, reason)) for place in places[begin:end])
            continue
        for at in range(begin, end):
            offset, size = offsets[at] - start, sizes[at]
            part = view[offset : offset + size]
            if len(part) != size:
                yield places[at], fault(places[at], "cannot be read: the shard ends before it")
            elif isal_zlib.crc32(part) != checksums[at]:
                yield places[at], fault(places[at], _OTHER_CHECKSUM)
            else:
                yield places[at], part


def _expected(files: ShardFiles, members: Wanted, runs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The same runs; those that are far away are asked for many at once."""
    some: list[tuple[tuple[int, int], tuple[int, int, int]]] = []
    num_bytes = 0
    for begin, end in runs:
        start = members.first[begin]
        span = (members.shard[begin], start, members.first[end - 1] + members.second[end - 1] - start)
        some.append(((begin, end), span))
        num_bytes += span[2]
        if num_bytes >= _MAX_EXPECTED_BYTES:
            files.expect([span for _, span in some])
            yield from (run for run, _ in some)
            some, num_bytes = [], 0
    files.expect([span for _, span in some])
    yield from (run for run, _ in some)


def _read_parquet(
    files: ShardFiles, members: Wanted, names: Sequence[str], fault: Callable[[int, str], FormatError]
) -> Iterator[tuple[int, Loaded]]:
    columns, num_rows = tuple(sorted(names)), len(members.place) // len(names)
    for at, place in enumerate(members.place):
        try:
            table = files.row_group(members.shard[at], members.first[at], columns)
            content = _cell(table, names[place // num_rows], members.second[at])
        except (OSError, FormatError, ValueError, IndexError, pa.ArrowException) as error:
            yield place, fault(place, _reason(error))
        else:
            yield place, content if isal_zlib.crc32(content) == members.crc32[at] else fault(place, _OTHER_CHECKSUM)


def _cell(table: pa.Table, member: str, row: int) -> memoryview:
    """A value of a row group. Its file may be damaged, so that even its columns are others."""
    column = table.column(member) if member in table.column_names else pa.chunked_array([], pa.null())
    if column.type != pa.binary() or column.null_count:
        raise FormatError(f"the shard has no such column, or none of whole values, but {column.type}")
    return memoryview(column[row].as_buffer())


def _reason(error: Exception) -> str:
    """What an error says, without the path that the message names anyway.

    Raises:
        MachineError: it is one of the machine, not of the shard.
    """
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        raise MachineError(
            f"the shard cannot be read: {error.strerror}",
            hint="put that right (permissions, memory, `ulimit -n`): the same command goes on",
            path=error.filename,
        ) from error
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"cannot be read: {error.message if isinstance(error, FormatError) else error}"
