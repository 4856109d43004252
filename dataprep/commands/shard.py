"""`dataprep shard`: prepared utterances -> shard plan -> shards -> index -> manifest."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dataprep.engine import Workers, run_tasks
from dataprep.progress import progress
from dataprep.shards.atomic import sweep, write_atomic
from dataprep.shards.index import INDEX_NAME, index_table, write_index
from dataprep.shards.npy import npy_size
from dataprep.shards.plan import plan_shards
from dataprep.shards.prepared import DATASET_NAME, PreparedSet
from dataprep.shards.reader import MANIFEST_NAME
from dataprep.shards.tar import member_size
from dataprep.shards.writer import SUFFIXES
from dataprep.tasks.shard import SHARD_VERSION, STATE_FOLDER, PartRows, ShardResult, ShardTask, shard_slice
from schemas.errors import FormatError, UsageError
from schemas.features import PRESETS, FeatureSpec, MelStatistics
from schemas.shards import MelDtype, ShardFormat, ShardManifest
from schemas.units import samples_to_frames
from schemas.utterance import SPLITS

_SHARD_FILE = re.compile(r"(train|validation|test)-\d{6}\.(tar|parquet)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOptions:
    """How to shard."""

    container: ShardFormat
    spec: FeatureSpec
    mel_dtype: MelDtype
    shard_size_bytes: int


def shard_options(container: str, preset: str, mel_dtype: str, shard_size_bytes: int) -> ShardOptions:
    """Options as typed, checked. Raises UsageError for a preset that there is not."""
    if preset not in PRESETS:
        raise UsageError(f"no preset {preset!r}", hint="there are: " + ", ".join(PRESETS))
    formats: dict[str, ShardFormat] = {"webdataset": "webdataset", "parquet": "parquet"}
    dtypes: dict[str, MelDtype] = {"float32": "float32", "float16": "float16", "none": "none"}
    return ShardOptions(
        container=formats[container],
        spec=PRESETS[preset],
        mel_dtype=dtypes[mel_dtype],
        shard_size_bytes=shard_size_bytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOutcome:
    """The shard set, and whether it was there already."""

    manifest: ShardManifest
    was_current: bool


def shard(prepared: Path, out: Path, options: ShardOptions, workers: Workers) -> ShardOutcome:
    """Writes the utterances of `prepared` as a shard set in `out`.

    Raises:
        UsageError: the preset wants another sample rate than the data set has.
        FormatError: the data set is incomplete or damaged.
        MachineError, OSError: the machine failed; the same command continues.
    """
    dataset = PreparedSet.open(prepared)
    _check_sample_rate(dataset, options.spec)
    current = _current(dataset, out, options)
    if current is not None:
        return ShardOutcome(manifest=current, was_current=True)
    (out / MANIFEST_NAME).unlink(
        missing_ok=True
    )  # from here on the folder is not a shard set until the new one is written
    sweep(out)
    table = dataset.table().sort_by([("id", "ascending")])
    tasks = _tasks(dataset, table, out, options)
    with progress("shard", [sum(len(part.rows) for part in task.parts) for task in tasks], "utterances") as on_done:
        results = run_tasks(shard_slice, tasks, workers, on_done)
    manifest = _write_manifest(dataset, table, out, options, results)
    _remove_stale(out, manifest)
    sweep(out)  # workers of a killed run may have been alive at the first sweep
    return ShardOutcome(manifest=manifest, was_current=False)


def _check_sample_rate(dataset: PreparedSet, spec: FeatureSpec) -> None:
    rate = dataset.manifest.config.sample_rate
    if rate != spec.sample_rate:
        raise UsageError(
            f"preset {spec.name!r} wants {spec.sample_rate} Hz, the data set is at {rate} Hz",
            hint=f"run `dataprep ingest` again with --sr {spec.sample_rate}" + _fitting_presets(rate),
            path=dataset.folder / DATASET_NAME,
        )


def _fitting_presets(sample_rate: int) -> str:
    names = [name for name, spec in PRESETS.items() if spec.sample_rate == sample_rate]
    return f", or choose --preset {' or '.join(names)}" if names else ""


def _current(dataset: PreparedSet, out: Path, options: ShardOptions) -> ShardManifest | None:
    """The manifest in `out`, if it is of this data set and these options and its files are there in full length."""
    try:
        manifest = ShardManifest.read(out / MANIFEST_NAME)
    except FormatError:
        return None
    found = ShardOptions(
        container=manifest.container,
        spec=manifest.feature_spec,
        mel_dtype=manifest.mel_dtype,
        shard_size_bytes=manifest.shard_size_bytes,
    )
    identity = (manifest.dataset_fingerprint, manifest.shard_version)
    same = identity == (dataset.manifest.fingerprint, SHARD_VERSION) and found == options
    files = (*manifest.shards, manifest.index)
    whole = all((out / file.name).is_file() and (out / file.name).stat().st_size == file.bytes for file in files)
    return manifest if same and whole else None


def _tasks(dataset: PreparedSet, table: pa.Table, out: Path, options: ShardOptions) -> list[ShardTask]:
    sizes = _sizes(table, options)
    splits = np.array(table.column("split").to_pylist(), dtype=object)
    parts, rows = table.column("part").to_numpy(), table.column("row").to_numpy()
    tasks: list[ShardTask] = []
    for split in SPLITS:
        places = np.flatnonzero(splits == split)
        for number, piece in enumerate(plan_shards(sizes[places].tolist(), options.shard_size_bytes)):
            chosen = places[piece.start : piece.stop]
            runs = groupby(zip(parts[chosen].tolist(), rows[chosen].tolist(), strict=True), key=lambda pair: pair[0])
            tasks.append(
                ShardTask(
                    number=len(tasks), name=f"{split}-{number:06d}{SUFFIXES[options.container]}", split=split,
                    parts=tuple(_part_rows(dataset, part, [row for _, row in pairs]) for part, pairs in runs),
                    spec=options.spec, container=options.container, mel_dtype=options.mel_dtype, out=out.absolute(),
                )
            )  # fmt: skip
    return tasks


def _part_rows(dataset: PreparedSet, part: int, rows: list[int]) -> PartRows:
    info = dataset.manifest.parts[part]
    return PartRows(path=dataset.folder.absolute() / info.name, sha256=info.sha256, rows=tuple(rows))


def _sizes(table: pa.Table, options: ShardOptions) -> NDArray[np.int64]:
    """Bytes of each utterance in a shard, int64 `[num_rows]`; of the JSON an estimate from its texts."""
    hop = options.spec.hop_length
    frames = [samples_to_frames(number, hop) for number in table.column("num_samples").to_pylist()]
    symbols = pc.list_value_length(table.column("phonemes")).to_numpy(zero_copy_only=False)
    texts = sum(
        pc.binary_length(table.column(name)).to_numpy(zero_copy_only=False) for name in ("text", "normalized_text")
    )
    json_bytes = texts + 12 * symbols + 256
    flac_bytes = table.column("num_audio_bytes").to_numpy()
    mel_bytes = [npy_size(options.spec.num_mels, number, options.mel_dtype) for number in frames]
    triples = zip(json_bytes.tolist(), flac_bytes.tolist(), mel_bytes, strict=True)
    return np.array([sum(member_size(size) for size in triple if size) for triple in triples], dtype=np.int64)


def _write_manifest(
    dataset: PreparedSet, table: pa.Table, out: Path, options: ShardOptions, results: Sequence[ShardResult]
) -> ShardManifest:
    speakers = tuple(sorted(set(table.column("speaker").to_pylist())))
    languages = tuple(sorted(set(table.column("language").to_pylist())))
    rows = [row for result in results for row in result.rows]
    index = write_index(out / INDEX_NAME, index_table(rows, speakers, languages))
    manifest = ShardManifest(
        container=options.container,
        mel_dtype=options.mel_dtype,
        feature_spec=options.spec,
        symbols=dataset.manifest.symbols,
        symbols_sha256=dataset.manifest.symbols_sha256,
        text_frontend=dataset.manifest.text_frontend,
        shard_version=SHARD_VERSION,
        shard_size_bytes=options.shard_size_bytes,
        dataset_fingerprint=dataset.manifest.fingerprint,
        speakers=speakers,
        languages=languages,
        mel_statistics=mel_statistics([result for result in results if result.info.split == "train"]),
        shards=tuple(result.info for result in results),
        index=index,
    )
    write_atomic(out / MANIFEST_NAME, manifest.pretty_json())
    return manifest


def mel_statistics(results: Sequence[ShardResult]) -> MelStatistics | None:
    """Mean and standard deviation of each band over all frames of `results`; None where there are none."""
    frames = sum(result.info.frames for result in results)
    if frames == 0:
        return None
    mean = np.sum([result.mel_sum for result in results], axis=0) / frames
    variance = np.sum([result.mel_square_sum for result in results], axis=0) / frames - mean**2
    std = np.maximum(np.sqrt(np.maximum(variance, 0.0)), 1e-3)
    return MelStatistics(mean=tuple(mean.tolist()), std=tuple(std.tolist()))


def _remove_stale(out: Path, manifest: ShardManifest) -> None:
    current = {info.name for info in manifest.shards}
    for path in out.iterdir():
        if _SHARD_FILE.fullmatch(path.name) and path.name not in current:
            path.unlink()
    shutil.rmtree(out / STATE_FOLDER, ignore_errors=True)
