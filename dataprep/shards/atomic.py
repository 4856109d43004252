"""Files that are either there and whole, or not there: written under a temporary name, synced, renamed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from schemas.dataset import FileInfo

_TEMPORARY_SUFFIX = ".tmp"


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file for writing that takes its name only when the block ends well.

    The temporary file lies in the same folder and carries the process id, so that two writers of the same name never
    share one; what a killed process leaves is swept by `sweep`.

    Raises:
        OSError: as the machine raises it (disk full, no permission); the name is then as it was before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY_SUFFIX}")
    try:
        with temporary.open("wb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


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
    """Removes temporary files in `folder` whose process is gone."""
    for leftover in folder.glob(f".*{_TEMPORARY_SUFFIX}"):
        pid = leftover.name.removesuffix(_TEMPORARY_SUFFIX).rsplit(".", 1)[-1]
        if not (pid.isdigit() and _is_running(int(pid))):
            leftover.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Makes the rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
