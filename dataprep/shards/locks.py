"""Files that one process at a time holds; the kernel lets go of them when it ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path
from typing import BinaryIO


@contextmanager
def opened_to_lock(path: Path) -> Iterator[BufferedRandom]:
    """A file for reading and writing, made where it is missing, and unlocked at the end.

    Closing it would not unlock it where a process was forked meanwhile: that one has it open too.
    """
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b") as handle:
        try:
            yield handle
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)


def lock(handle: BinaryIO, *, wait: bool) -> bool:
    """Whether the file is now ours alone. The lock ends with the process that holds it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(handle: BinaryIO, path: Path) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except FileNotFoundError:
        return False
