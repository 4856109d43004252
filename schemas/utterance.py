"""`Utterance` and `Drop`: a row of a prepared part, and a row of the list of what was left out."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import pyarrow as pa
from pydantic import Field

from schemas.base import Record

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class Measures(Record):
    """What was measured on the cleaned recording."""

    peak: float = Field(description="largest absolute sample, 1.0 = full scale")
    rms_dbfs: float = Field(description="root mean square level in decibels relative to full scale, at least -120")
    clipped_share: float = Field(description="share of samples at or beyond full scale before they were limited to it")


class Utterance(Record):
    """One recording with its text, cleaned and ready for features."""

    id: str = Field(description="path below the folder of recordings, without its suffix; unique in a data set")
    path: str = Field(description="path of the recording as the source names it")
    text: str = Field(description="text as the source gives it")
    normalized_text: str = Field(
        description="text as it is spoken: numbers written out, spacing and width made uniform"
    )
    language: str = Field(description="zh, en, mixed; other where it is kept without phonemes")
    phonemes: tuple[str, ...] = Field(description="symbols, pauses included")
    phoneme_ids: tuple[int, ...] = Field(description="ids of the symbols in the data set's symbol table")
    warnings: tuple[str, ...] = Field(description="kinds of things the text front end had to guess; usually none")
    speaker: str = Field(description="speaker's name; 'default' where the source names none")
    split: Split = Field(description="train, validation or test")
    sample_rate: int = Field(description="samples per second of `audio`")
    num_samples: int = Field(description="samples in `audio`", gt=0)
    trim_start_seconds: float = Field(description="silence removed at the start, in seconds")
    trim_end_seconds: float = Field(description="silence removed at the end, in seconds")
    source_sha256: str = Field(description="SHA-256 (hex) of the recording's file")
    measures: Measures = Field(description="what was measured on `audio`")
    num_audio_bytes: int = Field(description="bytes in `audio`, so that shards can be planned without reading it")
    audio: bytes = Field(description="the cleaned recording: mono 16-bit FLAC", repr=False)


class DropReason(StrEnum):
    """Why an utterance was left out."""

    MALFORMED_ROW = "malformed_row"
    MISSING_AUDIO = "missing_audio"
    MISSING_TEXT = "missing_text"
    EMPTY_TEXT = "empty_text"
    DUPLICATE_ID = "duplicate_id"
    OUTSIDE_SOURCE = "outside_source"
    UNREADABLE_AUDIO = "unreadable_audio"
    SILENT = "silent"
    NOT_FINITE = "not_finite"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    UNSUPPORTED_LANGUAGE = "unsupported_language"
    UNPRONOUNCEABLE = "unpronounceable"


class Drop(Record):
    """An utterance left out, with its reason."""

    id: str = Field(description="id it would have had; empty where the row was too broken to tell")
    path: str = Field(description="path of the recording as the source names it")
    line: int = Field(0, description="line of the metadata file, counted from 1; 0 where there is none")
    reason: DropReason = Field(description="reason code")
    value: str = Field("", description="the value found")
    limit: str = Field("", description="the value allowed")
    message: str = Field(description="what was found and what to do, in a sentence")


UTTERANCE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("normalized_text", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("phonemes", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("phoneme_ids", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
        pa.field("warnings", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("speaker", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("sample_rate", pa.int32(), nullable=False),
        pa.field("num_samples", pa.int64(), nullable=False),
        pa.field("trim_start_seconds", pa.float64(), nullable=False),
        pa.field("trim_end_seconds", pa.float64(), nullable=False),
        pa.field("source_sha256", pa.string(), nullable=False),
        pa.field(
            "measures",
            pa.struct([pa.field(name, pa.float64(), nullable=False) for name in ("peak", "rms_dbfs", "clipped_share")]),
            nullable=False,
        ),
        pa.field("num_audio_bytes", pa.int64(), nullable=False),
        pa.field("audio", pa.binary(), nullable=False),
    ]
)

DROP_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("value", pa.string(), nullable=False),
        pa.field("limit", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
    ]
)
