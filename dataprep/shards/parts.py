"""Parts: Parquet files of prepared utterances, each named by what went into it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.shards.atomic import atomic_file, file_sha256
from schemas.base import canonical_json
from schemas.dataset import PartInfo
from schemas.errors import FormatError
from schemas.utterance import UTTERANCE_SCHEMA, Drop, Utterance

PARTS_FOLDER = "parts"
_METADATA_KEY = b"voxloom.drops"
_ROW_GROUP_ROWS = 64
_COMPRESSION = dict.fromkeys(
    ("id", "path", "text", "normalized_text", "source_sha256", "phonemes.list.element"), "zstd"
)
"""Text only: FLAC does not shrink, and an uncompressed column is read at the speed of the disk."""


def part_path(folder: Path, key: str) -> Path:
    """Path of the part with `key` in the folder of a prepared data set."""
    return folder / PARTS_FOLDER / f"part-{key}.parquet"


def part_key(*identity: object) -> str:
    """Name of a part: 20 hex digits of the hash of everything that decides its bytes."""
    return hashlib.sha256(canonical_json(identity)).hexdigest()[:20]


def write_part(path: Path, utterances: Sequence[Utterance], drops: Sequence[Drop]) -> PartInfo:
    """Writes a part atomically: rows in the given order, the drops of its slice in the file's metadata.

    Drops ride in the part so that a run that continues knows them without looking at the recordings again.
    """
    rows = [utterance.model_dump() for utterance in utterances]
    metadata = {_METADATA_KEY: canonical_json([drop.model_dump(mode="json") for drop in drops])}
    table = pa.Table.from_pylist(rows, schema=UTTERANCE_SCHEMA.with_metadata(metadata))
    with atomic_file(path) as handle:
        pq.write_table(
            table,
            handle,
            row_group_size=_ROW_GROUP_ROWS,
            compression=_COMPRESSION,
            use_dictionary=["language", "speaker", "split"],
            write_statistics=["id"],
        )
    return part_info(path)


def part_info(path: Path) -> PartInfo:
    """What the manifest says of a part."""
    rows = pq.read_metadata(path).num_rows
    return PartInfo(
        name=f"{PARTS_FOLDER}/{path.name}", bytes=path.stat().st_size, sha256=file_sha256(path), utterances=rows
    )


def read_part(path: Path, columns: Sequence[str] | None = None, *, memory_map: bool = False) -> pa.Table:
    """Rows of a part, all columns or the named ones.

    Raises:
        FormatError: not a Parquet file, or of another schema.
    """
    try:
        file = pq.ParquetFile(path, memory_map=memory_map)
    except (OSError, pa.ArrowInvalid) as error:
        raise FormatError(
            f"cannot be read as Parquet: {error}", hint="run `dataprep ingest` again", path=path
        ) from error
    if not file.schema_arrow.equals(UTTERANCE_SCHEMA, check_metadata=False):
        raise FormatError("has other columns than an utterance", hint="run `dataprep ingest` again", path=path)
    return file.read(columns=None if columns is None else list(columns))


def read_part_drops(path: Path) -> tuple[Drop, ...]:
    """The drops of a part's slice. Raises FormatError."""
    try:
        metadata = pq.read_schema(path).metadata or {}
        return tuple(Drop.model_validate(drop) for drop in json.loads(metadata[_METADATA_KEY]))
    except (OSError, pa.ArrowInvalid, KeyError, ValueError) as error:
        raise FormatError(f"is not a part: {error}", hint="run `dataprep ingest` again", path=path) from error
