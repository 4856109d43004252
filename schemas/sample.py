"""`KEY.json`: what a shard says of one utterance."""

from __future__ import annotations

from pydantic import Field

from schemas.base import Record


class SampleInfo(Record):
    """The JSON member of a sample."""

    id: str = Field(description="the utterance's id")
    text: str = Field(description="text as the source gives it")
    normalized_text: str = Field(description="text as it is spoken")
    phonemes: tuple[str, ...] = Field(description="symbols, pauses included")
    phoneme_ids: tuple[int, ...] = Field(description="ids of the symbols in the shard set's symbol table")
    speaker: str = Field(description="speaker's name")
    language: str = Field(description="zh, en, mixed; other where it is kept without phonemes")
    sample_rate: int = Field(description="samples per second of KEY.flac")
    num_samples: int = Field(description="samples in KEY.flac")
    num_frames: int = Field(description="frames in KEY.mel.npy")
