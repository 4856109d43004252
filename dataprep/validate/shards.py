"""Validates a shard set: schema, hashes, and each sample against the index; tars are walked by the standard library."""

from __future__ import annotations

import math
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dataprep.audio import decode_flac
from dataprep.engine import Workers, run_tasks
from dataprep.progress import progress
from dataprep.shards.index import number_column
from dataprep.shards.keys import sample_key
from dataprep.shards.reader import ShardSet
from dataprep.validate.findings import Finding, Verdict
from dataprep.validate.prepared import check_file
from schemas.errors import VoxloomError
from schemas.shards import MEMBERS, ShardInfo
from schemas.units import samples_to_frames


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCheck:
    """A shard to check, by its number in the manifest."""

    shards: ShardSet
    number: int
    rows: tuple[int, ...]

    @property
    def info(self) -> ShardInfo:
        """What the manifest says of the shard."""
        return self.shards.manifest.shards[self.number]


def validate_shards(folder: Path, workers: Workers) -> Verdict:
    """Checks the whole shard set. Raises FormatError where manifest or index cannot be read."""
    shards = ShardSet(folder)
    manifest = shards.manifest
    findings = check_file(folder, manifest.index)
    numbers = number_column(shards.table, "shard")
    checks = [
        ShardCheck(shards=shards, number=number, rows=tuple(np.flatnonzero(numbers == number).tolist()))
        for number in range(len(manifest.shards))
    ]
    with progress("validate", [info.utterances for info in manifest.shards], "utterances") as on_done:
        findings += [finding for some in run_tasks(check_shard, checks, workers, on_done) for finding in some]
    findings += _check_whole(shards)
    return Verdict(
        path=str(folder), kind=f"{manifest.container} shard set", num_files=len(manifest.shards) + 2,
        num_utterances=len(shards), findings=tuple(findings),
    )  # fmt: skip


def check_shard(check: ShardCheck) -> list[Finding]:
    """One shard: its bytes, its members, each sample."""
    info, shards = check.info, check.shards
    findings = check_file(shards.folder, info)
    if findings:
        return findings
    frames = sum(shards.value("frames", row) for row in check.rows)
    counts = (("utterances", info.utterances, len(check.rows)), ("frames", info.frames, frames))
    faults = [
        f"{name} is {stated} in the manifest, {found} in the index" for name, stated, found in counts if stated != found
    ]
    findings = [Finding(file=info.name, key="", message=fault) for fault in faults]
    if shards.manifest.container == "webdataset":
        findings += _check_members(check)
    for row in check.rows:
        findings += [
            Finding(file=info.name, key=shards.key(row), message=fault) for fault in sample_faults(shards, row)
        ]
    return findings


def _check_members(check: ShardCheck) -> list[Finding]:
    """Names, order, offsets and sizes of the tar's members, as Python's own tarfile sees them, against the index."""
    shards, name = check.shards, check.info.name
    with tarfile.open(shards.folder / name) as tar:
        found = [(member.name, member.offset_data, member.size) for member in tar]
    short = ("flac", "json") if shards.manifest.mel_dtype == "none" else ("flac", "json", "mel")
    expected = [
        (f"{shards.key(row)}.{member}", shards.value(f"{column}_offset", row), shards.value(f"{column}_size", row))
        for row in check.rows
        for member, column in zip(MEMBERS, short, strict=False)
    ]
    if found == expected:
        return []
    first = next(
        (pair for pair in zip(found, expected, strict=False) if pair[0] != pair[1]), (len(found), len(expected))
    )
    return [Finding(file=name, key="", message=f"members differ from the index: found {first[0]}, indexed {first[1]}")]


def sample_faults(shards: ShardSet, row: int) -> list[str]:
    """What is wrong with one sample: checksums, lengths, numbers, identity."""
    spec = shards.manifest.feature_spec
    try:
        info, mel, wave = shards.read_info(row), shards.read_mel(row), decode_flac(shards.read_member("flac", row))
        ids = tuple(shards.manifest.symbols.encode(info.phonemes))
    except VoxloomError as error:
        return [error.message]
    except ValueError as error:
        return [f"JSON member: {error}"]
    floor = math.log(spec.log_floor) - 0.01
    checks = (
        ("key", shards.key(row), sample_key(info.id)),
        ("phoneme_ids", info.phoneme_ids, ids),
        ("symbols in the index", shards.value("symbols", row), len(ids)),
        ("samples in the index", shards.value("samples", row), len(wave.samples)),
        ("num_samples", info.num_samples, len(wave.samples)),
        ("sample_rate", (info.sample_rate, wave.sample_rate), (spec.sample_rate, spec.sample_rate)),
        ("num_frames", info.num_frames, samples_to_frames(len(wave.samples), spec.hop_length)),
        ("frames in the index", shards.value("frames", row), mel.shape[1]),
        ("speaker", shards.text("speaker", row), info.speaker),
        ("language", shards.text("language", row), info.language),
        ("mel values finite and above the floor", bool(np.isfinite(mel).all() and mel.min() >= floor), True),
    )
    return [f"{name} is {found}, should be {wanted}" for name, found, wanted in checks if found != wanted]


def _check_whole(shards: ShardSet) -> list[Finding]:
    """What holds over the set: unique keys, one split a shard, speakers as listed."""
    manifest, name = shards.manifest, shards.manifest.index.name
    keys = shards.table.column("key").to_pylist()
    findings = [
        Finding(file=name, key=key, message=f"key stands in {number} rows")
        for key, number in Counter(keys).items()
        if number > 1
    ]
    for row in range(len(shards)):
        split = manifest.shards[shards.value("shard", row)].split
        if shards.text("split", row) != split:
            findings.append(Finding(file=name, key=keys[row], message=f"split differs from its shard's {split!r}"))
    dictionaries = (("speaker", manifest.speakers), ("language", manifest.languages))
    for column, names in dictionaries:
        if len(shards) and tuple(shards.table.column(column).chunk(0).dictionary.to_pylist()) != names:
            findings.append(Finding(file=name, key="", message=f"numbers of {column} differ from the manifest's"))
    if manifest.symbols_sha256 != manifest.symbols.digest():
        findings.append(Finding(file="shards.json", key="", message="symbols_sha256 is not that of the symbols"))
    return findings
