"""Validates a prepared data set: schema, hashes, rows, recordings, counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from dataprep.audio import decode_flac
from dataprep.engine import Workers, run_tasks
from dataprep.progress import progress
from dataprep.shards.atomic import file_sha256
from dataprep.shards.parts import PARTS_FOLDER, read_part
from dataprep.shards.prepared import DROPS_NAME, PreparedSet, count, dataset_fingerprint, read_drops
from dataprep.steps.split import choose_split
from dataprep.validate.findings import Finding, Verdict
from schemas.dataset import DatasetManifest, FileInfo, IngestConfig, PartInfo
from schemas.errors import VoxloomError
from schemas.symbols import SymbolTable
from schemas.utterance import Utterance


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCheck:
    """A part to check against what the manifest says."""

    folder: Path
    part: PartInfo
    config: IngestConfig
    symbols: SymbolTable


def validate_prepared(folder: Path, workers: Workers) -> Verdict:
    """Checks the whole data set. Raises FormatError where the manifest itself cannot be read."""
    dataset = PreparedSet.open(folder)
    manifest = dataset.manifest
    checks = [
        PartCheck(folder=folder, part=part, config=manifest.config, symbols=manifest.symbols) for part in manifest.parts
    ]
    with progress("validate", [check.part.utterances for check in checks], "utterances") as on_done:
        findings = [finding for some in run_tasks(check_part, checks, workers, on_done) for finding in some]
    findings += check_file(folder, manifest.drops) + check_file(folder, manifest.report)
    findings += _check_whole(dataset) if not findings else []
    named = {part.name for part in manifest.parts}
    findings += [
        Finding(file=f"{PARTS_FOLDER}/{path.name}", key="", message="no manifest names this part; delete it")
        for path in sorted((folder / PARTS_FOLDER).glob("part-*.parquet"))
        if f"{PARTS_FOLDER}/{path.name}" not in named
    ]
    return Verdict(
        path=str(folder), kind="prepared data set", num_files=len(manifest.parts) + 3,
        num_utterances=manifest.counts.utterances, findings=tuple(findings),
    )  # fmt: skip


def check_file(folder: Path, info: FileInfo) -> list[Finding]:
    """Size and hash of one file."""
    path = folder / info.name
    if not path.is_file():
        return [Finding(file=info.name, key="", message="is missing")]
    size = path.stat().st_size
    if size != info.bytes:
        return [Finding(file=info.name, key="", message=f"has {size} bytes, the manifest says {info.bytes}")]
    found = file_sha256(path)
    if found != info.sha256:
        return [
            Finding(
                file=info.name, key="", message=f"has SHA-256 {found[:12]}..., the manifest says {info.sha256[:12]}..."
            )
        ]
    return []


def check_part(check: PartCheck) -> list[Finding]:
    """One part: its bytes, then each of its rows."""
    findings = check_file(check.folder, check.part)
    if findings:
        return findings
    try:
        table = read_part(check.folder / check.part.name)
    except VoxloomError as error:
        return [Finding(file=check.part.name, key="", message=error.message)]
    if table.num_rows != check.part.utterances:
        message = f"has {table.num_rows} rows, the manifest says {check.part.utterances}"
        findings.append(Finding(file=check.part.name, key="", message=message))
    for batch in table.to_batches(max_chunksize=1):
        row = batch.to_pylist()[0]
        findings += [
            Finding(file=check.part.name, key=str(row["id"]), message=message)
            for message in row_faults(row, check.config, check.symbols)
        ]
    return findings


def row_faults(row: dict[str, object], config: IngestConfig, symbols: SymbolTable) -> list[str]:
    """What is wrong with one row of a part."""
    try:
        utterance = Utterance.model_validate(row)
        ids = tuple(symbols.encode(utterance.phonemes))
        decoded = decode_flac(utterance.audio)
    except ValidationError as error:
        return [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
    except VoxloomError as error:
        return [error.message]
    expected = choose_split(utterance.id if config.split_by == "id" else utterance.speaker, config.split_shares)
    checks = (
        ("phoneme_ids", utterance.phoneme_ids, ids),
        ("split", utterance.split, expected),
        ("sample_rate", utterance.sample_rate, config.sample_rate),
        ("sample rate of the audio", decoded.sample_rate, config.sample_rate),
        ("num_samples", utterance.num_samples, len(decoded.samples)),
        ("num_audio_bytes", utterance.num_audio_bytes, len(utterance.audio)),
    )
    return [f"{name} is {found}, should be {wanted}" for name, found, wanted in checks if found != wanted]


def _check_whole(dataset: PreparedSet) -> list[Finding]:
    """What holds between files: unique ids, counts, identity. Needs parts that are sound each."""
    manifest, name = dataset.manifest, "dataset.json"
    table = dataset.table()
    findings = [
        Finding(file=name, key=utterance_id, message=f"id stands in {number} rows")
        for utterance_id, number in Counter(table.column("id").to_pylist()).items()
        if number > 1
    ]
    drops = read_drops(dataset.folder / DROPS_NAME)
    findings += _count_faults(manifest, count(table, drops, table.num_rows + len(drops), ()).model_dump())
    fingerprint = dataset_fingerprint(
        table, manifest.config, manifest.symbols, manifest.text_frontend, manifest.part_version
    )
    checks = (
        ("fingerprint", manifest.fingerprint, fingerprint),
        ("symbols_sha256", manifest.symbols_sha256, manifest.symbols.digest()),
    )
    findings += [
        Finding(file=name, key="", message=f"{what} is {found[:12]}..., should be {wanted[:12]}...")
        for what, found, wanted in checks
        if found != wanted
    ]
    return findings


def _count_faults(manifest: DatasetManifest, counted: dict[str, object]) -> list[Finding]:
    stated = manifest.counts.model_dump()
    return [
        Finding(file="dataset.json", key="", message=f"counts.{name} is {stated[name]}, counted are {counted[name]}")
        for name in counted
        if name != "warnings" and stated[name] != counted[name]
    ]
