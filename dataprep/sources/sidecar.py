"""Recordings whose text stands in a file of its own beside them."""

from __future__ import annotations

import unicodedata
from pathlib import Path, PurePosixPath

from dataprep.sources.discover import RECORDING_SUFFIXES, Entry, Listing, suffix_of
from dataprep.sources.metadata import common_base, id_of
from dataprep.sources.source import DEFAULT_SPEAKER, Reading, SourceRow
from schemas.errors import MachineError
from schemas.utterance import Drop, DropReason

TEXT_SUFFIXES = (".normalized.txt", ".txt", ".lab", ".original.txt")
"""Suffixes (lower case) of texts; where a recording has several, the earlier one is taken. (`.original.txt` stands
beside `.normalized.txt` in LibriTTS.)"""
NOT_TRANSCRIPTS = frozenset({"readme", "license", "licence", "copying", "notice"})


def has_sidecars(listing: Listing) -> bool:
    """Whether at least one recording has a text beside it."""
    texts = _texts(listing)
    return any(_stem(entry) in texts for entry in listing.entries if suffix_of(entry.path))


def read_sidecars(folder: Path, listing: Listing) -> Reading:
    """A row or a drop for each recording in `folder`, and a drop for each text that has no recording.

    The speaker is the name of the folder that a recording stands in, where that lies below the folder of recordings.

    Raises:
        MachineError: a text may not be read.
    """
    texts = _texts(listing)
    recordings = [entry for entry in listing.entries if suffix_of(entry.path)]
    recordings.sort(key=lambda entry: (_stem(entry), RECORDING_SUFFIXES.index(suffix_of(entry.path).lower())))
    base = common_base(recordings)
    rows: dict[str, SourceRow] = {}
    drops: list[Drop] = []
    for entry in recordings:
        found = _row(folder, entry, texts.get(_stem(entry)), base)
        if isinstance(found, SourceRow) and found.id in rows:
            message = f"{rows[found.id].path} has the same id; keep one of the two recordings"
            found = _drop(entry, base, DropReason.DUPLICATE_ID, message)
        if isinstance(found, Drop):
            drops.append(found)
        else:
            rows[found.id] = found
    stems = {_stem(entry) for entry in recordings}
    for stem, text in texts.items():
        if stem not in stems and PurePosixPath(stem).name.casefold() not in NOT_TRANSCRIPTS:
            message = "no recording beside this text has its name; add it, or remove the text"
            missing_id = stem.removeprefix(base)
            drops.append(Drop(id=missing_id, path=text.path, reason=DropReason.MISSING_AUDIO, message=message))
    return Reading(rows=tuple(rows.values()), drops=tuple(drops), warnings={})


def _texts(listing: Listing) -> dict[str, Entry]:
    """The text to take for each stem (NFC)."""
    texts: dict[str, Entry] = {}
    for suffix in TEXT_SUFFIXES:
        longer = tuple(other for other in TEXT_SUFFIXES if other != suffix and other.endswith(suffix))
        for entry in listing.entries:
            name = entry.path.lower()
            if name.endswith(suffix) and not name.endswith(longer):
                texts.setdefault(unicodedata.normalize("NFC", entry.path[: -len(suffix)]), entry)
    return texts


def _stem(entry: Entry) -> str:
    return unicodedata.normalize("NFC", entry.path.removesuffix(suffix_of(entry.path)))


def _row(folder: Path, entry: Entry, text_entry: Entry | None, base: str) -> SourceRow | Drop:
    if text_entry is None:
        message = "no text of this name beside the recording (.normalized.txt, .txt, .lab); write one"
        return _drop(entry, base, DropReason.MISSING_TEXT, message)
    try:
        lines = (folder / text_entry.path).read_bytes().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        message = f"{text_entry.path} is not UTF-8 (byte {error.start}); save it as UTF-8"
        return _drop(entry, base, DropReason.MALFORMED_ROW, message)
    except OSError as error:
        raise MachineError(
            f"cannot be read: {error.strerror}", hint="check its permissions", path=folder / text_entry.path
        ) from error
    text = " ".join(line.strip() for line in lines if line.strip())
    if not text:
        return _drop(entry, base, DropReason.EMPTY_TEXT, f"{text_entry.path} is empty; write what is said")
    utterance_id = id_of(entry, base)
    return SourceRow(
        id=utterance_id,
        path=entry.path,
        file=folder / entry.path,
        text=text,
        speaker=PurePosixPath(utterance_id).parent.name or DEFAULT_SPEAKER,
        line=0,
        num_bytes=entry.num_bytes,
    )


def _drop(entry: Entry, base: str, reason: DropReason, message: str) -> Drop:
    return Drop(id=id_of(entry, base), path=entry.path, reason=reason, message=message)
