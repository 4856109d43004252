"""One slice of recordings to one part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dataprep.shards.atomic import file_sha256
from dataprep.shards.parts import part_info, part_key, part_path, read_part, read_part_drops, write_part
from dataprep.sources import SourceRow
from dataprep.steps.prepare import RawUtterance, prepare
from dataprep.text import FRONTEND_VERSION, SYMBOLS
from schemas.dataset import IngestConfig, PartInfo
from schemas.utterance import Drop, DropReason, Utterance

PART_VERSION = 1
"""Raised whenever the same input gives other bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierPart:
    """A part of the last complete run, and the hash that its manifest states."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestTask:
    """A slice to prepare; `reusable` are parts of an earlier run with the same configuration that hold rows of it."""

    rows: tuple[SourceRow, ...]
    config: IngestConfig
    out: Path
    reusable: tuple[EarlierPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """The part, the drops of its slice, and how many of its utterances were taken over from earlier runs."""

    part: PartInfo
    drops: tuple[Drop, ...]
    num_reused: int


def ingest_slice(task: IngestTask) -> IngestResult:
    """Prepares a slice, or finds that its part is there already: the name says what went into it.

    Raises:
        OSError: the machine fails to write.
    """
    hashed = [_raw(row) for row in task.rows]
    key = part_key(
        PART_VERSION, FRONTEND_VERSION, SYMBOLS.digest(), task.config.model_dump(mode="json"),
        [[raw.id, raw.path, raw.text, raw.speaker, raw.source_sha256] for raw in hashed],
    )  # fmt: skip
    path = part_path(task.out, key)
    stated = {part.path: part.sha256 for part in task.reusable}
    if path.exists() and stated.get(path) in (None, file_sha256(path)):
        part = part_info(path)
        return IngestResult(part=part, drops=read_part_drops(path), num_reused=part.utterances)
    earlier = _earlier_utterances(task, hashed)
    utterances: list[Utterance] = []
    drops: list[Drop] = []
    for row, raw in zip(task.rows, hashed, strict=True):
        result = earlier.get(raw.id) or _prepare_row(row, raw, task.config)
        if isinstance(result, Drop):
            drops.append(result)
        else:
            utterances.append(result)
    return IngestResult(part=write_part(path, utterances, drops), drops=tuple(drops), num_reused=len(earlier))


def _raw(row: SourceRow) -> RawUtterance:
    """The row with the hash of its file; an empty hash where it cannot be read, which `_prepare_row` then reports."""
    try:
        sha256 = file_sha256(row.file)
    except OSError:
        sha256 = ""
    return RawUtterance(id=row.id, path=row.path, text=row.text, speaker=row.speaker, source_sha256=sha256)


def _prepare_row(row: SourceRow, raw: RawUtterance, config: IngestConfig) -> Utterance | Drop:
    try:
        content = row.file.read_bytes()
    except OSError as error:
        reason = DropReason.MISSING_AUDIO if isinstance(error, FileNotFoundError) else DropReason.UNREADABLE_AUDIO
        message = f"the file cannot be read: {error.strerror}; check its permissions"
        return Drop(id=row.id, path=row.path, reason=reason, message=message)
    return prepare(raw, content, config)


def _earlier_utterances(task: IngestTask, hashed: list[RawUtterance]) -> dict[str, Utterance]:
    """Utterances by id that an earlier run made from the same path, text, speaker and bytes."""
    wanted = {raw.id: raw for raw in hashed}
    found: dict[str, Utterance] = {}
    for part in task.reusable:
        if not part.path.exists() or file_sha256(part.path) != part.sha256:
            continue  # damaged since: its utterances are made again
        table = read_part(part.path)
        for place, utterance_id in enumerate(table.column("id").to_pylist()):
            if utterance_id in wanted:
                utterance = Utterance.model_validate(table.slice(place, 1).to_pylist()[0])
                if _source(utterance) == wanted[utterance_id]:
                    found[utterance_id] = utterance
    return found


def _source(utterance: Utterance) -> RawUtterance:
    """What the source said when the utterance was made."""
    return RawUtterance(
        id=utterance.id,
        path=utterance.path,
        text=utterance.text,
        speaker=utterance.speaker,
        source_sha256=utterance.source_sha256,
    )
