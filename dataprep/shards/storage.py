"""Where a shard set lies: a folder of this machine, or a place in an object store."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Storage(Protocol):
    """The files of a shard set, by name. Picklable; copies in other processes open what they need for themselves."""

    @property
    def location(self) -> str:
        """The folder or URL, for messages."""

    def local_file(self, name: str, num_bytes: int) -> Path:
        """Path of the whole file on a local disk; brought there first where it is not.

        Args:
            name: name of the file in the shard set.
            num_bytes: its size as the manifest says.

        Raises:
            FormatError: there is no such file, or it has another size.
            MachineError: the place where it lies cannot be reached.
        """

    def read_range(self, name: str, offset: int, num_bytes: int) -> bytes | None:
        """Part of a file that is not worth bringing here whole; None where `local_file` is the way.

        Raises:
            FormatError, MachineError: as `local_file`.
        """


class FolderStorage:
    """A folder of this machine.

    Args:
        folder: the folder with `shards.json`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def location(self) -> str:
        """The folder."""
        return str(self.folder)

    def local_file(self, name: str, num_bytes: int) -> Path:  # noqa: ARG002  # the reader finds a short file out itself
        """The path; whether there is such a file is found out by opening it."""
        return self.folder / name

    def read_range(self, name: str, offset: int, num_bytes: int) -> None:
        """None: the file is here."""
