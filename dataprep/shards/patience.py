"""What an error of an object store means, and waiting for a store that is out of reach."""

from __future__ import annotations

import errno
import threading
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

from schemas.errors import FormatError, MachineError, UsageError, VoxloomError

Result = TypeVar("Result")

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 10.0
_ENDS_BEFORE = "ends before what the index names"
_REFUSED = frozenset(
    {errno.EINVAL, errno.EPERM, errno.ENOSYS, errno.EMSGSIZE, errno.ENAMETOOLONG, getattr(errno, "EREMCHG", -1)}
)
"""What s3fs makes of answers that say the request is wrong: it would be wrong again."""
_PASSING = frozenset(
    {
        "HTTPClientError", "ConnectionError", "ResponseParserError", "IncompleteReadError", "CredentialRetrievalError",
        "MetadataRetrievalError", "ClientError", "ServerTimeoutError", "IncompleteRead", "FSTimeoutError",
    }
)  # fmt: skip
"""Bases of errors of connections, by name: the packages are optional."""
_CLIENTS = frozenset({"botocore", "aiobotocore", "aiohttp", "urllib3", "requests", "gcsfs", "adlfs", "azure"})
_ASKING_TOO_MUCH = (408, 429)


def as_fault(error: Exception, where: str, asked: str) -> VoxloomError | None:
    """What is to be raised at once for an error of a store; None where it may pass, or is a defect.

    Args:
        error: as fsspec raised it.
        where: URL of the object.
        asked: the endpoint and what else was tried, for messages.
    """
    if isinstance(error, VoxloomError):
        return error
    code = getattr(error.__cause__, "response", {}).get("Error", {}).get("Code") if error.__cause__ else None
    if code == "NoSuchBucket":
        return UsageError(f"no such bucket ({asked})", hint="check the URL and AWS_ENDPOINT_URL", path=where)
    if isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError):
        hint = "was the whole shard set uploaded, and is this its place?"
        return FormatError(f"no such object ({asked})", hint=hint, path=where)
    if code in ("InvalidRange", "416"):
        return FormatError(_ENDS_BEFORE, hint="upload the shard set again", path=where)
    status = _http_status(error)
    if isinstance(error, PermissionError) or status in (401, 403) or "Credentials" in type(error).__name__:
        return UsageError(
            f"access is denied: {error} ({asked})",
            hint="check the credentials, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
            path=where,
        )
    refused = isinstance(error, OSError) and error.errno in _REFUSED
    if refused or (_package(error) in _CLIENTS and not is_passing(error)):
        return UsageError(
            f"the request is refused: {error} ({asked})",
            hint="check the URL, AWS_ENDPOINT_URL and AWS_DEFAULT_REGION",
            path=where,
        )
    return None


def is_passing(error: Exception) -> bool:
    """Whether the same request may succeed later: the store or the way to it failed, not the request."""
    status = _http_status(error)
    if status is not None:
        return status >= 500 or status in _ASKING_TOO_MUCH
    if _package(error) in _CLIENTS:
        return any(base.__name__ in _PASSING for base in type(error).__mro__)
    return isinstance(error, OSError) or type(error).__name__ in _PASSING


def _http_status(error: Exception) -> int | None:
    status = getattr(error, "status", None) or getattr(error, "status_code", None) or getattr(error, "code", None)
    return status if isinstance(status, int) and status >= 400 else None


def _package(error: Exception) -> str:
    return type(error).__module__.split(".")[0]


class Patience:
    """Does things again and again while a store is out of reach, and says so once.

    Args:
        url: of the shard set.
        asked: the endpoint, for messages.
        retry_seconds: how long it may be out of reach.
    """

    def __init__(self, url: str, asked: str, retry_seconds: float) -> None:
        self._url, self._asked, self._retry_seconds = url, asked, retry_seconds
        self._lock = threading.Lock()
        self._away_since: float | None = None

    def run(self, name: str, action: Callable[[], Result], *, since: float | None = None) -> Result:
        """What an action returns.

        Args:
            name: of the object, for messages.
            action: what may fail, and is done again as a whole.
            since: `time.monotonic()` from when the patience counts; the start of the first try that failed where None.

        Raises:
            FormatError, UsageError: it would fail again.
            MachineError: it failed for `retry_seconds`.
        """
        where, pause = f"{self._url}/{name}", _FIRST_PAUSE_SECONDS
        while True:
            began = time.monotonic()
            try:
                result = action()
            except Exception as error:
                fault = as_fault(error, where, self._asked)
                if fault is not None:
                    raise fault from error.__cause__ if fault is error else error
                if not is_passing(error):
                    raise
                since = began if since is None else since
                self._wait(error, where, since, pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            else:
                self._tell_back()
                return result

    def _wait(self, error: Exception, where: str, since: float, pause: float) -> None:
        waited = time.monotonic() - since
        if waited >= self._retry_seconds:
            raise MachineError(
                f"out of reach for {waited:.0f} s: {error} ({self._asked})",
                hint="once it is back, the same command goes on; --data.retry_seconds waits longer",
                path=where,
            ) from error
        with self._lock:
            told, self._away_since = self._away_since is not None, self._away_since or since
        if not told:
            at = time.strftime("%H:%M:%S")  # also keeps Python from taking the next outage for the same warning
            warnings.warn(
                f"{where} is out of reach at {at} ({error}); trying again for {self._retry_seconds:.0f} s", stacklevel=2
            )
        time.sleep(min(pause, self._retry_seconds - waited))

    def _tell_back(self) -> None:
        if self._away_since is None:
            return
        with self._lock:
            since, self._away_since = self._away_since, None
        if since is not None:
            at = time.strftime("%H:%M:%S")
            warnings.warn(f"{self._url} is back after {time.monotonic() - since:.0f} s, at {at}", stacklevel=2)
