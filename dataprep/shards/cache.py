"""Copies of far-away files on a local disk: named by content, shared by all processes, bounded.

A copy has its SHA-256 for a name, so it can never be that of another file. It is fetched by one process at a time,
under a temporary name of its final size, so that what is on its way counts against the limit too. The temporary file
is its own lock: one that nobody holds was left by a killed process, and is removed by the next who needs room.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedRandom
from pathlib import Path
from typing import BinaryIO

from dataprep.shards.locks import is_at, lock, opened_to_lock
from schemas.dataset import FileInfo
from schemas.errors import FormatError, UsageError

MAX_FETCHES_AHEAD = 4
"""Files fetched ahead at the same time on one machine, by all processes together."""
_OURS = re.compile(r"[0-9a-f]{64}\.[a-z]+")  # whatever else lies in the folder is not ours to remove
_INDEX = ".arrow"  # read all the time, and small beside its shards: removed last
_PART = ".part"
_PAUSE_SECONDS = 0.2


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
        max_bytes: most bytes in it, what is on its way included.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder, self.max_bytes = folder, max_bytes

    def path(self, info: FileInfo) -> Path:
        """Where the copy of a file is, or would be."""
        return self.folder / f"{info.sha256}{Path(info.name).suffix}"

    def has(self, info: FileInfo) -> bool:
        """Whether the copy is here, whole."""
        try:
            return self.path(info).stat().st_size == info.bytes
        except FileNotFoundError:
            return False

    def get(self, info: FileInfo, fetch: Callable[[BinaryIO], None], *, wait: bool = True) -> Path | None:
        """Path of the copy, fetched first where there is none.

        Args:
            info: name, size and hash.
            fetch: writes the content into an open file, from its start.
            wait: for another process that fetches it, and for room that only others' fetches take.

        Returns:
            None where it would have to wait and was not to.

        Raises:
            FormatError: what was fetched is not what `info` describes.
            UsageError: the file is larger than the cache may be.
            OSError: the folder cannot be written.
        """
        path, part = self.path(info), self._part(info)
        self.folder.mkdir(parents=True, exist_ok=True)
        while not self.has(info):
            with opened_to_lock(part) as handle:
                if not lock(handle, wait=wait):
                    return None
                if not is_at(handle, part):  # who had it before has renamed or removed it
                    continue
                try:
                    if self.has(info):
                        part.unlink()
                    elif not self._reserve(info, handle, wait=wait):
                        part.unlink()
                        return None
                    else:
                        _fill(info, handle, fetch)
                        with self._room():  # else who counts meanwhile might see it under neither name
                            part.replace(path)
                except BaseException:
                    part.unlink(missing_ok=True)
                    raise
        with suppress(FileNotFoundError):  # removed by another process meanwhile: the caller will ask again
            os.utime(path)
        return path

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One of the turns of those who fetch ahead, of which a machine has `MAX_FETCHES_AHEAD`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        while True:
            for number in range(MAX_FETCHES_AHEAD):
                with opened_to_lock(self.folder / f"turn-{number}.lock") as handle:
                    if lock(handle, wait=False):
                        yield
                        return
            time.sleep(_PAUSE_SECONDS)

    def _reserve(self, info: FileInfo, handle: BinaryIO, *, wait: bool) -> bool:
        """Gives the temporary file its final size once there is room for it."""
        if info.bytes > self.max_bytes:
            raise UsageError(
                f"{info.name} has {info.bytes:,} bytes, the cache may hold {self.max_bytes:,}",
                hint="give a larger --data.cache_gigabytes",
            )
        handle.truncate(0)  # what a killed process has left counts no more
        while True:
            with self._room():
                if self._make_room(info.bytes):
                    handle.truncate(info.bytes)
                    return True
            if not wait:
                return False
            time.sleep(_PAUSE_SECONDS)

    @contextmanager
    def _room(self) -> Iterator[None]:
        """While one process counts, no other changes what is counted."""
        with opened_to_lock(self.folder / "room.lock") as handle:
            lock(handle, wait=True)
            yield

    def _make_room(self, num_bytes: int) -> bool:
        """Removes the longest unused copies; none where that would not do, for what others are fetching."""
        copies, coming = [], 0
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):
                if _OURS.fullmatch(path.name) is None:
                    continue
                if path.suffix != _PART:
                    stat = path.stat()
                    copies.append((path.suffix == _INDEX, stat.st_mtime_ns, stat.st_size, path))
                elif not _removed_if_left(path):
                    coming += path.stat().st_size
        if coming + num_bytes > self.max_bytes:
            return False
        total = coming + num_bytes + sum(size for _, _, size, _ in copies)
        for _, _, size, path in sorted(copies):
            if total <= self.max_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size
        return True

    def _part(self, info: FileInfo) -> Path:
        return self.folder / f"{info.sha256}{_PART}"


def _fill(info: FileInfo, handle: BufferedRandom, fetch: Callable[[BinaryIO], None]) -> None:
    fetch(handle)
    handle.flush()
    handle.seek(0)
    found = (os.fstat(handle.fileno()).st_size, hashlib.file_digest(handle, "sha256").hexdigest())
    if found != (info.bytes, info.sha256):
        raise FormatError(
            f"has {found[0]} bytes and SHA-256 {found[1][:12]}, the manifest says {info.bytes} and {info.sha256[:12]}",
            hint="upload the shard set again",
        )
    os.fsync(handle.fileno())


def _removed_if_left(part: Path) -> bool:
    """Removes a temporary file that nobody holds; an empty one may be just about to be locked, and counts nothing."""
    if not part.stat().st_size:
        return True
    with part.open("r+b") as handle:
        if not lock(handle, wait=False):
            return False
        if is_at(handle, part):
            part.unlink()
        return True
