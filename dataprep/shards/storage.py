"""Where a shard set lies: a folder of this machine, or a place in an object store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from dataprep.shards.cache import CacheSettings
from schemas.dataset import FileInfo
from schemas.errors import FormatError


class ByteRange(NamedTuple):
    """Part of a file."""

    info: FileInfo
    """Which file."""
    offset: int
    """Where the part begins."""
    num_bytes: int
    """Its size; a part that would go beyond the end of the file ends there."""


class Storage(Protocol):
    """The files of a shard set, by name. Picklable; copies in other processes open what they need for themselves."""

    @property
    def location(self) -> str:
        """The folder or URL, for messages."""

    @property
    def is_remote(self) -> bool:
        """Whether files come from elsewhere, so that a local copy may vanish and be fetched again."""

    def read_file(self, name: str) -> bytes:
        """Content of a small file. Raises FormatError where there is none, MachineError, UsageError."""

    def local_file(self, info: FileInfo) -> Path:
        """Path of the whole file on a local disk; brought there first where it is not.

        Raises:
            FormatError: there is no such file, or it is not the one that `info` describes.
            MachineError: the place where it lies cannot be reached.
            UsageError: access is denied, or the file is larger than the cache may be.
        """

    def has(self, info: FileInfo) -> bool:
        """Whether the file is on a local disk, so that `local_file` need not bring it there."""

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes | FormatError]:
        """Parts of files that are not here; an error in the place of what there is not.

        Raises:
            MachineError, UsageError: as `local_file`.
        """

    def told_size(self, num_bytes: int) -> None:
        """Says how large all files are together."""

    def want(self, infos: Sequence[FileInfo]) -> None:
        """Says which files will be read next, in this order."""


class FolderStorage:
    """A folder of this machine.

    Args:
        folder: the folder with `shards.json`.
    """

    is_remote = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def location(self) -> str:
        """The folder."""
        return str(self.folder)

    def read_file(self, name: str) -> bytes:
        """Content of a file. Raises FormatError where there is none."""
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise FormatError(f"cannot be read: {error.strerror}", path=self.folder / name) from error

    def local_file(self, info: FileInfo) -> Path:
        """The path; whether there is such a file is found out by opening it."""
        return self.folder / info.name

    def has(self, info: FileInfo) -> bool:  # noqa: ARG002
        """Always: whether there is such a file is found out by opening it."""
        return True

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes | FormatError]:
        """Parts of files; an error in the place of one that cannot be read."""
        return [self._read_range(wanted) for wanted in ranges]

    def _read_range(self, wanted: ByteRange) -> bytes | FormatError:
        path = self.folder / wanted.info.name
        try:
            with path.open("rb") as file:
                file.seek(wanted.offset)
                return file.read(wanted.num_bytes)
        except OSError as error:
            return FormatError(f"cannot be read: {error.strerror}", path=path)

    def told_size(self, num_bytes: int) -> None:
        """Nothing to do."""

    def want(self, infos: Sequence[FileInfo]) -> None:
        """Nothing to do."""


def open_storage(location: Path | str, cache: CacheSettings | None = None) -> Storage:
    """The storage of a folder, or of a URL such as `s3://bucket/shards`."""
    if isinstance(location, str) and "://" in location:
        from dataprep.shards.objects import ObjectStorage

        return ObjectStorage(location, cache or CacheSettings())
    return FolderStorage(Path(location))
