"""Utterances of prepared parts to one shard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataprep.audio import decode_flac
from dataprep.features.mel import log_mel
from dataprep.shards.atomic import file_sha256, write_atomic
from dataprep.shards.index import IndexRow
from dataprep.shards.keys import sample_key
from dataprep.shards.parts import part_key, read_part
from dataprep.shards.writer import Placed, Sample, write_shard
from schemas.base import canonical_json
from schemas.errors import FormatError
from schemas.features import FeatureSpec
from schemas.sample import SampleInfo
from schemas.shards import MelDtype, ShardFormat, ShardInfo
from schemas.units import samples_to_frames
from schemas.utterance import Split, Utterance

STATE_FOLDER = ".unfinished"
SHARD_VERSION = 2
"""Raised whenever the same input gives other bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRows:
    """Some rows of a part, in order; `sha256` is the part's hash."""

    path: Path
    sha256: str
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardTask:
    """A shard to write: which utterances, in order, and how."""

    number: int
    name: str
    split: Split
    parts: tuple[PartRows, ...]
    spec: FeatureSpec
    container: ShardFormat
    mel_dtype: MelDtype
    out: Path

    def digest(self) -> str:
        """Identity of the shard's content, whatever the folder it is written in."""
        sources = [[part.path.name, part.sha256, part.rows] for part in self.parts]
        how = [self.spec.model_dump(mode="json"), self.container, self.mel_dtype]
        return part_key(SHARD_VERSION, self.number, self.name, self.split, how, sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardResult:
    """A finished shard: its entry, its rows of the index, and sums over its frames for the mel statistics."""

    info: ShardInfo
    rows: list[IndexRow]
    mel_sum: list[float]
    mel_square_sum: list[float]

    def to_json(self) -> bytes:
        """For the folder of an unfinished run."""
        return canonical_json({**asdict(self), "info": self.info.model_dump(mode="json")})

    @classmethod
    def from_json(cls, content: bytes) -> ShardResult:
        """Reads what `to_json` wrote. Raises ValueError, TypeError or KeyError where it did not."""
        fields = json.loads(content)
        return cls(
            info=ShardInfo.model_validate(fields["info"]),
            rows=[IndexRow(**row) for row in fields["rows"]],
            mel_sum=fields["mel_sum"],
            mel_square_sum=fields["mel_square_sum"],
        )


@dataclass(slots=True)
class _Sums:
    """Sums over frames in double precision, `[num_mels]`, and what the index needs of each sample."""

    total: NDArray[np.float64]
    squares: NDArray[np.float64]
    written: list[tuple[str, SampleInfo]] = field(default_factory=list)


def shard_slice(task: ShardTask) -> ShardResult:
    """Writes the shard, or finds that an unfinished run wrote it already.

    Raises:
        FormatError: a part is damaged.
        OSError: the machine fails to write.
    """
    path = task.out / task.name
    state = task.out / STATE_FOLDER / f"{task.digest()}.json"
    earlier = _finished(state, path)
    if earlier is not None:
        return earlier
    sums = _Sums(np.zeros(task.spec.num_mels), np.zeros(task.spec.num_mels))
    placed = write_shard(path, _samples(task, sums), task.container, task.mel_dtype)
    rows = [_index_row(task, key, info, place) for (key, info), place in zip(sums.written, placed, strict=True)]
    info = ShardInfo(
        name=task.name, bytes=path.stat().st_size, sha256=file_sha256(path), split=task.split,
        utterances=len(rows), frames=sum(row.frames for row in rows),
    )  # fmt: skip
    result = ShardResult(info=info, rows=rows, mel_sum=sums.total.tolist(), mel_square_sum=sums.squares.tolist())
    write_atomic(state, result.to_json())
    return result


def _finished(state: Path, path: Path) -> ShardResult | None:
    """What an unfinished run noted of the shard, if the note is whole and the shard is what it says."""
    try:
        result = ShardResult.from_json(state.read_bytes())
        return result if result.info.sha256 == file_sha256(path) else None
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None  # no note, or a damaged one: the shard is written again


def _samples(task: ShardTask, sums: _Sums) -> Iterator[Sample]:
    for part in task.parts:
        if file_sha256(part.path) != part.sha256:
            raise FormatError(
                "is not the file that dataset.json names", hint="run `dataprep ingest` again", path=part.path
            )
        table = read_part(part.path, memory_map=True).take(pa.array(part.rows, pa.int64()))
        for batch in table.to_batches(max_chunksize=1):
            utterance = Utterance.model_validate(batch.to_pylist()[0])
            mel = log_mel(decode_flac(utterance.audio).samples, task.spec)
            sums.total += mel.sum(axis=1, dtype=np.float64)
            sums.squares += np.square(mel, dtype=np.float64).sum(axis=1)
            info = sample_info(utterance, task.spec)
            key = sample_key(utterance.id)
            sums.written.append((key, info))
            yield Sample(key=key, info=info, flac=utterance.audio, mel=mel)


def sample_info(utterance: Utterance, spec: FeatureSpec) -> SampleInfo:
    """The JSON member of an utterance."""
    return SampleInfo(
        id=utterance.id,
        text=utterance.text,
        normalized_text=utterance.normalized_text,
        phonemes=utterance.phonemes,
        phoneme_ids=utterance.phoneme_ids,
        speaker=utterance.speaker,
        language=utterance.language,
        sample_rate=utterance.sample_rate,
        num_samples=utterance.num_samples,
        num_frames=samples_to_frames(utterance.num_samples, spec.hop_length),
    )


def _index_row(task: ShardTask, key: str, info: SampleInfo, placed: Placed) -> IndexRow:
    return IndexRow(
        key=key, split=task.split, language=info.language, speaker=info.speaker,
        frames=info.num_frames, symbols=len(info.phoneme_ids), samples=info.num_samples,
        shard=task.number, row_group=placed.row_group, row=placed.row,
        json_offset=placed.json.offset, json_size=placed.json.size, json_crc32=placed.json.crc32,
        flac_offset=placed.flac.offset, flac_size=placed.flac.size, flac_crc32=placed.flac.crc32,
        mel_offset=placed.mel.offset, mel_size=placed.mel.size, mel_crc32=placed.mel.crc32,
    )  # fmt: skip
