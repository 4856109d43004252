"""Reads many members of a shard set at once: sorted by place, neighbours in one read, each checked."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

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
_MAX_SPAN_BYTES = 16 * 1024 * 1024
_MAX_EXPECTED_BYTES = 64 * 1024 * 1024
"""Asked of an object store at once, and kept in memory meanwhile: hundreds of utterances."""
_OF_THE_MACHINE = frozenset(
    {
        errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM,
        errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN,
    }
)  # fmt: skip
"""Failures that say nothing of the utterance: its shard is as good as before once the machine is."""


class Wanted(NamedTuple):
    """A member to be read. A tuple, since thousands are made a second: a frozen dataclass takes four times as long."""

    shard: int
    """Number of its shard."""
    offset: int
    """Where its content begins in a tar; the row group in Parquet."""
    size: int
    """Bytes in a tar; the row in its row group in Parquet."""
    place: int
    """Where the caller wants it."""
    row: int
    """Row of the index."""
    crc32: int
    """Its checksum."""
    member: str
    """json, flac or mel."""


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
    places = np.arange(first_place, first_place + len(rows))
    values = (shard[rows], columns.first[rows], columns.second[rows], places, rows, columns.crc32[rows])
    return list(map(Wanted, *(value.tolist() for value in values), repeat(member)))


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
    members: Iterable[Wanted],
    *,
    is_tar: bool,
    fault: Callable[[Wanted, str], FormatError],
    room: Callable[[int], memoryview] = fresh,
) -> Iterator[tuple[Wanted, Loaded]]:
    """Members in the order in which they lie, each with its content, or an error in the place of what cannot be read.

    Args:
        files: the open files.
        members: what to read, in any order.
        is_tar: tar or Parquet.
        fault: makes the error of a member.
        room: gives memory to read a tar into; a `Scratch` makes contents valid until the next step only.

    Raises:
        MachineError: the shards cannot be reached.
    """
    ordered = sorted(members)
    read = _read_tar(files, ordered, fault, room) if is_tar else _read_parquet(files, ordered, fault)
    for item, content in read:
        if not isinstance(content, FormatError) and isal_zlib.crc32(content) != item.crc32:
            yield item, fault(item, "differs from its checksum in the index")
        else:
            yield item, content


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
    files: ShardFiles,
    ordered: Sequence[Wanted],
    fault: Callable[[Wanted, str], FormatError],
    room: Callable[[int], memoryview],
) -> Iterator[tuple[Wanted, Loaded]]:
    for group in _expected(files, spans(ordered)) if files.is_remote else spans(ordered):
        start = group[0].offset
        try:
            view = files.read_span(group[0].shard, start, room(group[-1].offset + group[-1].size - start))
        except (OSError, FormatError) as error:
            reason = _reason(error)
            yield from ((item, fault(item, reason)) for item in group)
            continue
        for item in group:
            part = view[item.offset - start : item.offset - start + item.size]
            yield item, part if len(part) == item.size else fault(item, "cannot be read: the shard ends before it")


def _expected(files: ShardFiles, groups: Iterable[list[Wanted]]) -> Iterator[list[Wanted]]:
    """The same groups; those that are far away are asked for many at once."""
    some: list[tuple[list[Wanted], tuple[int, int, int]]] = []
    num_bytes = 0
    for group in groups:
        first, last = group[0], group[-1]
        span = (first.shard, first.offset, last.offset + last.size - first.offset)
        some.append((group, span))
        num_bytes += span[2]
        if num_bytes >= _MAX_EXPECTED_BYTES:
            files.expect([span for _, span in some])
            yield from (group for group, _ in some)
            some, num_bytes = [], 0
    files.expect([span for _, span in some])
    yield from (group for group, _ in some)


def _read_parquet(
    files: ShardFiles, ordered: Sequence[Wanted], fault: Callable[[Wanted, str], FormatError]
) -> Iterator[tuple[Wanted, Loaded]]:
    columns = tuple(sorted({item.member for item in ordered}))
    for item in ordered:
        try:
            content: Loaded = _cell(files.row_group(item.shard, item.offset, columns), item.member, item.size)
        except (OSError, FormatError, ValueError, IndexError, pa.ArrowException) as error:
            content = fault(item, _reason(error))
        yield item, content


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
