"""What errors of a store mean, and how long a store is waited for."""

import errno
import time
import warnings

import pytest

from dataprep.shards import patience
from dataprep.shards.patience import Patience, as_fault, is_passing
from schemas.errors import FormatError, MachineError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore:.*(out of reach|is back)")


def of_client(name, *bases, module="botocore.exceptions"):
    return type(name, bases or (Exception,), {"__module__": module})


HTTP_CLIENT_ERROR = of_client("HTTPClientError")


def answered(code, error):
    """As s3fs translates an answer of the server."""
    cause = Exception(code)
    cause.response = {"Error": {"Code": code}}
    error.__cause__ = cause
    return error


def with_status(status):
    error = of_client("ClientResponseError", of_client("ClientError", module="aiohttp"), module="aiohttp")()
    error.status = status
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answered("NoSuchKey", FileNotFoundError("none")), FormatError),
        (answered("NoSuchBucket", FileNotFoundError("none")), UsageError),
        (answered("InvalidRange", OSError(errno.EINVAL, "range")), FormatError),
        (answered("AccessDenied", PermissionError("no")), UsageError),
        (answered("AuthorizationHeaderMalformed", OSError(errno.EINVAL, "region")), UsageError),
        (IsADirectoryError(errno.EISDIR, "a folder"), FormatError),
        (of_client("NoCredentialsError")("none"), UsageError),
        (of_client("PartialCredentialsError")("none"), UsageError),
        (of_client("ParamValidationError")("bad name"), UsageError),
        (of_client("ProfileNotFound")("none"), UsageError),
        (with_status(404), UsageError),
        (with_status(403), UsageError),
    ],
)
def test_what_would_fail_again(error, kind):
    assert type(as_fault(error, "s3://b/x", "asked y")) is kind


@pytest.mark.parametrize(
    "error",
    [
        answered("InternalError", OSError(errno.EREMOTEIO, "500")),
        answered("SlowDown", OSError(errno.EBUSY, "slow down")),
        answered("502", OSError(errno.EIO, "bad gateway")),
        ConnectionResetError(), TimeoutError(), BrokenPipeError(),
        of_client("EndpointConnectionError", HTTP_CLIENT_ERROR)("refused"),
        of_client("ReadTimeoutError", HTTP_CLIENT_ERROR)("late"),
        of_client("CredentialRetrievalError")("the metadata server is away"),
        of_client("ClientPayloadError", of_client("ClientError", module="aiohttp"), module="aiohttp")("cut"),
        with_status(503), with_status(429),
    ],
)  # fmt: skip
def test_what_may_pass(error):
    assert as_fault(error, "s3://b/x", "asked y") is None
    assert is_passing(error)


def test_a_defect_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        Patience("s3://b", "asked y", 10.0).run("x", lambda: 1 // 0)


def fails(times):
    left = [times]

    def action():
        left[0] -= 1
        if left[0] >= 0:
            raise ConnectionResetError("reset")
        return "done"

    return action


def test_each_outage_is_told_once_and_its_end(monkeypatch):
    monkeypatch.setattr(patience, "_FIRST_PAUSE_SECONDS", 0.001)
    patient = Patience("s3://b", "asked y", 10.0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert patient.run("x", fails(3)) == "done"
        assert patient.run("x", fails(0)) == "done"
        assert patient.run("z", fails(1)) == "done"
    words = [str(one.message) for one in told]
    assert [("is out of reach" in word, "is back after" in word) for word in words] == [
        (True, False),
        (False, True),
    ] * 2
    assert "s3://b/x" in words[0]
    assert "s3://b/z" in words[2]


def test_the_clock_starts_with_the_failure_and_not_with_what_went_well():
    patient = Patience("s3://b", "asked y", 0.3)
    began = time.monotonic()
    with pytest.raises(MachineError, match="out of reach for 0 s: reset") as caught:
        patient.run("x", fails(10**6))
    assert 0.25 < time.monotonic() - began < 5
    assert "the same command goes on" in caught.value.hint
    # who waited for another in vain tries once
    tries = []
    with pytest.raises(MachineError):
        patient.run("x", lambda: tries.append(1) or fails(1)(), since=time.monotonic() - 1)
    assert len(tries) == 1
