"""Finds recordings and their transcripts from nothing but a folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from dataprep.sources.discover import RECORDINGS_FOLDER, Listing, lexical, suffix_of, walk
from dataprep.sources.metadata import read_metadata
from dataprep.sources.sidecar import has_sidecars, read_sidecars
from dataprep.sources.source import Reading, Source
from dataprep.sources.table import checked_delimiter
from schemas.errors import SourceError, UsageError
from schemas.utterance import DropReason

METADATA_NAME = "metadata.csv"
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".list")


def find_source(folder: Path, metadata: Path | None, delimiter: str) -> Source:
    r"""Finds every utterance of `folder`.

    Without `metadata`, these are tried: `metadata.csv` in the folder, in its `wavs/`, and in the folder above; then
    texts beside the recordings. The one above gives way to such texts where it names no recording of this folder.

    Args:
        folder: holds recordings, or `wavs/` with recordings.
        metadata: the metadata file, where it has another name or place.
        delimiter: separates its columns: one character, or `\t`.

    Raises:
        UsageError: no such folder or metadata file, or a wrong delimiter.
        SourceError: no recordings, no transcripts, or no usable row.
        MachineError: something may not be read.
    """
    delimiter = checked_delimiter(delimiter)
    _check_arguments(folder, metadata)
    listing = walk(folder)
    _check_recordings(folder, listing)
    metadata = metadata or _own_metadata(folder)
    if metadata is not None:
        reading = read_metadata(folder, metadata, delimiter, listing)
    else:
        reading, metadata = _above_or_beside(folder, delimiter, listing)
    if not reading.rows:
        raise _nothing_usable(folder, metadata, reading)
    warnings = {**reading.warnings, "undecodable_names": listing.num_undecodable}
    return Source(
        root=folder,
        metadata=metadata,
        rows=tuple(sorted(reading.rows, key=lambda row: row.id)),
        drops=tuple(sorted(reading.drops, key=lambda drop: (drop.line, drop.path))),
        warnings=tuple(sorted((kind, count) for kind, count in warnings.items() if count)),
    )


def _check_arguments(folder: Path, metadata: Path | None) -> None:
    if not folder.is_dir():
        found = "is a file, not a folder" if folder.exists() else "no such folder"
        hint = "name the folder that holds the recordings; a metadata file goes with --metadata"
        raise UsageError(found, hint=hint, path=folder)
    if metadata is not None and not metadata.is_file():
        found = "is a folder, not a metadata file" if metadata.is_dir() else "no such metadata file"
        raise UsageError(found, hint="check --metadata, or leave it out to have it looked for", path=metadata)


def _check_recordings(folder: Path, listing: Listing) -> None:
    if not listing.entries:
        raise SourceError("the folder is empty", hint="name the folder that holds the recordings", path=folder)
    if not any(suffix_of(entry.path) for entry in listing.entries):
        raise SourceError(
            f"none of its {len(listing.entries)} files has the suffix of a recording (.wav, .flac, .ogg, .mp3, ...)",
            hint="name the folder that holds the recordings",
            path=folder,
        )


def _own_metadata(folder: Path) -> Path | None:
    places = (folder / METADATA_NAME, folder / RECORDINGS_FOLDER / METADATA_NAME)
    return next((place for place in places if place.is_file()), None)


def _above_or_beside(folder: Path, delimiter: str, listing: Listing) -> tuple[Reading, Path | None]:
    above = Path(lexical(folder)).parent / METADATA_NAME
    is_beside = has_sidecars(listing)
    if above.is_file():
        try:
            reading = read_metadata(folder, above, delimiter, listing)
        except (SourceError, UsageError):
            if not is_beside:
                raise
        else:
            if reading.rows or not is_beside:
                return reading, above
    if is_beside:
        return read_sidecars(folder, listing), None
    num_recordings = sum(bool(suffix_of(entry.path)) for entry in listing.entries)
    tables = [entry.path for entry in listing.entries if entry.path.lower().endswith(TABLE_SUFFIXES)][:3]
    found = f"pass --metadata with the right one of {', '.join(tables)}, or " if tables else ""
    raise SourceError(
        f"holds {num_recordings} recordings and no transcript: looked for {METADATA_NAME} in it, in its "
        f"{RECORDINGS_FOLDER}/ and in the folder above, and for .normalized.txt, .txt and .lab beside the recordings",
        hint=f"{found}write {METADATA_NAME} with a line path|text for each recording",
        path=folder,
    )


def _nothing_usable(folder: Path, metadata: Path | None, reading: Reading) -> SourceError:
    if not reading.drops:
        return SourceError(
            "holds a header and no rows", hint="write a line path|text for each recording", path=metadata
        )
    reasons = Counter(drop.reason.value for drop in reading.drops)
    counted = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    common = reasons.most_common(1)[0][0]
    first = next(drop for drop in reading.drops if drop.reason.value == common)
    hint = f"are the recordings in {folder}? Paths are relative to the metadata file, to that folder or to its wavs/"
    if first.reason is DropReason.MALFORMED_ROW:
        hint = "check --delimiter, or name the columns in a first line such as path|text|speaker"
    return SourceError(
        f"none of {len(reading.drops)} rows can be used ({counted}); the first, {first.path!r}: {first.message}",
        hint=hint,
        path=metadata or folder,
        line=first.line or None,
    )
