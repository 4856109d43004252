"""Writes one shard, tar or Parquet: samples in, where each landed out."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dataprep.shards.atomic import atomic_file
from dataprep.shards.npy import encode_mel, encode_npy
from dataprep.shards.tar import TarWriter
from schemas.sample import SampleInfo
from schemas.shards import MEMBERS, SHARD_PARQUET_SCHEMA, MelDtype, ShardFormat

PARQUET_ROW_GROUP_ROWS = 16
"""One row read at random costs its row group: 16 utterances of 6 s are about 4 MB."""

SUFFIXES: dict[ShardFormat, str] = {"webdataset": ".tar", "parquet": ".parquet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An utterance as it goes into a shard: mel float32 `[num_mels, num_frames]`."""

    key: str
    info: SampleInfo
    flac: bytes
    mel: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Content of one member or cell: offset in the file (0 in Parquet), size in bytes, CRC-32."""

    offset: int
    size: int
    crc32: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where a sample landed."""

    row_group: int
    row: int
    json: Member
    flac: Member
    mel: Member


def write_shard(path: Path, samples: Iterable[Sample], container: ShardFormat, dtype: MelDtype) -> list[Placed]:
    """Writes a shard atomically; one sample, or one row group of Parquet, is in memory at a time."""
    write = _write_tar if container == "webdataset" else _write_parquet
    return write(path, samples, dtype)


def _member(content: bytes, offset: int) -> Member:
    return Member(offset=offset, size=len(content), crc32=zlib.crc32(content))


def _write_tar(path: Path, samples: Iterable[Sample], dtype: MelDtype) -> list[Placed]:
    placed: list[Placed] = []
    with atomic_file(path) as handle:
        tar = TarWriter(handle)
        for row, sample in enumerate(samples):
            contents = [sample.flac, sample.info.canonical_json()]
            if dtype != "none":
                contents.append(encode_npy(sample.mel, dtype))
            written = [
                _member(content, tar.add(f"{sample.key}.{suffix}", content))
                for suffix, content in zip(MEMBERS, contents, strict=False)
            ]
            flac, json_, mel = [*written, _member(b"", 0)][:3]
            placed.append(Placed(row_group=0, row=row, json=json_, flac=flac, mel=mel))
        tar.finish()
    return placed


def _write_parquet(path: Path, samples: Iterable[Sample], dtype: MelDtype) -> list[Placed]:
    placed: list[Placed] = []
    group: list[dict[str, object]] = []
    with ExitStack() as stack:
        handle = stack.enter_context(atomic_file(path))
        writer = stack.enter_context(
            pq.ParquetWriter(
                handle, SHARD_PARQUET_SCHEMA, compression="none", use_dictionary=False, write_statistics=["key"]
            )
        )
        for sample in samples:
            content = sample.info.canonical_json()
            mel = b"" if dtype == "none" else encode_mel(sample.mel, dtype)
            members = (_member(content, 0), _member(sample.flac, 0), _member(mel, 0))
            number, row = divmod(len(placed), PARQUET_ROW_GROUP_ROWS)
            placed.append(Placed(row_group=number, row=row, json=members[0], flac=members[1], mel=members[2]))
            group.append(_parquet_row(sample, content, mel))
            if len(group) == PARQUET_ROW_GROUP_ROWS:
                writer.write_table(pa.Table.from_pylist(group, schema=SHARD_PARQUET_SCHEMA))
                group = []
        if group:
            writer.write_table(pa.Table.from_pylist(group, schema=SHARD_PARQUET_SCHEMA))
    return placed


def _parquet_row(sample: Sample, content: bytes, mel: bytes) -> dict[str, object]:
    info = sample.info
    return {
        "key": sample.key,
        "json": content,
        "flac": sample.flac,
        "mel": mel,
        "num_frames": info.num_frames,
        "text": info.text,
        "phonemes": info.phonemes,
        "phoneme_ids": info.phoneme_ids,
        "speaker": info.speaker,
        "language": info.language,
    }
