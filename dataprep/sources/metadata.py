"""Rows of a metadata file, each of them a `SourceRow` or a `Drop`."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dataprep.sources.columns import Columns, find_columns
from dataprep.sources.discover import RECORDINGS_FOLDER, Entry, Listing, suffix_of
from dataprep.sources.lookup import Lookup, normal_path
from dataprep.sources.source import DEFAULT_SPEAKER, Reading, SourceRow
from dataprep.sources.table import read_table
from schemas.errors import SourceError
from schemas.utterance import Drop, DropReason


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A row on its way: its cells, and the recording that its path means."""

    number: int
    cells: tuple[str, ...]
    path: str
    """As it is compared; empty where the row has none."""
    entry: Entry | None


def read_metadata(folder: Path, metadata: Path, delimiter: str, listing: Listing) -> Reading:
    """Reads `metadata`, whose recordings lie in `folder`, which `listing` lists.

    Raises:
        SourceError, UsageError, MachineError: as `read_table` does, and where the file holds no row.
    """
    table = read_table(metadata, delimiter)
    if not table.rows:
        raise SourceError("holds no rows", hint="write a line path|text for each recording", path=metadata)
    columns = find_columns([cells for _, cells in table.rows])
    lookup = Lookup(folder, metadata.parent, listing.entries)
    lines = [_line(number, cells, columns, lookup) for number, cells in table.rows[columns.has_header :]]
    base = common_base([line.entry for line in lines if line.entry is not None])
    rows, drops = _judge(lines, columns, lookup, base, folder)
    named = {line.entry.path for line in lines if line.entry is not None}
    num_recordings = sum(bool(suffix_of(entry.path)) for entry in listing.entries)
    warnings = {
        "blank_lines": table.num_blank,
        "comment_lines": table.num_comments,
        "recordings_without_row": num_recordings - sum(bool(suffix_of(path)) for path in named),
        "third_column_ignored": int(columns.is_third_ignored),
        **lookup.notes,
    }
    return Reading(rows=tuple(rows), drops=tuple(drops), warnings=warnings)


def common_base(entries: Sequence[Entry]) -> str:
    """The folder that ids count from: `wavs/` where all recordings lie in it, else the source itself ("")."""
    prefix = RECORDINGS_FOLDER + "/"
    return prefix if entries and all(entry.path.startswith(prefix) for entry in entries) else ""


def id_of(entry: Entry, base: str) -> str:
    """The utterance id of a recording."""
    return unicodedata.normalize("NFC", entry.path.removeprefix(base).removesuffix(suffix_of(entry.path)))


def _line(number: int, cells: tuple[str, ...], columns: Columns, lookup: Lookup) -> _Line:
    if not columns.allows(len(cells)) or not cells[columns.path]:
        return _Line(number=number, cells=cells, path="", entry=None)
    path = normal_path(cells[columns.path])
    return _Line(number=number, cells=cells, path=path, entry=lookup.find(path))


def _judge(
    lines: Sequence[_Line], columns: Columns, lookup: Lookup, base: str, folder: Path
) -> tuple[list[SourceRow], list[Drop]]:
    rows: list[SourceRow] = []
    drops: list[Drop] = []
    first_lines: dict[str, int] = {}
    for line in lines:
        if line.entry is None:
            drops.append(_without_recording(line, columns, lookup, base))
            continue
        utterance_id = id_of(line.entry, base)
        path, text = line.cells[columns.path], columns.text_of(line.cells)
        if not text:
            message = "the text is empty; write what is said, or remove the row"
            drops.append(_drop(line, utterance_id, path, DropReason.EMPTY_TEXT, message))
        elif utterance_id in first_lines:
            message = f"line {first_lines[utterance_id]} has this recording already; remove one of the two rows"
            drops.append(_drop(line, utterance_id, path, DropReason.DUPLICATE_ID, message))
        else:
            first_lines[utterance_id] = line.number
            rows.append(
                SourceRow(
                    id=utterance_id,
                    path=path,
                    file=folder / line.entry.path,
                    text=text,
                    speaker=_speaker(line.cells, columns),
                    line=line.number,
                    num_bytes=line.entry.num_bytes,
                )
            )
    return rows, drops


def _speaker(cells: Sequence[str], columns: Columns) -> str:
    if columns.speaker is None:
        return DEFAULT_SPEAKER
    return unicodedata.normalize("NFC", cells[columns.speaker]) or DEFAULT_SPEAKER


def _without_recording(line: _Line, columns: Columns, lookup: Lookup, base: str) -> Drop:
    if not columns.allows(len(line.cells)):
        found, wanted = str(len(line.cells)), str(columns.num_columns)
        message = (
            f"{found} columns, {wanted} expected; remove delimiters from the text, or name the columns in a header"
        )
        first = line.cells[0]
        return _drop(line, "", first, DropReason.MALFORMED_ROW, message, value=found, limit=wanted)
    path = line.cells[columns.path]
    if not line.path:
        return _drop(line, "", path, DropReason.MALFORMED_ROW, "the path is empty; name the recording")
    missing_id = lookup.id_of_missing(line.path).removeprefix(base)
    if lookup.leaves_source(line.path):
        message = "the path leaves the folder of recordings and that of the metadata; copy the recording there"
        return _drop(line, missing_id, path, DropReason.OUTSIDE_SOURCE, message)
    message = (
        "no such recording beside the metadata file, in the source, or in its wavs/, with any suffix; "
        "add it, or remove the row"
    )
    return _drop(line, missing_id, path, DropReason.MISSING_AUDIO, message)


def _drop(
    line: _Line, utterance_id: str, path: str, reason: DropReason, message: str, value: str = "", limit: str = ""
) -> Drop:
    return Drop(id=utterance_id, path=path, line=line.number, reason=reason, value=value, limit=limit, message=message)
