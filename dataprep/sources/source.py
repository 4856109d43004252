"""`Source`: where utterances come from, each row of it accounted for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from schemas.utterance import Drop

DEFAULT_SPEAKER = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """One recording with its text, not yet opened."""

    id: str
    """Path below the folder of recordings, without suffix, with forward slashes, in Unicode's NFC; unique."""
    path: str
    """Path of the recording as the source names it."""
    file: Path
    """The recording on this machine."""
    text: str
    """Text as the source gives it, without white space at its ends; never empty."""
    speaker: str
    """Name of the speaker; `DEFAULT_SPEAKER` where the source names none."""
    line: int
    """Line of the metadata file, counted from 1; 0 with side-cars."""
    num_bytes: int
    """Size of the recording's file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """All that a folder of recordings holds."""

    root: Path
    """The folder that was asked for."""
    metadata: Path | None
    """The metadata file; None with side-cars."""
    rows: tuple[SourceRow, ...]
    """Usable rows, sorted by id."""
    drops: tuple[Drop, ...]
    """Rows that cannot be used, sorted by line and path."""
    warnings: tuple[tuple[str, int], ...]
    """Kinds of things worth knowing that cost no row, with their counts, sorted; none of them is 0."""

    @property
    def num_rows(self) -> int:
        """Rows that the source names: usable ones and drops."""
        return len(self.rows) + len(self.drops)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one way of reading transcripts (metadata or side-cars) found."""

    rows: tuple[SourceRow, ...]
    drops: tuple[Drop, ...]
    warnings: dict[str, int]
