"""`index.arrow`: one columnar file, memory-mapped, a row an utterance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataprep.shards.atomic import atomic_file, file_sha256
from schemas.errors import FormatError
from schemas.shards import INDEX_SCHEMA, IndexInfo
from schemas.utterance import SPLITS

INDEX_NAME = "index.arrow"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """Where one utterance lies and how long it is; the fields of `schemas.shards.INDEX_SCHEMA`."""

    key: str
    split: str
    language: str
    speaker: str
    frames: int
    symbols: int
    samples: int
    shard: int
    row_group: int
    row: int
    json_offset: int
    json_size: int
    json_crc32: int
    flac_offset: int
    flac_size: int
    flac_crc32: int
    mel_offset: int
    mel_size: int
    mel_crc32: int


def index_table(rows: Sequence[IndexRow], speakers: Sequence[str], languages: Sequence[str]) -> pa.Table:
    """The rows as one record batch of `INDEX_SCHEMA`; dictionaries in the order given, splits by `SPLITS`."""
    dictionaries: dict[str, list[str]] = {"split": list(SPLITS), "language": list(languages), "speaker": list(speakers)}
    columns: list[pa.Array] = []
    for field in INDEX_SCHEMA:
        values = [getattr(row, field.name) for row in rows]
        if field.name in dictionaries:
            words = dictionaries[field.name]
            places = {word: place for place, word in enumerate(words)}
            codes = pa.array([places[value] for value in values], field.type.index_type)
            columns.append(pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.string())))
        else:
            columns.append(pa.array(values, field.type))
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(columns, schema=INDEX_SCHEMA)])


def write_index(path: Path, table: pa.Table) -> IndexInfo:
    """Writes the index atomically, uncompressed, in one record batch."""
    with atomic_file(path) as handle, pa.ipc.new_file(handle, INDEX_SCHEMA) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=max(1, table.num_rows))
    return IndexInfo(name=path.name, bytes=path.stat().st_size, sha256=file_sha256(path), rows=table.num_rows)


def map_index(path: Path) -> pa.Table:
    """The index, memory-mapped: nothing is read before it is looked at.

    Raises:
        FormatError: missing, damaged, or of another schema.
    """
    hint = "make it again with `dataprep shard`"
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise FormatError(f"cannot be read as an Arrow file: {error}", hint=hint, path=path) from error
    if not table.schema.equals(INDEX_SCHEMA, check_metadata=False):
        raise FormatError("has other columns than an index of this version", hint=hint, path=path)
    return table


def number_column(table: pa.Table, name: str) -> NDArray[np.generic]:
    """A number column `[num_rows]`, or the codes of a dictionary column, without a copy where Arrow allows it."""
    column = table.column(name)
    if column.num_chunks == 0:
        return np.empty(0, dtype=np.int64)
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pa.DictionaryArray):
        array = array.indices
    values: NDArray[np.generic] = array.to_numpy(zero_copy_only=False)
    return values
