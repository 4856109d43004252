"""Copies of far-away files on a local disk: named by content, shared by all processes, bounded.

A file has its SHA-256 for a name, so a copy can never be that of another file. It is fetched by one process at a time,
under a temporary name of its final size, so that what is on its way counts against the limit too.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from schemas.dataset import FileInfo
from schemas.errors import FormatError, UsageError

_PART = ".part"
_KEPT_SUFFIX = ".arrow"  # an index is read all the time, and is small beside its shards


def default_folder() -> Path:
    """`voxloom` in the user's cache folder (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "voxloom"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """Where copies are kept, and how patient a reader is."""

    folder: Path = field(default_factory=default_folder)
    """Folder of the copies."""
    max_bytes: int = 50 * 10**9
    """The least recently opened copies are removed when there are more."""
    retry_seconds: float = 300.0
    """How long an object store may be out of reach before it is an error."""


class FileCache:
    """The copies in a folder.

    Args:
        folder: made where it is missing.
        max_bytes: most bytes in it.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder, self.max_bytes = folder, max_bytes

    def path(self, info: FileInfo) -> Path:
        """Where the copy of a file is, or would be."""
        return self.folder / f"{info.sha256}{Path(info.name).suffix}"

    def is_coming(self, info: FileInfo) -> bool:
        """Whether the file is here, or on its way."""
        return self.path(info).exists() or self._part(info).exists()

    def get(self, info: FileInfo, fetch: Callable[[IO[bytes]], None]) -> Path:
        """Path of the copy, fetched first where there is none.

        Args:
            info: name, size and hash.
            fetch: writes the content into an open file, from its start; may be called again after an error of its own.

        Raises:
            FormatError: what was fetched is not what `info` describes.
            UsageError: the file is larger than the cache may be.
        """
        path = self.path(info)
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._lock(info.sha256):
                if not path.exists():
                    self._fetch(info, fetch)
        with suppress(FileNotFoundError):  # removed by another process meanwhile: the caller will ask again
            os.utime(path)
        return path

    def _fetch(self, info: FileInfo, fetch: Callable[[IO[bytes]], None]) -> None:
        part = self._part(info)  # a killed process may have left one; its lock is gone, and it is written over
        try:
            with part.open("w+b") as handle:
                with self._lock("room"):
                    self._make_room(info, part)
                    handle.truncate(info.bytes)
                fetch(handle)
                handle.seek(0)
                found = (os.fstat(handle.fileno()).st_size, hashlib.file_digest(handle, "sha256").hexdigest())
                if found != (info.bytes, info.sha256):
                    raise FormatError(
                        f"has {found[0]} bytes and SHA-256 {found[1][:12]}, "
                        f"the manifest says {info.bytes} and {info.sha256[:12]}",
                        hint="upload the shard set again",
                    )
                os.fsync(handle.fileno())
            part.replace(self.path(info))
        finally:
            part.unlink(missing_ok=True)

    def _make_room(self, info: FileInfo, part: Path) -> None:
        if info.bytes > self.max_bytes:
            raise UsageError(
                f"{info.name} has {info.bytes:,} bytes, the cache may hold {self.max_bytes:,}",
                hint="give a larger --data.cache_gigabytes",
            )
        known = []
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):
                if path != part and path.suffix != ".lock":
                    known.append((path.stat(), path))
        total = sum(stat.st_size for stat, _ in known)
        for stat, path in sorted(known, key=lambda item: item[0].st_mtime_ns):
            if total + info.bytes <= self.max_bytes:
                break
            if path.suffix not in (_PART, _KEPT_SUFFIX):
                path.unlink(missing_ok=True)
                total -= stat.st_size

    def _part(self, info: FileInfo) -> Path:
        return self.folder / f"{info.sha256}{_PART}"

    @contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        """One process at a time; the lock ends with the process that holds it."""
        with (self.folder / f"{name}.lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
