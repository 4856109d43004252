"""Files that are either there and whole, or not there: written under a temporary name, synced, renamed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from schemas.dataset import FileInfo
from schemas.errors import UsageError

_TEMPORARY_SUFFIX = ".tmp"


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file for writing that takes its name only when the block ends well.

    The temporary file lies in the same folder, has a name of its own, and is locked while it is written: what a killed
    process leaves has no lock, and `sweep` takes it away.

    Raises:
        UsageError: the name is that of a folder, a device or a pipe.
        OSError: as the machine raises it (disk full, no permission); the name is then as it was before.
    """
    path = path.resolve()  # what a link names is written, not the link
    if path.exists() and not path.is_file():
        raise UsageError("is not a regular file", hint="choose the name of a file", path=path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = _locked_temporary(path)
    try:
        with handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)  # under the lock, so that no sweep comes between
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _locked_temporary(path: Path) -> tuple[IO[bytes], Path]:
    """A new file beside `path`, open for writing and locked; made again where a sweep was quicker than the lock."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_TEMPORARY_SUFFIX)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return os.fdopen(descriptor, "wb"), Path(name)
        os.close(descriptor)


def write_atomic(path: Path, content: bytes) -> FileInfo:
    """Writes `content` atomically and returns what proves the file whole (name: the last part of the path)."""
    with atomic_file(path) as handle:
        handle.write(content)
    return FileInfo(name=path.name, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def file_sha256(path: Path) -> str:
    """SHA-256 (hex) of a file's content."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sweep(folder: Path) -> None:
    """Removes temporary files in `folder` that nobody is writing."""
    for leftover in folder.glob(f".*{_TEMPORARY_SUFFIX}"):
        try:
            with leftover.open("rb") as handle:
                fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                leftover.unlink()
        except (BlockingIOError, FileNotFoundError):
            continue  # its writer is alive, or has just given it its name


def _umask() -> int:
    """The process's umask; asking for it means setting it."""
    current = os.umask(0)
    os.umask(current)
    return current


def _sync_folder(folder: Path) -> None:
    """Makes the rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
