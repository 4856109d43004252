"""`ShardSet`: random access to the utterances of a shard set by their row in the index, tar and Parquet alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataprep.shards.atomic import file_sha256
from dataprep.shards.cache import CacheSettings
from dataprep.shards.files import ShardFiles
from dataprep.shards.index import map_index, number_column
from dataprep.shards.members import Content, Loaded, MemberColumns, Scratch, fresh, iter_members, wanted
from dataprep.shards.npy import NPY_HEADER_BYTES, view_mel
from dataprep.shards.samples import LoadedSample, phoneme_ids_of, samples_of, write_padded
from dataprep.shards.storage import Storage, open_storage
from schemas.errors import AudioError, FormatError
from schemas.sample import SampleInfo
from schemas.shards import ShardManifest
from schemas.utterance import SPLITS, Split

MANIFEST_NAME = "shards.json"
_HASHED_BYTES = 2**30
"""An index up to this size is hashed when it is opened: 0.3 s. Of a larger one only size and rows are compared."""
_DAMAGED = "run `dataprep validate` on the folder to see what else is damaged, then `dataprep shard` again"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexColumns:
    """Columns of the index as numpy arrays `[num_rows]`."""

    frames: NDArray[np.uint32]
    symbols: NDArray[np.uint32]
    samples: NDArray[np.uint32]
    split: NDArray[np.int8]
    language: NDArray[np.int8]
    speaker: NDArray[np.int32]
    shard: NDArray[np.uint32]


class ShardSet:
    """A shard set, opened.

    Files are opened when first read, in the process that reads, and at most 64 at a time; a copy that was pickled or
    forked opens its own. An index of over 1 GiB is not hashed here: `dataprep validate` does that.

    Args:
        location: the folder with `shards.json`, or its URL, such as `s3://bucket/shards`.
        cache: where copies of far-away files are kept.

    Raises:
        FormatError: no manifest, another version, or an index that is missing or not the one that the manifest names.
        MachineError, UsageError: the URL cannot be reached, or not with these credentials.
    """

    def __init__(self, location: Path | str, cache: CacheSettings | None = None) -> None:
        self.storage: Storage = open_storage(location, cache)
        if self.storage.is_remote:
            self.manifest = self._read_manifest()
        else:
            self.manifest = ShardManifest.read(Path(location) / MANIFEST_NAME)
            self._check_index(Path(location) / self.manifest.index.name)
        self._open()

    @property
    def folder(self) -> Path:
        """The folder of a shard set on this machine."""
        return Path(self.location)

    def _read_manifest(self) -> ShardManifest:
        try:
            content = json.loads(self.storage.read_file(MANIFEST_NAME))
        except ValueError as error:
            raise FormatError(f"cannot be read as JSON: {error}", path=f"{self.location}/{MANIFEST_NAME}") from error
        return ShardManifest.from_content(content, f"{self.location}/{MANIFEST_NAME}")

    def _check_index(self, path: Path) -> None:
        info = self.manifest.index
        stated = info.sha256
        if path.is_file() and path.stat().st_size == info.bytes > _HASHED_BYTES:
            return
        found = file_sha256(path) if path.is_file() else "nothing"
        if found != stated:
            raise FormatError(
                f"has SHA-256 {found[:12]}, the manifest says {stated[:12]}: the index is missing or damaged",
                hint="make it again with `dataprep shard`",
                path=path,
            )

    def _open(self) -> None:
        path = self.storage.local_file(self.manifest.index)
        self.storage.told_size(sum(info.bytes for info in (*self.manifest.shards, self.manifest.index)))
        self.table = map_index(path)
        if self.table.num_rows != self.manifest.index.rows:
            raise FormatError(
                f"has {self.table.num_rows} rows, the manifest says {self.manifest.index.rows}",
                hint=_DAMAGED,
                path=path,
            )
        self._files = ShardFiles(self.storage, self.manifest.shards)
        self._numbers: dict[str, NDArray[Any]] = {}
        self._scratch = Scratch()

    def __getstate__(self) -> dict[str, Any]:
        return {"storage": self.storage, "manifest": self.manifest}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.storage, self.manifest = state["storage"], state["manifest"]
        self._open()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def location(self) -> str:
        """The folder or URL, for messages."""
        return self.storage.location

    @property
    def index_sha256(self) -> str:
        """Hash of the index: the identity of the shard set."""
        return self.manifest.index.sha256

    @property
    def columns(self) -> IndexColumns:
        """The columns that planning needs, without a copy."""
        names = ("frames", "symbols", "samples", "split", "language", "speaker", "shard")
        return IndexColumns(**{name: self._column(name) for name in names})

    def _column(self, name: str) -> NDArray[Any]:
        """A number column, or the codes of a dictionary column, without a copy."""
        if name not in self._numbers:
            self._numbers[name] = number_column(self.table, name)
        return self._numbers[name]

    def rows_of(self, split: Split) -> NDArray[np.int64]:
        """Rows of a split, int64 `[num_rows]`, in the order of the index."""
        return np.flatnonzero(self._column("split") == SPLITS.index(split)).astype(np.int64)

    def key(self, row: int) -> str:
        """Key of the utterance in a row."""
        return str(self.table.column("key")[row].as_py())

    def keys(self, rows: NDArray[np.int64]) -> list[str]:
        """Keys of the utterances in some rows."""
        column = self.table.column("key")
        if column.num_chunks != 1:  # more than 2 GiB of keys; Arrow would put them together first
            return [str(column[row].as_py()) for row in rows.tolist()]
        keys: list[str] = column.chunk(0).take(pa.array(rows)).to_pylist()
        return keys

    def value(self, name: str, row: int) -> int:
        """A number of the index."""
        return int(self._column(name)[row])

    def text(self, name: str, row: int) -> str:
        """A word of the index: split, language or speaker."""
        return str(self.table.column(name)[row].as_py())

    def read_info(self, row: int) -> SampleInfo:
        """Text, phonemes and lengths of an utterance. Raises FormatError where the bytes are not those indexed."""
        return SampleInfo.model_validate_json(self.read_member("json", row))

    def read_mel(self, row: int) -> NDArray[np.float32]:
        """Natural-log mel, float32 `[num_mels, num_frames]`, computed from the recording where none is stored.

        Raises FormatError as `read_member` does.
        """
        return np.array(self._mel(self.read_member(self._mel_source, row), self.value("frames", row)), dtype=np.float32)

    def read_audio(self, row: int) -> NDArray[np.float32]:
        """The recording, float32 `[num_samples]`. Raises FormatError where the bytes are not those indexed."""
        return samples_of(self.read_member("flac", row))

    def read_member(self, member: str, row: int) -> bytes:
        """Bytes of the member `json`, `flac` or `mel` of an utterance, checked against the index.

        Raises:
            FormatError: the shard is missing or ends early, or the checksum differs; names shard and key.
        """
        content = self._contents((member,), np.array([row]))[0]
        if isinstance(content, FormatError):
            raise content
        return bytes(content)

    def read_batch(
        self, rows: NDArray[np.int64], *, mel: bool = True, audio: bool = False
    ) -> list[LoadedSample | FormatError]:
        """Utterances in the order of `rows`; in the place of one that cannot be read, its error.

        Members are read in the order in which they lie in the shards, neighbours at once, and none that was not asked
        for.

        Raises:
            MachineError: the shards cannot be reached.
        """
        members = ["json"]
        if audio or (mel and self._mel_source == "flac"):
            members.append("flac")
        if mel and self._mel_source == "mel":
            members.append("mel")
        contents = self._contents(members, rows)
        return [
            self._sample(row, dict(zip(members, contents[place :: len(rows)], strict=True)), mel=mel, audio=audio)
            for place, row in enumerate(rows.tolist())
        ]

    def read_padded(
        self, rows: NDArray[np.int64], out: Sequence[NDArray[np.float32]]
    ) -> list[NDArray[np.int64] | FormatError]:
        """Symbol ids of utterances; their mels go to the start of arrays `[num_mels, at least T]`, zeros behind.

        In the place of an utterance that cannot be read is its error. What is read is written on at once, while it is
        in the processor's cache.

        Raises:
            MachineError: the shards cannot be reached.
        """
        count, num_frames = len(rows), self._column("frames")[rows].tolist()
        found: list[NDArray[np.int64] | None] = [None] * count
        errors: dict[int, FormatError] = {}
        members = ("json", self._mel_source)
        for place, content in self._iter_contents(members, rows, self._scratch):
            try:
                if isinstance(content, FormatError):
                    errors.setdefault(place % count, content)
                elif place < count:
                    found[place] = phoneme_ids_of(bytes(content))
                else:
                    write_padded(self._mel(content, num_frames[place - count]), out[place - count])
            except (FormatError, AudioError, ValueError) as error:
                member, at = divmod(place, count)
                fault = self._fault(members[member], int(rows[at]), f"cannot be used: {error}")
                errors.setdefault(at, fault)
        return [errors.get(place) or cast("NDArray[np.int64]", ids) for place, ids in enumerate(found)]

    @property
    def _mel_source(self) -> str:
        return "flac" if self.manifest.mel_dtype == "none" else "mel"

    def _sample(self, row: int, members: dict[str, Loaded], *, mel: bool, audio: bool) -> LoadedSample | FormatError:
        for content in members.values():
            if isinstance(content, FormatError):
                return content
        whole = cast("dict[str, Content]", members)
        try:
            return LoadedSample(
                phoneme_ids=phoneme_ids_of(bytes(whole["json"])),
                mel=self._mel(whole[self._mel_source], self.value("frames", row)) if mel else None,
                samples=samples_of(whole["flac"]) if audio else None,
            )
        except (FormatError, AudioError) as error:
            return self._fault("flac" if isinstance(error, AudioError) else "mel", row, error.message)
        except (ValueError, KeyError, TypeError) as error:  # JSON that is whole but not ours
            return self._fault("json", row, f"is not what `dataprep shard` writes: {error}")

    def _mel(self, content: Content, num_frames: int) -> NDArray[np.floating[Any]]:
        manifest = self.manifest
        if manifest.mel_dtype == "none":
            from dataprep.features.mel import log_mel

            mel = log_mel(samples_of(content), manifest.feature_spec)
            if mel.shape[1] != num_frames:
                raise FormatError(f"the recording has {mel.shape[1]} frames, the index says {num_frames}")
            return mel
        header = NPY_HEADER_BYTES if manifest.container == "webdataset" else 0
        return view_mel(content, manifest.feature_spec.num_mels, num_frames, manifest.mel_dtype, header_bytes=header)

    def _contents(self, members: Sequence[str], rows: NDArray[np.int64]) -> list[Loaded]:
        """Contents of each member of each row, member by member."""
        loaded = dict(self._iter_contents(members, rows, fresh))
        return [loaded[place] for place in range(len(members) * len(rows))]

    def _iter_contents(
        self, members: Sequence[str], rows: NDArray[np.int64], room: Callable[[int], memoryview]
    ) -> Iterator[tuple[int, Loaded]]:
        """Contents in the order in which they lie; places count all rows of the first member, then of the next."""
        is_tar = self.manifest.container == "webdataset"
        columns = []
        for member in members:
            names = (f"{member}_offset", f"{member}_size") if is_tar else ("row_group", "row")
            columns.append(MemberColumns(*(self._column(name) for name in (*names, f"{member}_crc32"))))

        def fault(place: int, what: str) -> FormatError:
            member, at = divmod(place, len(rows))
            return self._fault(members[member], int(rows[at]), what)

        where = wanted(rows, self._column("shard"), columns)
        return iter_members(self._files, where, () if is_tar else members, fault=fault, room=room)

    def _fault(self, member: str, row: int, what: str) -> FormatError:
        path = f"{self.location}/{self.manifest.shards[self.value('shard', row)].name}"
        return FormatError(f"{self.key(row)}.{member} {what}", hint=_DAMAGED, path=path)

    def close(self) -> None:
        """Closes what is open; reading opens it again."""
        self._files.close()
