"""Lists a folder in one walk: nothing later asks the disk whether a file is there."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import MachineError

# fmt: off
RECORDING_SUFFIXES = (
    ".wav", ".flac", ".ogg", ".opus", ".mp3", ".m4a", ".aac", ".webm", ".aiff", ".aif", ".aifc", ".au", ".oga", ".mp4",
    ".mka", ".caf", ".w64", ".rf64", ".wv", ".sph", ".gsm",
)
# fmt: on
"""Suffixes (lower case) of recordings. Where a row without suffix could mean several files, the earlier is meant."""
RECORDINGS_FOLDER = "wavs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file."""

    path: str
    """Path below the folder walked, with forward slashes, as the disk spells it."""
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of a folder and of the folders in it, sorted by path; hidden ones and `__MACOSX` are left out."""

    entries: tuple[Entry, ...]
    num_undecodable: int
    """Files and folders left out because their name is not valid UTF-8."""


def suffix_of(path: str) -> str:
    """The suffix of a recording as it is spelt in `path`, or "" where there is none that recordings have.

    >>> suffix_of("a/b.v1.WAV"), suffix_of("a/b.v1")
    ('.WAV', '')
    """
    dot = path.rfind(".")
    return path[dot:] if dot > 0 and path[dot:].lower() in RECORDING_SUFFIXES else ""


def lexical(path: Path) -> str:
    """The absolute path without `..`, links left as they are: the folder above is the one that the person sees."""
    return os.path.normpath(path.absolute())


def walk(folder: Path) -> Listing:
    """Lists `folder`. Links to folders are followed, each folder once.

    Raises:
        MachineError: a folder in it may not be read.
    """
    entries: list[Entry] = []
    num_undecodable = 0
    seen: set[tuple[int, int]] = set()
    waiting = [(os.fspath(folder), "")]
    while waiting:
        place, prefix = waiting.pop()
        status = os.stat(place)  # noqa: PTH116 - strings throughout: Path costs four times the walk
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        for found in _scan(place):
            if found.name.startswith(".") or found.name == "__MACOSX":
                continue
            if not _is_decodable(found.name):
                num_undecodable += 1
            elif _is(os.DirEntry.is_dir, found):
                waiting.append((found.path, f"{prefix}{found.name}/"))
            elif _is(os.DirEntry.is_file, found):
                entries.append(Entry(path=prefix + found.name, num_bytes=found.stat().st_size))
    entries.sort(key=lambda entry: entry.path)
    return Listing(entries=tuple(entries), num_undecodable=num_undecodable)


def _scan(place: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as found:
            # In order, so that of two ways to one folder (links) the same one is taken on every machine.
            return sorted(found, key=lambda entry: entry.name, reverse=True)
    except PermissionError as error:
        raise MachineError("the folder may not be read", hint="change its permissions (chmod)", path=place) from error


def _is(kind: Callable[[os.DirEntry[str]], bool], entry: os.DirEntry[str]) -> bool:
    """Like `entry.is_dir()`, but a link that leads to itself is no more an error than one that leads nowhere."""
    try:
        return kind(entry)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise


def _is_decodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
