"""The objects below a URL, read through fsspec by one process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, BinaryIO

from dataprep.shards.patience import Patience, as_fault
from dataprep.shards.storage import ByteRange
from schemas.dataset import FileInfo
from schemas.errors import FormatError, UsageError

CHUNK_BYTES = 8 * 1024 * 1024
_CHUNKS_AT_ONCE = 4
"""A single connection to a store gives some 50 MB/s; what is on its way is kept in memory."""
_CONNECTIONS = 64
_CONNECT_SECONDS, _READ_SECONDS, _LEAST_SECONDS = 10.0, 60.0, 1.0
_S3 = ("s3", "s3a")


class RemoteFiles:
    """Reads objects, with patience. For one process: connections and their threads do not survive a fork.

    Args:
        url: of the folder that they lie in.
        retry_seconds: how long the store may be out of reach.

    Raises:
        UsageError: there is no such kind of store, or the package for it is missing.
    """

    def __init__(self, url: str, retry_seconds: float) -> None:
        self._url = url
        self._fs = _filesystem(url, retry_seconds)
        self._asked = f"asked {_endpoint(self._fs, url)}"
        self._patience = Patience(url, self._asked, retry_seconds)

    def read(self, name: str) -> bytes:
        """Content of a small object. Raises FormatError, MachineError, UsageError."""
        content: bytes = self._patience.run(name, lambda: self._fs.cat_file(self._path(name), start=0))
        return content

    def download(self, info: FileInfo, handle: BinaryIO, asked_at: float) -> None:
        """Writes an object into an open file.

        Args:
            info: which, and its size.
            handle: written from its start.
            asked_at: `time.monotonic()` when it was asked for: who has waited in vain for another to fetch it does not
                wait as long again.

        Raises:
            FormatError: there is none, or it has another size.
            MachineError, UsageError: the store is out of reach or denies it.
            OSError: the file cannot be written.
        """
        size = self._patience.run(info.name, lambda: self._fs.info(self._path(info.name))["size"], since=asked_at)
        if size != info.bytes:
            raise FormatError(
                f"has {size:,} bytes, the manifest says {info.bytes:,}",
                hint="upload the shard set again",
                path=self._path(info.name),
            )
        handle.seek(0)
        step = _CHUNKS_AT_ONCE * CHUNK_BYTES
        for start in range(0, size, step):
            offsets = range(start, min(start + step, size), CHUNK_BYTES)
            for part in self.read_ranges([ByteRange(info, offset, CHUNK_BYTES) for offset in offsets]):
                if isinstance(part, FormatError):
                    raise part
                handle.write(part)

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes | FormatError]:
        """Parts of objects, asked for at once; an error in the place of what is not there.

        Raises:
            MachineError, UsageError: the store is out of reach or denies it.
        """
        found: dict[int, bytes | FormatError] = {}

        def ask_for_the_rest() -> None:
            missing = [at for at in range(len(ranges)) if at not in found]
            wanted = [ranges[at] for at in missing]
            parts = self._fs.cat_ranges(
                [self._path(one.info.name) for one in wanted],
                [one.offset for one in wanted],
                [min(one.offset + one.num_bytes, one.info.bytes) for one in wanted],
                on_error="return",
            )
            failures: list[Exception] = []
            for at, one, part in zip(missing, wanted, parts, strict=True):
                fault = as_fault(part, self._path(one.info.name), self._asked) if isinstance(part, Exception) else None
                if isinstance(fault, FormatError):
                    found[at] = fault
                elif isinstance(part, Exception):
                    failures.append(fault or part)
                else:
                    found[at] = bytes(part)
            if failures:
                raise failures[0]

        if ranges:
            self._patience.run(ranges[0].info.name, ask_for_the_rest)
        return [found[at] for at in range(len(ranges))]

    def _path(self, name: str) -> str:
        return f"{self._url}/{name}"


def _endpoint(filesystem: Any, url: str) -> str:  # noqa: ANN401
    protocol = url.split("://")[0]
    if protocol not in _S3:
        return f"fsspec for {protocol}"
    stated: str | None = getattr(filesystem, "endpoint_url", None)
    return (
        stated or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "the default endpoint"
    )


def _filesystem(url: str, retry_seconds: float) -> Any:  # noqa: ANN401  # fsspec has no types
    import fsspec

    protocol = url.split("://")[0]
    options: dict[str, Any] = {"skip_instance_cache": True}
    try:
        if protocol in _S3:
            options |= {"config_kwargs": _s3_config(retry_seconds), "use_listings_cache": False}
        filesystem = fsspec.filesystem(protocol, **options)
    except ImportError as error:
        hint = 'pip install "voxloom[s3]"' if protocol in _S3 else "install the package that the message names"
        raise UsageError(f"{protocol}:// cannot be read: {error}", hint=hint, path=url) from error
    except ValueError as error:
        hint = "such as s3://bucket/shards"
        raise UsageError(f"{protocol}:// is no kind of store: {error}", hint=hint, path=url) from error
    if protocol in _S3:
        filesystem.retries = 1  # s3fs would try again in silence; here it is told
    return filesystem


def _s3_config(retry_seconds: float) -> dict[str, Any]:
    """Options of botocore's client: it never waits without end, and never tries again by itself."""
    from botocore.config import Config

    patience = max(retry_seconds / 4, _LEAST_SECONDS)
    config: dict[str, Any] = {
        "connect_timeout": min(_CONNECT_SECONDS, patience), "read_timeout": min(_READ_SECONDS, patience),
        "retries": {"max_attempts": 0}, "max_pool_connections": _CONNECTIONS,
    }  # fmt: skip
    if "response_checksum_validation" in Config.OPTION_DEFAULTS:  # since 1.36, and on unless it is turned off
        # all that is read is compared with checksums of ours, and not every store knows the newer ones of S3
        config |= {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}
    return config
