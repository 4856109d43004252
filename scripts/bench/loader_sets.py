"""Made shard sets for the benchmark of the loader: speech-like sizes, random content."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataprep.shards.atomic import file_sha256
from dataprep.shards.index import INDEX_NAME, IndexRow, index_table, map_index, number_column, write_index
from dataprep.shards.reader import MANIFEST_NAME, ShardSet
from dataprep.shards.writer import Sample, write_shard
from dataprep.text import SYMBOLS
from schemas.features import HIFIGAN_22K, MelStatistics
from schemas.sample import SampleInfo
from schemas.shards import INDEX_SCHEMA, IndexInfo, ShardInfo, ShardManifest
from scripts.bench.lengths import frames_like_libritts

NUM_MELS = HIFIGAN_22K.num_mels
_SHARD_UTTERANCES = 250
_FLAC_BYTES_PER_FRAME = 230  # 22,050 Hz, 16 bits, at about 45 %


def speech_like_set(folder: Path, num_utterances: int) -> Path:
    """Writes tars of utterances with the lengths of read audiobooks; returns the folder."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    frames = frames_like_libritts(num_utterances)
    rows: list[IndexRow] = []
    shards: list[ShardInfo] = []
    for first in range(0, num_utterances, _SHARD_UTTERANCES):
        samples = [
            _sample(first + place, int(count), random) for place, count in enumerate(frames[first:][:_SHARD_UTTERANCES])
        ]
        path = folder / f"train-{len(shards):06d}.tar"
        placed = write_shard(path, samples, "webdataset", "float32")
        for sample, place in zip(samples, placed, strict=True):
            rows.append(
                IndexRow(
                    key=sample.key, split="train", language="en", speaker="reader", frames=sample.info.num_frames,
                    symbols=len(sample.info.phoneme_ids), samples=sample.info.num_samples, shard=len(shards),
                    row_group=0, row=place.row, json_offset=place.json.offset, json_size=place.json.size,
                    json_crc32=place.json.crc32, flac_offset=place.flac.offset, flac_size=place.flac.size,
                    flac_crc32=place.flac.crc32, mel_offset=place.mel.offset, mel_size=place.mel.size,
                    mel_crc32=place.mel.crc32,
                )
            )  # fmt: skip
        shards.append(
            ShardInfo(
                name=path.name, bytes=path.stat().st_size, sha256=file_sha256(path), split="train",
                utterances=len(samples), frames=sum(sample.info.num_frames for sample in samples),
            )
        )  # fmt: skip
    index = write_index(folder / INDEX_NAME, index_table(rows, ["reader"], ["en"]))
    _write_manifest(folder, shards, index)
    return folder


def large_index(folder: Path, num_rows: int) -> Path:
    """A set whose index has `num_rows` rows that point, again and again, to the same few utterances."""
    small = ShardSet(speech_like_set(folder / "shards", 500))
    rows = np.arange(num_rows) % 500
    columns = []
    for field in INDEX_SCHEMA:
        if field.name == "key":
            columns.append(pa.array([f"utterance-{row}" for row in range(num_rows)], pa.string()))
            continue
        column = small.table.column(field.name).chunk(0)
        columns.append(column.take(pa.array(rows)))
    small.close()
    table = pa.Table.from_batches([pa.RecordBatch.from_arrays(columns, schema=INDEX_SCHEMA)])
    index = write_index(folder / "shards" / INDEX_NAME, table)
    _write_manifest(folder / "shards", list(small.manifest.shards), index)
    return folder / "shards"


def read_mel_sizes(shards: ShardSet) -> tuple[NDArray[np.generic], NDArray[np.generic], list[int]]:
    """Offset and size of each mel, and the number of its shard."""
    table = map_index(shards.folder / shards.manifest.index.name)
    offsets, sizes = (number_column(table, f"mel_{what}") for what in ("offset", "size"))
    return offsets, sizes, number_column(table, "shard").tolist()


def _write_manifest(folder: Path, shards: list[ShardInfo], index: IndexInfo) -> None:
    manifest = ShardManifest(
        container="webdataset", mel_dtype="float32", feature_spec=HIFIGAN_22K, symbols=SYMBOLS,
        symbols_sha256=SYMBOLS.digest(), text_frontend="made", shard_version=1, shard_size_bytes=2**28,
        dataset_fingerprint="0" * 64, speakers=("reader",), languages=("en",),
        mel_statistics=MelStatistics(mean=(0.0,) * NUM_MELS, std=(1.0,) * NUM_MELS), shards=tuple(shards), index=index,
    )  # fmt: skip
    (folder / MANIFEST_NAME).write_bytes(manifest.pretty_json())


def _sample(number: int, num_frames: int, random: np.random.Generator) -> Sample:
    ids = tuple(random.integers(1, len(SYMBOLS.symbols), num_frames // 7 + 1).tolist())
    text = "a made sentence of about as many letters as there are frames " * (num_frames // 400 + 1)
    info = SampleInfo(
        id=f"utterance-{number}", text=text, normalized_text=text,
        phonemes=tuple(SYMBOLS.symbols[place] for place in ids), phoneme_ids=ids, speaker="reader", language="en",
        sample_rate=HIFIGAN_22K.sample_rate, num_samples=num_frames * HIFIGAN_22K.hop_length, num_frames=num_frames,
    )  # fmt: skip
    return Sample(
        key=f"utterance-{number}", info=info, flac=random.bytes(num_frames * _FLAC_BYTES_PER_FRAME),
        mel=random.standard_normal((NUM_MELS, num_frames), dtype=np.float32),
    )  # fmt: skip
