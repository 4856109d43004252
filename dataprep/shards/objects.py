"""`ObjectStorage`: a shard set in an object store, by any URL that fsspec knows.

Whole shards are fetched into a local cache: all of them where they fit, else those of the coming windows, ahead of
time. What is in neither is read by ranged requests.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

from dataprep.shards.cache import CacheSettings, FileCache
from schemas.dataset import FileInfo
from schemas.errors import FormatError, MachineError, UsageError, VoxloomError

Result = TypeVar("Result")

_CHUNK_BYTES = 8 * 1024 * 1024
_CONNECT_SECONDS, _READ_SECONDS = 10, 60
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 10.0
_TRANSIENT_MODULES = ("botocore", "aiobotocore", "aiohttp", "gcsfs", "adlfs", "urllib3")


class ObjectStorage:
    """Files below a URL. Picklable; each process makes connections of its own.

    Args:
        url: such as `s3://bucket/shards`.
        settings: of the cache.
    """

    is_remote = True

    def __init__(self, url: str, settings: CacheSettings) -> None:
        self.url, self.settings = url.rstrip("/"), settings
        self._start()

    def _start(self) -> None:
        self._cache = FileCache(self.settings.folder, self.settings.max_bytes)
        self._fs: tuple[int, Any] | None = None
        self._coming: queue.SimpleQueue[FileInfo] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "settings": self.settings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.url, self.settings = state["url"], state["settings"]
        self._start()

    @property
    def location(self) -> str:
        """The URL."""
        return self.url

    def read_file(self, name: str) -> bytes:
        """Content of a small file. Raises FormatError where there is none, MachineError, UsageError."""
        content: bytes = self._patiently(name, lambda: self._filesystem().cat_file(self._path(name)))
        return content

    def local_file(self, info: FileInfo) -> Path:
        """Path of the whole file in the cache. Raises FormatError, MachineError, UsageError."""
        try:
            return self._cache.get(info, lambda handle: self._fetch(info, handle))
        except FormatError as error:
            raise FormatError(error.message, hint=error.hint, path=f"{self.url}/{info.name}") from error
        except OSError as error:
            raise MachineError(
                f"the cache cannot be written: {error.strerror}",
                hint="free some space, or give another --data.cache_folder",
                path=self.settings.folder,
            ) from error

    def read_range(self, info: FileInfo, offset: int, num_bytes: int) -> bytes | None:
        """Part of a file that is not in the cache nor on its way there; None for all others.

        Raises FormatError, MachineError, UsageError.
        """
        if self._all_fit or self._cache.is_coming(info):
            return None
        end = min(offset + num_bytes, info.bytes)
        if offset >= end:
            return b""
        content: bytes = self._patiently(
            info.name, lambda: self._filesystem().cat_file(self._path(info.name), start=offset, end=end)
        )
        return content

    _all_fit = False

    def told_size(self, num_bytes: int) -> None:
        """Says how large all files are together: where the cache holds them, each is fetched whole."""
        self._all_fit = num_bytes <= self.settings.max_bytes

    def want(self, infos: Sequence[FileInfo]) -> None:
        """Fetches files in the background, in this order, as many as the cache holds; earlier wishes are forgotten."""
        while not self._coming.empty():
            self._coming.get()
        room = self.settings.max_bytes
        for info in infos:
            room -= info.bytes
            if room < 0:
                break
            self._coming.put(info)
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._fetch_coming, daemon=True)
            self._thread.start()

    def _fetch_coming(self) -> None:
        while True:
            try:
                info = self._coming.get(timeout=1.0)
            except queue.Empty:
                return
            try:
                self.local_file(info)
            except VoxloomError as error:  # who reads the file will meet the error where it can be told
                warnings.warn(f"{self.url}/{info.name} was not fetched ahead: {error.message}", stacklevel=2)

    def _fetch(self, info: FileInfo, handle: IO[bytes]) -> None:
        def download() -> None:
            handle.seek(0)
            with self._filesystem().open(
                self._path(info.name), "rb", block_size=_CHUNK_BYTES, cache_type="none"
            ) as file:
                while chunk := file.read(_CHUNK_BYTES):
                    handle.write(chunk)
            handle.truncate()
            handle.flush()

        self._patiently(info.name, download)

    def _path(self, name: str) -> str:
        return f"{self.url}/{name}"

    def _filesystem(self) -> Any:  # noqa: ANN401  # fsspec has no types
        """The file system, made by the process that uses it: its connections do not survive a fork."""
        if self._fs is None or self._fs[0] != os.getpid():
            import fsspec

            protocol = self.url.split("://")[0]
            options: dict[str, Any] = {"skip_instance_cache": True}
            if protocol in ("s3", "s3a"):
                config = {
                    "connect_timeout": _CONNECT_SECONDS, "read_timeout": _READ_SECONDS, "retries": {"max_attempts": 0},
                }  # fmt: skip
                options |= {"config_kwargs": config, "use_listings_cache": False}
            try:
                filesystem = fsspec.filesystem(protocol, **options)
                filesystem.retries = 1  # s3fs would try again in silence; here it is told
                self._fs = (os.getpid(), filesystem)
            except (ImportError, ValueError) as error:
                extra = "voxloom[s3]" if protocol in ("s3", "s3a") else f"the package that fsspec needs for {protocol}"
                raise UsageError(f"{protocol}:// cannot be read: {error}", hint=f"pip install {extra}") from error
        return self._fs[1]

    def _patiently(self, name: str, action: Callable[[], Result]) -> Result:
        """Does it, again and again while the store is out of reach."""
        began, pause, path = time.monotonic(), _FIRST_PAUSE_SECONDS, f"{self.url}/{name}"
        told = False
        while True:
            try:
                result = action()
            except FileNotFoundError as error:
                raise FormatError(
                    "no such object", hint="was the whole shard set uploaded, and is this its place?", path=path
                ) from error
            except Exception as error:
                if not is_transient(error):
                    if isinstance(error, PermissionError) or type(error).__name__ in ("NoCredentialsError",):
                        raise UsageError(
                            f"access is denied: {error}",
                            hint="check the credentials, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                            path=path,
                        ) from error
                    raise
                waited = time.monotonic() - began
                if waited + pause > self.settings.retry_seconds:
                    raise MachineError(
                        f"out of reach for {waited:.0f} s: {error}",
                        hint="once it is back, the same command goes on; --data.retry_seconds waits longer",
                        path=path,
                    ) from error
                if not told:
                    warnings.warn(f"{path} is out of reach ({error}); trying again", stacklevel=2)
                    told = True
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            else:
                if told:
                    warnings.warn(f"{path} is back after {time.monotonic() - began:.0f} s", stacklevel=2)
                return result


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed later: the store or the way to it failed, not the request."""
    if isinstance(error, VoxloomError | FileNotFoundError | PermissionError):
        return False
    if type(error).__name__ in ("NoCredentialsError", "ParamValidationError", "InvalidRegionError"):
        return False
    return isinstance(error, OSError) or type(error).__module__.split(".")[0] in _TRANSIENT_MODULES
