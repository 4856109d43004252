"""`dataset.json`: the manifest of a prepared data set, written last."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from schemas.base import Record, VersionedFile
from schemas.symbols import SymbolTable


class IngestConfig(Record):
    """The options of `dataprep ingest` that change what is written. Each is part of every part's name."""

    sample_rate: int = Field(22050, description="samples per second of the cleaned recordings", ge=8000, le=192000)
    trim: bool = Field(True, description="remove silence at both ends")
    trim_top_db: float = Field(40.0, description="frames this many decibels below the loudest count as silence", gt=0)
    trim_margin_seconds: float = Field(0.05, description="silence left at each end, in seconds", ge=0, le=60)
    min_duration_seconds: float = Field(0.1, description="shortest utterance kept, after trimming, in seconds", ge=0.02)
    max_duration_seconds: float = Field(60.0, description="longest utterance kept, after trimming, in seconds", gt=0)
    split_shares: tuple[float, float, float] = Field(
        (0.9, 0.05, 0.05), description="shares of train, validation and test"
    )
    split_by: Literal["id", "speaker"] = Field("id", description="what is hashed into a split")
    phonemes: bool = Field(
        True, description="turn text into phonemes; without them unspoken languages are kept, and cannot be trained on"
    )

    @model_validator(mode="after")
    def _check(self) -> IngestConfig:
        if any(share < 0 for share in self.split_shares) or abs(sum(self.split_shares) - 1.0) > 1e-6:
            raise ValueError(f"split_shares {self.split_shares} must be three shares from 0 to 1 that add up to 1")
        if self.min_duration_seconds > self.max_duration_seconds:
            raise ValueError(
                f"min_duration {self.min_duration_seconds} s is above max_duration {self.max_duration_seconds} s"
            )
        return self


class FileInfo(Record):
    """A file and what proves that it is whole."""

    name: str = Field(description="path below the manifest's folder, with forward slashes")
    bytes: int = Field(description="size in bytes", ge=0)
    sha256: str = Field(description="SHA-256 (hex) of its content")


class PartInfo(FileInfo):
    """One Parquet file of prepared utterances."""

    utterances: int = Field(description="rows", ge=0)


class Amount(Record):
    """How much there is of something."""

    utterances: int = Field(description="number of utterances", ge=0)
    seconds: float = Field(description="their length in seconds", ge=0)


class Counts(Record):
    """Every row of the source, accounted for: `rows` = `utterances` + the sum of `drops`."""

    rows: int = Field(description="rows that the source names")
    utterances: int = Field(description="utterances kept")
    drops: dict[str, int] = Field(description="utterances dropped, by reason")
    by_split: dict[str, Amount] = Field(description="utterances and seconds by split")
    by_speaker: dict[str, Amount] = Field(description="utterances and seconds by speaker")
    by_language: dict[str, Amount] = Field(description="utterances and seconds by language")
    warnings: dict[str, int] = Field(description="things that were kept but are worth knowing, by kind")


class DatasetManifest(VersionedFile):
    """`dataset.json`."""

    made_by: ClassVar[str] = "`dataprep ingest`"

    format: Literal["voxloom-prepared"] = Field("voxloom-prepared", description="what this file is")
    version: Literal[1] = Field(1, description="version of the format")
    config: IngestConfig = Field(description="the options it was made with")
    symbols: SymbolTable = Field(description="the symbol table")
    symbols_sha256: str = Field(description="fingerprint of the symbol table")
    text_frontend: str = Field(description="version of the rules that turn text into symbols")
    part_version: int = Field(description="version of the rules that turn a recording into a row of a part")
    fingerprint: str = Field(
        description="SHA-256 over options, symbols and the utterances' sources: the identity of the data set"
    )
    counts: Counts = Field(description="what is in it and what was left out")
    parts: tuple[PartInfo, ...] = Field(description="the parts, sorted by name")
    drops: FileInfo = Field(description="`drops.parquet`")
    report: FileInfo = Field(description="`report.html`")
