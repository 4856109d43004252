"""`ShardSet`: random access to the utterances of a shard set by their row in the index, tar and Parquet alike."""

from __future__ import annotations

import os
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dataprep.shards.atomic import file_sha256
from dataprep.shards.index import map_index, number_column
from dataprep.shards.npy import NPY_HEADER_BYTES, decode_mel
from schemas.errors import FormatError
from schemas.sample import SampleInfo
from schemas.shards import ShardManifest
from schemas.utterance import SPLITS, Split

MANIFEST_NAME = "shards.json"
_MAX_OPEN_FILES = 64
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
    forked opens its own.

    Args:
        folder: the folder with `shards.json`.

    Raises:
        FormatError: no manifest, another version, or an index that is missing or not the one that the manifest names.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = ShardManifest.read(folder / MANIFEST_NAME)
        self._check_index()
        self._open()

    def _check_index(self) -> None:
        path, stated = self.folder / self.manifest.index.name, self.manifest.index.sha256
        found = file_sha256(path) if path.is_file() else "nothing"
        if found != stated:
            raise FormatError(
                f"has SHA-256 {found[:12]}, the manifest says {stated[:12]}: the index is missing or damaged",
                hint="make it again with `dataprep shard`",
                path=path,
            )

    def _open(self) -> None:
        path = self.folder / self.manifest.index.name
        self.table = map_index(path)
        if self.table.num_rows != self.manifest.index.rows:
            raise FormatError(
                f"has {self.table.num_rows} rows, the manifest says {self.manifest.index.rows}",
                hint=_DAMAGED,
                path=path,
            )
        self._files: OrderedDict[int, int | pq.ParquetFile] = OrderedDict()
        self._row_group: tuple[int, int, pa.Table] | None = None
        self._pid = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "manifest": self.manifest}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.folder, self.manifest = state["folder"], state["manifest"]
        self._open()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def index_sha256(self) -> str:
        """Hash of the index: the identity of the shard set."""
        return self.manifest.index.sha256

    @property
    def columns(self) -> IndexColumns:
        """The columns that planning needs, without a copy."""
        names = ("frames", "symbols", "samples", "split", "language", "speaker", "shard")
        arrays: dict[str, Any] = {name: number_column(self.table, name) for name in names}
        return IndexColumns(**arrays)

    def rows_of(self, split: Split) -> NDArray[np.int64]:
        """Rows of a split, int64 `[num_rows]`, in the order of the index."""
        return np.flatnonzero(number_column(self.table, "split") == SPLITS.index(split)).astype(np.int64)

    def key(self, row: int) -> str:
        """Key of the utterance in a row."""
        return str(self.table.column("key")[row].as_py())

    def value(self, name: str, row: int) -> int:
        """A number of the index."""
        scalar = self.table.column(name)[row]
        return int(scalar.as_py())

    def text(self, name: str, row: int) -> str:
        """A word of the index: split, language or speaker."""
        return str(self.table.column(name)[row].as_py())

    def read_info(self, row: int) -> SampleInfo:
        """Text, phonemes and lengths of an utterance. Raises FormatError where the bytes are not those indexed."""
        return SampleInfo.model_validate_json(self.read_member("json", row))

    def read_mel(self, row: int) -> NDArray[np.float32]:
        """Natural-log mel, float32 `[num_mels, num_frames]`. Raises FormatError as `read_member` does."""
        header = NPY_HEADER_BYTES if self.manifest.container == "webdataset" else 0
        return decode_mel(
            self.read_member("mel", row), self.manifest.feature_spec.num_mels, self.value("frames", row),
            self.manifest.mel_dtype, header_bytes=header,
        )  # fmt: skip

    def read_audio(self, row: int) -> NDArray[np.float32]:
        """The recording, float32 `[num_samples]`. Raises FormatError where the bytes are not those indexed."""
        from dataprep.audio import decode_flac

        samples: NDArray[np.float32] = decode_flac(self.read_member("flac", row)).samples
        return samples

    def read_member(self, member: str, row: int) -> bytes:
        """Bytes of the member `json`, `flac` or `mel` of an utterance, checked against the index.

        Raises:
            FormatError: the shard is missing or ends early, or the checksum differs; names shard and key.
        """
        shard = self.value("shard", row)
        path = self.folder / self.manifest.shards[shard].name
        try:
            content = self._read(member, row, shard)
        except (OSError, pa.ArrowInvalid, IndexError) as error:
            raise FormatError(f"{self.key(row)}.{member} cannot be read: {error}", hint=_DAMAGED, path=path) from error
        if zlib.crc32(content) != self.value(f"{member}_crc32", row):
            raise FormatError(
                f"{self.key(row)}.{member} differs from its checksum in the index", hint=_DAMAGED, path=path
            )
        return content

    def _read(self, member: str, row: int, shard: int) -> bytes:
        file = self._file(shard)
        if isinstance(file, int):
            return os.pread(file, self.value(f"{member}_size", row), self.value(f"{member}_offset", row))
        group = self.value("row_group", row)
        if self._row_group is None or self._row_group[:2] != (shard, group):
            self._row_group = (shard, group, file.read_row_group(group, columns=["json", "flac", "mel"]))
        content: bytes = self._row_group[2].column(member)[self.value("row", row)].as_py()
        return content

    def _file(self, shard: int) -> int | pq.ParquetFile:
        if self._pid != os.getpid():
            self._files, self._row_group, self._pid = OrderedDict(), None, os.getpid()
        if shard not in self._files:
            if len(self._files) >= _MAX_OPEN_FILES:
                self._close(self._files.popitem(last=False)[1])
            path = self.folder / self.manifest.shards[shard].name
            tar = self.manifest.container == "webdataset"
            self._files[shard] = os.open(path, os.O_RDONLY) if tar else pq.ParquetFile(path)
        self._files.move_to_end(shard)
        return self._files[shard]

    @staticmethod
    def _close(file: int | pq.ParquetFile) -> None:
        if isinstance(file, int):
            os.close(file)
        else:
            file.close()

    def close(self) -> None:
        """Closes what is open; reading opens it again."""
        while self._files:
            self._close(self._files.popitem()[1])
        self._row_group = None
