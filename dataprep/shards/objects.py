"""`ObjectStorage`: a shard set in an object store, by any URL that fsspec knows.

Nobody waits for a whole shard of a tar set: what is not here yet is read by ranged requests, all of a micro-batch at
once, while whole shards are fetched into a local cache in the background. These are the shards of the coming windows,
or, where the cache holds all, each that was read from.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dataprep.shards.cache import MAX_FETCHES_AHEAD, CacheSettings, FileCache
from dataprep.shards.fetcher import BackgroundFetcher
from dataprep.shards.remote import RemoteFiles
from dataprep.shards.storage import ByteRange
from schemas.dataset import FileInfo
from schemas.errors import FormatError, MachineError, VoxloomError

_SECOND_TRY_SECONDS = 60.0


class ObjectStorage:
    """Files below a URL. Picklable; each process makes connections of its own.

    Args:
        url: such as `s3://bucket/shards`.
        settings: of the cache.
    """

    is_remote = True

    def __init__(self, url: str, settings: CacheSettings) -> None:
        self._url, self._settings = url.rstrip("/"), settings
        self._cache = FileCache(settings.folder, settings.max_bytes)
        self._all_fit = False
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._remote_files: RemoteFiles | None = None
        self._fetcher = BackgroundFetcher(self._fetch_ahead, MAX_FETCHES_AHEAD)
        self._not_before: dict[str, float] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self._url, "settings": self._settings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ObjectStorage.__init__(self, state["url"], state["settings"])

    @property
    def location(self) -> str:
        """The URL."""
        return self._url

    def read_file(self, name: str) -> bytes:
        """Content of a small file. Raises FormatError where there is none, MachineError, UsageError."""
        return self._remote().read(name)

    def has(self, info: FileInfo) -> bool:
        """Whether a whole copy is in the cache."""
        return self._cache.has(info)

    def local_file(self, info: FileInfo) -> Path:
        """Path of the whole file in the cache. Raises FormatError, MachineError, UsageError."""
        path = self._get(info, wait=True)
        assert path is not None
        return path

    def _get(self, info: FileInfo, *, wait: bool) -> Path | None:
        remote, asked_at = self._remote(), time.monotonic()
        try:
            return self._cache.get(info, lambda handle: remote.download(info, handle, asked_at), wait=wait)
        except FormatError as error:
            raise FormatError(error.message, hint=error.hint, path=f"{self._url}/{info.name}") from error
        except OSError as error:
            raise MachineError(
                f"the cache cannot be written: {error.strerror}",
                hint="free some space, or give another --data.cache_folder",
                path=self._settings.folder,
            ) from error

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes | FormatError]:
        """Parts of files, asked for at once; an error in the place of what is not there.

        Raises:
            MachineError, UsageError: the store is out of reach or denies it.
        """
        parts = self._remote().read_ranges(ranges)
        if self._all_fit:  # only now: whoever asks waits for these, and the rest would be in their way
            for info in {one.info.name: one.info for one in ranges}.values():
                self._fetcher.add(info)
        return parts

    def told_size(self, num_bytes: int) -> None:
        """Says how large all files are together: where the cache holds them, each that is read is fetched whole."""
        self._all_fit = num_bytes <= self._settings.max_bytes

    def want(self, infos: Sequence[FileInfo]) -> None:
        """Fetches files in the background, in this order, as many as the cache holds; earlier wishes are forgotten."""
        self._remote()
        room, fitting = self._settings.max_bytes, []
        for info in infos:
            room -= info.bytes
            if room < 0:
                break
            fitting.append(info)
        self._fetcher.replace(fitting)

    def is_idle(self) -> bool:
        """Whether nothing is being fetched in the background by this process."""
        return self._fetcher.is_idle()

    def _fetch_ahead(self, info: FileInfo) -> None:
        if self.has(info) or time.monotonic() < self._not_before.get(info.name, 0.0):
            return
        try:
            with self._cache.turn():
                self._get(info, wait=False)
        except (VoxloomError, OSError) as error:  # who reads the file meets the error where it can be told
            may_pass = isinstance(error, MachineError | OSError)
            self._not_before[info.name] = time.monotonic() + _SECOND_TRY_SECONDS if may_pass else float("inf")
            warnings.warn(f"{self._url}/{info.name} is read part by part: {error}", stacklevel=2)

    def _remote(self) -> RemoteFiles:
        """The objects, by the process that reads: connections, threads and locks do not survive a fork."""
        if self._pid != os.getpid():
            self._start()
        if self._remote_files is None:
            self._remote_files = RemoteFiles(self._url, self._settings.retry_seconds)
        return self._remote_files
