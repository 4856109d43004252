"""What every described record shares: frozen, closed to unknown fields, one canonical JSON, one digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from schemas.errors import FormatError


class Record(BaseModel):
    """A frozen pydantic model that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def canonical_json(self) -> bytes:
        """The record as UTF-8 JSON with sorted keys and no spaces: equal records give equal bytes."""
        return canonical_json(self.model_dump(mode="json"))

    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON."""
        return hashlib.sha256(self.canonical_json()).hexdigest()

    def pretty_json(self) -> bytes:
        """The record as people read it: two-space indent, UTF-8, a newline at the end."""
        return (json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=2) + "\n").encode()


class VersionedFile(Record):
    """A record that is a file of its own: `format` and `version` say which."""

    made_by: ClassVar[str] = "the command that writes it"

    format: str
    version: int

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads and checks the file.

        Raises:
            FormatError: no such file, not JSON, another format or version, or a field missing, unknown or wrong.
        """
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise FormatError(
                "no such file",
                hint=f"{cls.made_by} writes it, last of all: is this the right folder, and did that command end well?",
                path=path,
            ) from error
        except NotADirectoryError as error:
            raise FormatError(
                "is below something that is no folder", hint="give the folder itself", path=path
            ) from error
        except (ValueError, OSError, RecursionError) as error:
            raise FormatError(
                f"cannot be read as JSON: {error}", hint="make it again with the same command", path=path
            ) from error
        return cls.from_content(content, path)

    @classmethod
    def from_content(cls, content: object, path: Path | str) -> Self:
        """Checks already parsed JSON; `path` is only for the message. Raises FormatError as `read` does."""
        if not isinstance(content, Mapping):
            raise FormatError("is not a JSON object", hint="make it again with the same command", path=path)
        want_format, want_version = cls.model_fields["format"].default, cls.model_fields["version"].default
        found = (content.get("format"), content.get("version"))
        if found != (want_format, want_version):
            raise FormatError(
                f"is {found[0]!r} version {found[1]!r}; this program reads {want_format!r} version {want_version}",
                hint="make it again with this version of voxloom, or use the version that wrote it",
                path=path,
            )
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise FormatError(
                f"field {where!r}: {first['msg']}", hint="make it again with the same command", path=path
            ) from error


def canonical_json(content: object) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces, the form that every digest is taken of."""
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
