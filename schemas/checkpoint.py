"""What a checkpoint carries beside its weights, so that it is enough to speak from, and the state of the epoch plan."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.base import Record, VersionedFile
from schemas.features import FeatureSpec, MelStatistics
from schemas.symbols import SymbolTable


class VoiceHeader(VersionedFile):
    """Stored in the checkpoint as plain types under the key `voxloom`."""

    format: Literal["voxloom-voice"] = Field("voxloom-voice", description="what this record is")
    version: Literal[1] = Field(1, description="version of the record")
    feature_spec: FeatureSpec = Field(description="what the mels are")
    symbols: SymbolTable = Field(description="the symbol table")
    text_frontend: str = Field(description="version of the rules that turn text into symbols")
    speakers: tuple[str, ...] = Field(description="speakers by number")
    languages: tuple[str, ...] = Field(description="languages of the data it was trained on: zh, en, mixed")
    mel_statistics: MelStatistics = Field(description="with which mels are normalised")
    index_sha256: str = Field(description="hash of the index it was trained on")


class QuarantinedUtterance(Record):
    """An utterance that could not be read: left out of the plan from the epoch after the one that found it."""

    row: int = Field(description="row of the index", ge=0)
    key: str = Field(description="key of the utterance")
    epoch: int = Field(description="epoch in which it was found", ge=0)
    reason: str = Field(description="what is wrong with it")


class PlanState(VersionedFile):
    """Where in which epoch plan a run stands; the same on every rank."""

    format: Literal["voxloom-plan-state"] = Field("voxloom-plan-state", description="what this record is")
    version: Literal[1] = Field(1, description="version of the record")
    index_sha256: str = Field(description="hash of the index")
    plan_sha256: str = Field(description="fingerprint of the plan's settings")
    plan_settings: dict[str, int | float | str | None] = Field(description="those settings by name")
    seed: int = Field(description="seed of the plan")
    epoch: int = Field(description="epoch, from 0", ge=0)
    groups_done: int = Field(description="step groups of that epoch that were trained on", ge=0)
    repeats: tuple[float, ...] = Field((1.0,), description="how often an epoch takes each utterance of each shard set")
    quarantine: tuple[QuarantinedUtterance, ...] = Field(
        (), description="utterances that could not be read, by row; each is left out of the epochs after its own"
    )
