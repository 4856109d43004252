"""The folder that a command was given as a shard set."""

from __future__ import annotations

from pathlib import Path

from dataprep.shards.cache import CacheSettings
from dataprep.shards.reader import ShardSet
from schemas.errors import UsageError


def open_shards(location: Path | str, cache: CacheSettings | None = None) -> ShardSet:
    """Opens a shard set: a folder, or a URL such as `s3://bucket/shards`, of which copies are kept in `cache`.

    Raises:
        UsageError: it is a prepared data set, of which no shards were made yet; or the URL is of no kind known.
        FormatError: it is not a shard set, or a damaged one.
        MachineError: the URL cannot be reached.
    """
    if isinstance(location, str) and "://" in location:
        return ShardSet(location, cache)
    folder = Path(location)
    if (folder / "dataset.json").is_file() and not (folder / "shards.json").is_file():
        raise UsageError("this is a prepared data set, not a shard set", hint=f"dataprep shard {folder}", path=folder)
    return ShardSet(folder)
