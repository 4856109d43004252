"""The open files of a shard set: a bounded number, each opened by the process that reads it."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.shards.storage import ByteRange, Storage
from schemas.errors import FormatError
from schemas.shards import ShardInfo

MAX_OPEN_FILES = 64
_ATTEMPTS = 10
_MAX_ROW_GROUPS = 8
"""Row groups kept: a batch is read row group by row group, and its neighbour may want the last ones again."""


class ShardFiles:
    """Opens shards when they are first read, at most 64 at a time; a forked copy opens its own.

    Args:
        storage: where they lie.
        shards: what the manifest says of each, by number.
    """

    def __init__(self, storage: Storage, shards: Sequence[ShardInfo]) -> None:
        self._storage, self._shards = storage, shards
        self._start()

    def _start(self) -> None:
        self._open: OrderedDict[int, int | pq.ParquetFile] = OrderedDict()
        self._row_groups: OrderedDict[tuple[int, int, tuple[str, ...]], pa.Table] = OrderedDict()
        self._asked_for: dict[tuple[int, int], bytes | FormatError] = {}
        self._pid = os.getpid()

    @property
    def is_remote(self) -> bool:
        """Whether shards may be far away."""
        return self._storage.is_remote

    def expect(self, spans: Sequence[tuple[int, int, int]]) -> None:
        """Asks at once for what is far away of some spans: shard, offset and size, as `read_span` will be asked.

        Raises:
            MachineError, UsageError: as `Storage` raises them.
        """
        self._own()
        far = [span for span in spans if span[0] not in self._open and not self._storage.has(self._shards[span[0]])]
        parts = self._storage.read_ranges([ByteRange(self._shards[shard], offset, size) for shard, offset, size in far])
        self._asked_for = {span[:2]: part for span, part in zip(far, parts, strict=True)}

    def read_span(self, shard: int, offset: int, into: memoryview) -> memoryview:
        """Bytes of a tar, as many as `into` has room for, put there; fewer where the tar ends before.

        Raises:
            OSError: it cannot be opened or read.
            FormatError, MachineError: as `Storage` raises them.
        """
        if self._asked_for:
            part = self._asked_for.pop((shard, offset), None)
            if isinstance(part, FormatError):
                raise part
            if part is not None:
                return memoryview(part)
        file = self._file(shard)
        assert isinstance(file, int)
        num_read = os.preadv(file, [into], offset)
        return into if num_read == len(into) else into[:num_read]

    def row_group(self, shard: int, group: int, columns: tuple[str, ...]) -> pa.Table:
        """A row group of a Parquet shard. Raises OSError, pyarrow.ArrowInvalid, FormatError or MachineError."""
        file = self._file(shard)
        wanted = (shard, group, columns)
        if wanted not in self._row_groups:
            if len(self._row_groups) >= _MAX_ROW_GROUPS:
                self._row_groups.popitem(last=False)
            assert isinstance(file, pq.ParquetFile)
            self._row_groups[wanted] = file.read_row_group(group, columns=list(columns), use_threads=False)
        self._row_groups.move_to_end(wanted)
        return self._row_groups[wanted]

    def _file(self, shard: int) -> int | pq.ParquetFile:
        self._own()
        file = self._open.get(shard)
        if file is None:
            if self._storage.is_remote:
                self._close_removed()
            if len(self._open) >= MAX_OPEN_FILES:
                _close(self._open.popitem(last=False)[1])
            file = self._open[shard] = self._opened(self._shards[shard])
        self._open.move_to_end(shard)
        return file

    def _own(self) -> None:
        if self._pid != os.getpid():
            self._start()

    def _close_removed(self) -> None:
        """Closes what the cache has no room for any more: it takes disk space for as long as it is open."""
        for shard in [shard for shard in self._open if not self._storage.has(self._shards[shard])]:
            _close(self._open.pop(shard))

    def _opened(self, info: ShardInfo) -> int | pq.ParquetFile:
        for attempt in range(_ATTEMPTS):
            path = self._storage.local_file(info)
            try:
                path.stat()  # pyarrow's own error has no reason to show
                return os.open(path, os.O_RDONLY) if info.name.endswith(".tar") else pq.ParquetFile(path)
            except FileNotFoundError:  # a copy may have made room for another between the two lines
                if not self._storage.is_remote or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def close(self) -> None:
        """Closes what is open; reading opens it again."""
        while self._open:
            _close(self._open.popitem()[1])
        self._row_groups.clear()


def _close(file: int | pq.ParquetFile) -> None:
    if isinstance(file, int):
        os.close(file)
    else:
        file.close()
