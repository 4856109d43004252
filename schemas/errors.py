"""The error tree. A message says what was found, where, what was allowed, and what to do next.

Commands print `error: <message>` and `next: <hint>` and end with `exit_status`; a traceback is always a defect of ours.
"""

from __future__ import annotations

from pathlib import Path


class VoxloomError(Exception):
    """Root of everything we raise on purpose.

    Args:
        message: what was found and what was allowed, in one sentence.
        hint: what to do next, in one sentence.
        path: the file in question, if there is one.
        line: the line in that file, counted from 1.
    """

    exit_status = 1

    def __init__(
        self, message: str, *, hint: str = "", path: str | Path | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = None if path is None else str(path)
        self.line = line

    def __str__(self) -> str:
        where = "" if self.path is None else self.path + ("" if self.line is None else f":{self.line}") + ": "
        return where + self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Survives the trip from a worker process: keyword arguments are restored as state."""
        return (type(self), (self.message,), {"hint": self.hint, "path": self.path, "line": self.line})


class UsageError(VoxloomError):
    """The command was called with something it cannot use (exit status 2)."""

    exit_status = 2


class SourceError(VoxloomError):
    """Recordings or their metadata cannot be found or read as a whole."""


class AudioError(VoxloomError):
    """One recording cannot be decoded or holds no usable sound."""


class NonFiniteError(AudioError):
    """One recording holds NaN or infinity."""


class TextError(VoxloomError):
    """One text cannot be turned into symbols."""


class LanguageError(TextError):
    """One text is in a language that the front end does not speak."""


class FormatError(VoxloomError):
    """A file of ours is damaged, incomplete, or of another version."""


class IdentityError(VoxloomError):
    """Two things that must belong together do not: another symbol table, feature spec, or index."""


class DropLimitError(VoxloomError):
    """More utterances were dropped than `--max-drop-share` allows."""


class TrainingError(VoxloomError):
    """Training cannot go on: too many steps whose loss or gradient is not finite."""


class MachineError(VoxloomError):
    """The machine failed: disk full, no permission, a worker lost. The same command continues."""
