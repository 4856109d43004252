"""A prepared data set as a whole: its manifest, its parts, what is counted over them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.shards.atomic import atomic_file, file_sha256
from dataprep.shards.parts import read_part
from schemas.base import canonical_json
from schemas.dataset import Amount, Counts, DatasetManifest, FileInfo, IngestConfig, PartInfo
from schemas.errors import FormatError, UsageError
from schemas.symbols import SymbolTable
from schemas.units import samples_to_seconds
from schemas.utterance import DROP_SCHEMA, UTTERANCE_SCHEMA, Drop

DATASET_NAME = "dataset.json"
DROPS_NAME = "drops.parquet"

LIGHT_COLUMNS = tuple(name for name in UTTERANCE_SCHEMA.names if name != "audio")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSet:
    """A prepared data set, opened."""

    folder: Path
    manifest: DatasetManifest

    @classmethod
    def open(cls, folder: Path) -> PreparedSet:
        """Reads the manifest. Raises FormatError, or UsageError where there is no such folder."""
        if not folder.is_dir():
            raise UsageError("no such folder", hint="give the folder that `dataprep ingest` wrote", path=folder)
        return cls(folder=folder, manifest=DatasetManifest.read(folder / DATASET_NAME))

    def table(self, columns: Sequence[str] = LIGHT_COLUMNS) -> pa.Table:
        """Rows of all parts, in order, with `part` (its number in the manifest) and `row` (its place in the part)."""
        return parts_table(self.folder, self.manifest.parts, columns)


def parts_table(folder: Path, parts: Sequence[PartInfo], columns: Sequence[str]) -> pa.Table:
    """As `PreparedSet.table`, of parts that no manifest names yet. Raises FormatError where one is damaged."""
    schema = pa.schema([UTTERANCE_SCHEMA.field(name) for name in columns])
    tables = [schema.append(pa.field("part", pa.int64())).append(pa.field("row", pa.int64())).empty_table()]
    for number, part in enumerate(parts):
        table = read_part(folder / part.name, columns).replace_schema_metadata(None)
        rows = table.num_rows
        if rows != part.utterances:
            raise FormatError(f"has {rows} rows, the manifest says {part.utterances}", path=folder / part.name)
        table = table.append_column("part", pa.array([number] * rows, pa.int64()))
        tables.append(table.append_column("row", pa.array(range(rows), pa.int64())))
    return pa.concat_tables(tables)


def write_drops(path: Path, drops: Iterable[Drop]) -> FileInfo:
    """Writes `drops.parquet` atomically, in the order of line, path and reason."""
    ordered = sorted(drops, key=lambda drop: (drop.line, drop.path, drop.reason))
    table = pa.Table.from_pylist([drop.model_dump(mode="json") for drop in ordered], schema=DROP_SCHEMA)
    with atomic_file(path) as handle:
        pq.write_table(table, handle, compression="zstd")
    return FileInfo(name=path.name, bytes=path.stat().st_size, sha256=file_sha256(path))


def read_drops(path: Path) -> list[Drop]:
    """Rows of `drops.parquet`. Raises FormatError."""
    try:
        table = pq.read_table(path, partitioning=None)
        return [Drop.model_validate(row) for row in table.to_pylist()]
    except (OSError, pa.ArrowInvalid, ValueError) as error:
        raise FormatError(f"is not a list of drops: {error}", hint="run `dataprep ingest` again", path=path) from error


def count(table: pa.Table, drops: Sequence[Drop], num_rows: int, warnings: Iterable[tuple[str, int]]) -> Counts:
    """Counts over the rows of `table` (needs split, speaker, language, num_samples, sample_rate, warnings)."""
    columns = {name: table.column(name).to_pylist() for name in ("split", "speaker", "language", "warnings")}
    pairs = zip(table.column("num_samples").to_pylist(), table.column("sample_rate").to_pylist(), strict=True)
    seconds = [samples_to_seconds(samples, rate) for samples, rate in pairs]
    kinds = Counter(dict(warnings))
    kinds.update(kind for row in columns["warnings"] for kind in row)
    return Counts(
        rows=num_rows,
        utterances=table.num_rows,
        drops=dict(sorted(Counter(drop.reason.value for drop in drops).items())),
        by_split=_amounts(columns["split"], seconds),
        by_speaker=_amounts(columns["speaker"], seconds),
        by_language=_amounts(columns["language"], seconds),
        warnings=dict(sorted(kinds.items())),
    )


def _amounts(names: list[str], seconds: list[float]) -> dict[str, Amount]:
    total: dict[str, tuple[int, float]] = {}
    for name, length in sorted(zip(names, seconds, strict=True)):
        number, so_far = total.get(name, (0, 0.0))
        total[name] = (number + 1, so_far + length)
    return {name: Amount(utterances=number, seconds=round(length, 6)) for name, (number, length) in total.items()}


def dataset_fingerprint(
    table: pa.Table, config: IngestConfig, symbols: SymbolTable, frontend: str, part_version: int
) -> str:
    """Identity of a data set: what it was made from and how, whatever the parts and their order.

    `table` needs id, path, text, speaker, source_sha256.
    """
    digest = hashlib.sha256(canonical_json([config.model_dump(mode="json"), symbols.digest(), frontend, part_version]))
    names = ("id", "path", "text", "speaker", "source_sha256")
    for row in sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True)):
        digest.update(canonical_json(row))
    return digest.hexdigest()
