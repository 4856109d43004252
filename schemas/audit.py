"""`audit/` in the folder of a run: what its ranks computed, so that others can count."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.base import Record, VersionedFile


class AuditPoint(Record):
    """A point between two optimizer steps of a run."""

    epoch: int = Field(description="epoch, from 0", ge=0)
    groups_done: int = Field(description="step groups of that epoch that were done", ge=0)


class AuditOrigin(AuditPoint):
    """The checkpoint that a run went on from, and where it began: in mid-epoch, or with a new epoch."""

    run: str = Field(description="folder of the run that wrote it")
    is_reset: bool = Field(False, description="whether data or plan may have changed: no epoch spans both runs")


class AuditRun(VersionedFile):
    """`audit/run.json`, written anew with each stretch, when those of all ranks are on disk."""

    format: Literal["voxloom-audit-run"] = Field("voxloom-audit-run", description="what this file is")
    version: Literal[1] = Field(1, description="version of the format")
    shards: tuple[str, ...] = Field(description="the shard sets")
    index_sha256: str = Field(description="hash of their index")
    plan_sha256: str = Field(description="fingerprint of the plan's settings")
    plan_settings: dict[str, int | float | str | None] = Field(description="those settings by name")
    repeats: tuple[float, ...] = Field(description="how often an epoch takes each utterance of each shard set")
    origin: AuditOrigin | None = Field(description="null where the run began from nothing")
    reached: AuditPoint = Field(description="up to where the stretches of all ranks are on disk")


class AuditStretch(VersionedFile):
    """First line of an `audit/*.bits`: what one rank computed between two checkpoints.

    The rest of the file is a zlib-compressed bitmap over the places of the epoch's plan (`numpy.packbits`, first place
    in the highest bit): 1 where the place was computed, with weight, by this rank in these groups.
    """

    format: Literal["voxloom-audit-stretch"] = Field("voxloom-audit-stretch", description="what this file is")
    version: Literal[1] = Field(1, description="version of the format")
    index_sha256: str = Field(description="hash of the index")
    plan_sha256: str = Field(description="fingerprint of the plan's settings")
    epoch: int = Field(description="epoch, from 0", ge=0)
    first_group: int = Field(description="first step group", ge=0)
    end_group: int = Field(description="step group after the last", ge=0)
    rank: int = Field(description="which rank", ge=0)
    world_size: int = Field(description="of how many", ge=1)
    num_places: int = Field(description="utterances of the epoch's plan", ge=0)
    left_out: tuple[int, ...] = Field(description="rows of the index that the plan was made without")
    repeated: tuple[int, ...] = Field(description="places computed more than once, once for each time too many")
    unreadable: tuple[int, ...] = Field(description="places that were asked for and could not be read")
