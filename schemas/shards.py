"""`shards.json` and `index.arrow`: a shard set and where each utterance lies in it."""

from __future__ import annotations

from typing import ClassVar, Literal

import pyarrow as pa
from pydantic import Field

from schemas.base import VersionedFile
from schemas.dataset import FileInfo
from schemas.features import FeatureSpec, MelStatistics
from schemas.symbols import SymbolTable

ShardFormat = Literal["webdataset", "parquet"]
MelDtype = Literal["float32", "float16", "none"]


class ShardInfo(FileInfo):
    """One tar or Parquet file."""

    split: Literal["train", "validation", "test"] = Field(description="the split that all its utterances belong to")
    utterances: int = Field(description="utterances in it", ge=0)
    frames: int = Field(description="mel frames in it", ge=0)


class IndexInfo(FileInfo):
    """`index.arrow`."""

    rows: int = Field(description="utterances in the shard set", ge=0)


class ShardManifest(VersionedFile):
    """`shards.json`."""

    made_by: ClassVar[str] = "`dataprep shard`"

    format: Literal["voxloom-shards"] = Field("voxloom-shards", description="what this file is")
    version: Literal[1] = Field(1, description="version of the format")
    container: ShardFormat = Field(description="how the utterances are stored")
    mel_dtype: MelDtype = Field(
        description="number format of the stored mels; none where they are computed from the recording"
    )
    feature_spec: FeatureSpec = Field(description="what the mels are")
    symbols: SymbolTable = Field(description="the symbol table")
    symbols_sha256: str = Field(description="fingerprint of the symbol table")
    text_frontend: str = Field(description="version of the rules that turn text into symbols")
    shard_version: int = Field(description="version of the rules that turn a row of a part into a sample")
    shard_size_bytes: int = Field(description="the largest shard wanted, in bytes", gt=0)
    dataset_fingerprint: str = Field(description="identity of the prepared data set")
    speakers: tuple[str, ...] = Field(description="speakers by number, sorted by name")
    languages: tuple[str, ...] = Field(description="languages by number, sorted by name")
    mel_statistics: MelStatistics | None = Field(description="over the training split; null where that is empty")
    shards: tuple[ShardInfo, ...] = Field(description="the shards; the place in the list is the number in the index")
    index: IndexInfo = Field(description="`index.arrow`")


MEMBERS: tuple[str, str, str] = ("flac", "json", "mel.npy")
"""Members of a sample in a tar, in this order, side by side; no mel where `mel_dtype` is none. The JSON is in the
middle, so that it is one read with the mel, and one with the recording."""

INDEX_SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("split", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("language", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("speaker", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("frames", pa.uint32(), nullable=False),
        pa.field("symbols", pa.uint32(), nullable=False),
        pa.field("samples", pa.uint32(), nullable=False),
        pa.field("shard", pa.uint32(), nullable=False),
        # Parquet: where the row stands. Tar: row is the place of the sample in the file, row_group is 0.
        pa.field("row_group", pa.uint32(), nullable=False),
        pa.field("row", pa.uint32(), nullable=False),
        # Tar: bytes of each member's content in the file. Parquet: 0 and the size of the column's value.
        pa.field("json_offset", pa.uint64(), nullable=False),
        pa.field("json_size", pa.uint32(), nullable=False),
        pa.field("json_crc32", pa.uint32(), nullable=False),
        pa.field("flac_offset", pa.uint64(), nullable=False),
        pa.field("flac_size", pa.uint32(), nullable=False),
        pa.field("flac_crc32", pa.uint32(), nullable=False),
        pa.field("mel_offset", pa.uint64(), nullable=False),
        pa.field("mel_size", pa.uint32(), nullable=False),
        pa.field("mel_crc32", pa.uint32(), nullable=False),
    ]
)
"""`index.arrow`: one record batch, a row an utterance, sorted by split (train, validation, test) and then by id. The
dictionaries of split, speaker and language are those of the manifest, in its order, so that the codes
are its numbers."""

SHARD_PARQUET_SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("json", pa.binary(), nullable=False),
        pa.field("flac", pa.binary(), nullable=False),
        pa.field(
            "mel", pa.binary(), nullable=False
        ),  # C order [num_mels, num_frames], the manifest's mel_dtype, little-endian; empty where that is none
        pa.field("num_frames", pa.uint32(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("phonemes", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("phoneme_ids", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
        pa.field("speaker", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
    ]
)
"""A Parquet shard. `json` is the same as the tar's member, the text columns are a convenience for other tools."""
