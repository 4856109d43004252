"""Options as people type them, checked into their described record."""

from __future__ import annotations

from pydantic import ValidationError

from schemas.dataset import IngestConfig
from schemas.errors import UsageError


def ingest_config(**options: object) -> IngestConfig:
    """The record of the options; unknown names fail in it. Raises UsageError that names each option at fault."""
    try:
        return IngestConfig.model_validate(options)
    except ValidationError as error:
        faults = "; ".join(_told(fault["loc"], fault["msg"]) for fault in error.errors())
        raise UsageError(faults, hint="see `dataprep ingest --help`") from error


def _told(place: tuple[int | str, ...], message: str) -> str:
    message = message.removeprefix("Value error, ")
    return f"{'.'.join(map(str, place))}: {message}" if place else message
