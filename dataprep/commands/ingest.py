"""`dataprep ingest`: source -> rows -> slices -> parts -> manifest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from dataprep.engine import Workers, run_tasks
from dataprep.progress import progress
from dataprep.report import FAILED_REPORT_NAME, write_failed_report, write_report
from dataprep.shards.atomic import sweep, write_atomic
from dataprep.shards.parts import PARTS_FOLDER
from dataprep.shards.prepared import (
    DATASET_NAME,
    DROPS_NAME,
    LIGHT_COLUMNS,
    PreparedSet,
    count,
    dataset_fingerprint,
    parts_table,
    write_drops,
)
from dataprep.sources import Source, SourceRow, find_source
from dataprep.tasks.ingest import PART_VERSION, EarlierPart, IngestResult, IngestTask, ingest_slice
from dataprep.tasks.slices import cut_slices
from dataprep.text import FRONTEND_VERSION, SYMBOLS
from schemas.dataset import DatasetManifest, IngestConfig, PartInfo
from schemas.errors import DropLimitError, FormatError, UsageError
from schemas.utterance import Drop

FAILED_DROPS_NAME = "drops.failed.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOutcome:
    """What an ingest did: the data set, the rows that were left out, how many utterances an earlier run had made."""

    manifest: DatasetManifest
    drops: tuple[Drop, ...]
    num_reused: int


def ingest(
    folder: Path,
    metadata: Path | None,
    delimiter: str,
    config: IngestConfig,
    out: Path,
    max_drop_share: float,
    workers: Workers,
) -> IngestOutcome:
    """Prepares all that is new or changed in `folder` and writes the data set to `out`.

    Raises:
        UsageError, SourceError: nothing to ingest in `folder`.
        DropLimitError: a larger share of the rows than `max_drop_share` was dropped; the data set is left as it was.
        MachineError, OSError: the machine failed; the same command continues.
    """
    source = find_source(folder, metadata, delimiter)
    sweep(out)
    sweep(out / PARTS_FOLDER)
    tasks = [
        IngestTask(rows=rows, config=config, out=out.absolute(), reusable=reusable)
        for rows, reusable in _with_earlier_parts(cut_slices(source.rows), out, config)
    ]
    with progress("ingest", [len(task.rows) for task in tasks], "recordings") as on_done:
        results = run_tasks(ingest_slice, tasks, workers, on_done)
    drops = (*source.drops, *_with_lines(results, source.rows))
    _check_share(drops, source, max_drop_share, out)
    manifest = _write_manifest(out, config, source, results, drops)
    _remove_stale_parts(out, manifest.parts)
    sweep(out / PARTS_FOLDER)  # workers of a killed run may have been alive at the first sweep
    return IngestOutcome(manifest=manifest, drops=drops, num_reused=sum(result.num_reused for result in results))


def _with_earlier_parts(
    slices: Sequence[tuple[SourceRow, ...]], out: Path, config: IngestConfig
) -> Iterable[tuple[tuple[SourceRow, ...], tuple[EarlierPart, ...]]]:
    """Each slice with the parts of the last complete run, of the same configuration, that hold utterances of it."""
    part_of: dict[str, EarlierPart] = {}
    try:
        earlier = PreparedSet.open(out)
        made = earlier.manifest
        found = (made.config, made.text_frontend, made.part_version, made.symbols)
        if found == (config, FRONTEND_VERSION, PART_VERSION, SYMBOLS):
            table = earlier.table(("id",))
            parts = [EarlierPart(path=out.absolute() / part.name, sha256=part.sha256) for part in made.parts]
            pairs = zip(table.column("id").to_pylist(), table.column("part").to_pylist(), strict=True)
            part_of = {utterance_id: parts[number] for utterance_id, number in pairs}
    except (FormatError, UsageError):
        part_of = {}  # none yet, or damaged: its parts are then made again where they differ
    for rows in slices:
        found_parts = {part_of[row.id] for row in rows if row.id in part_of}
        yield rows, tuple(sorted(found_parts, key=lambda part: part.path))


def _with_lines(results: Sequence[IngestResult], rows: Sequence[SourceRow]) -> list[Drop]:
    lines = {row.id: row.line for row in rows}
    return [drop.model_copy(update={"line": lines[drop.id]}) for result in results for drop in result.drops]


def _check_share(drops: Sequence[Drop], source: Source, max_drop_share: float, out: Path) -> None:
    failed = out / FAILED_DROPS_NAME
    share = len(drops) / source.num_rows
    if share <= max_drop_share:
        failed.unlink(missing_ok=True)
        (out / FAILED_REPORT_NAME).unlink(missing_ok=True)
        return
    write_drops(failed, drops)
    write_failed_report(out, source.num_rows, drops)
    by_reason: dict[str, list[Drop]] = defaultdict(list)
    for drop in drops:
        by_reason[drop.reason.value].append(drop)
    listed = "".join(
        f"\n  {reason}: {len(some)}, the first: line {some[0].line}, {some[0].path}: {some[0].message}"
        for reason, some in sorted(by_reason.items(), key=lambda item: -len(item[1]))
    )
    raise DropLimitError(
        f"{len(drops)} of {source.num_rows} utterances were dropped ({share:.1%}), "
        f"more than --max-drop-share {max_drop_share:g} allows{listed}",
        hint=f"look at {out / FAILED_REPORT_NAME}; mend them, or raise --max-drop-share (what was prepared is kept)",
    )


def _write_manifest(
    out: Path, config: IngestConfig, source: Source, results: Sequence[IngestResult], drops: Sequence[Drop]
) -> DatasetManifest:
    parts = tuple(sorted((result.part for result in results), key=lambda part: part.name))
    table: pa.Table = parts_table(out, parts, LIGHT_COLUMNS)
    counts = count(table, drops, source.num_rows, source.warnings)
    # From here on the folder is no data set until the new manifest is written: the old one names the old drops.
    (out / DATASET_NAME).unlink(missing_ok=True)
    manifest = DatasetManifest(
        config=config,
        symbols=SYMBOLS,
        symbols_sha256=SYMBOLS.digest(),
        text_frontend=FRONTEND_VERSION,
        part_version=PART_VERSION,
        fingerprint=dataset_fingerprint(table, config, SYMBOLS, FRONTEND_VERSION, PART_VERSION),
        counts=counts,
        parts=parts,
        drops=write_drops(out / DROPS_NAME, drops),
        report=write_report(out, counts, config.sample_rate, parts, table, drops),
    )
    write_atomic(out / DATASET_NAME, manifest.pretty_json())
    return manifest


def _remove_stale_parts(out: Path, parts: Sequence[PartInfo]) -> None:
    current = {out / part.name for part in parts}
    for path in (out / PARTS_FOLDER).glob("part-*.parquet"):
        if path not in current:
            path.unlink()
