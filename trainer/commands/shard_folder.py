"""The folder that a command was given as a shard set."""

from __future__ import annotations

from pathlib import Path

from dataprep.shards.reader import ShardSet
from schemas.errors import UsageError


def open_shards(folder: Path) -> ShardSet:
    """Opens a shard set.

    Raises:
        UsageError: it is a prepared data set, of which no shards were made yet.
        FormatError: it is not a shard set, or a damaged one.
    """
    if (folder / "dataset.json").is_file() and not (folder / "shards.json").is_file():
        raise UsageError("this is a prepared data set, not a shard set", hint=f"dataprep shard {folder}", path=folder)
    return ShardSet(folder)
