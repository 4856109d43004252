"""`trainer audit`: proves from what ranks wrote down that each utterance was computed once, over all restarts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dataprep.shards.reader import ShardSet
from schemas.audit import AuditRun, AuditStretch
from schemas.errors import IdentityError, UsageError
from trainer.audit import AUDIT_FOLDER, RUN_NAME, read_stretch
from trainer.data.collection import ShardMix
from trainer.data.epochs import Epochs
from trainer.data.plan import PlanSettings

_NAMED = 10


@dataclass(slots=True)
class EpochAudit:
    """What is known of one epoch."""

    epoch: int
    num_places: int
    left_out: tuple[int, ...]
    counts: NDArray[np.int64]
    """How often each place was computed."""
    unreadable: set[int] = field(default_factory=set)
    end_group: int = 0
    runs: set[str] = field(default_factory=set)
    world_sizes: set[int] = field(default_factory=set)
    stretches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochVerdict:
    """How often the utterances of an epoch were computed, of those that its step groups done hold."""

    epoch: int
    steps: int
    """Step groups done."""
    is_whole: bool
    """Whether they are all of the epoch."""
    planned: int
    """Utterances in them."""
    once: int
    unreadable: int
    missing: tuple[str, ...]
    """Keys of those never computed."""
    repeated: tuple[str, ...]
    """Keys of those computed more than once, or of another step group."""
    runs: int
    world_sizes: tuple[int, ...]

    @property
    def is_proven(self) -> bool:
        """Whether each came exactly once, or could not be read."""
        return not self.missing and not self.repeated


def audit(folders: Sequence[Path], shards: Sequence[str] | None = None) -> list[EpochVerdict]:
    """Checks every epoch that the last of the runs, and those it goes back to, computed.

    Args:
        folders: the last run; with it, where runs were moved, those it went on from.
        shards: where the shard sets lie now; where the run found them if None.

    Raises:
        UsageError: a run that was not audited.
        FormatError: a damaged file.
        IdentityError: the shard sets are not those of the run.
    """
    chain = _chain(folders)
    last = chain[-1][1]
    mix = ShardMix([ShardSet(location) for location in shards or last.shards])
    if mix.index_sha256 != last.index_sha256:
        raise IdentityError(
            f"the run was trained on the index {last.index_sha256[:12]}, the shard sets have {mix.index_sha256[:12]}",
            hint="give the shard sets of the run with --shards",
        )
    settings = PlanSettings(**last.plan_settings)  # type: ignore[arg-type]  # checks itself
    epochs = Epochs(mix, settings, weights=last.repeats)
    return [_verdict(found, epochs) for _, found in sorted(_gathered(chain).items())]


def _chain(folders: Sequence[Path]) -> list[tuple[Path, AuditRun]]:
    """The runs, the first start first."""
    known = {folder.absolute().name: folder for folder in folders}
    chain: list[tuple[Path, AuditRun]] = []
    folder: Path | None = folders[-1]
    while folder is not None:
        path = folder / AUDIT_FOLDER / RUN_NAME
        if not path.is_file():
            raise UsageError(
                "was not audited",
                hint="train with `trainer fit --audit`; name all runs that were moved",
                path=folder,
            )
        run = AuditRun.read(path)
        chain.insert(0, (folder, run))
        origin = None if run.origin is None else Path(run.origin.run)
        folder = None if origin is None else known.get(origin.name, origin)
    return chain


def _gathered(chain: Sequence[tuple[Path, AuditRun]]) -> dict[int, EpochAudit]:
    """What counts of each run: the stretches before the checkpoint from which the next went on."""
    found: dict[int, EpochAudit] = {}
    for place, (folder, run) in enumerate(chain):
        child = chain[place + 1][1] if place + 1 < len(chain) else None
        if child is not None and (child.index_sha256, child.plan_sha256) != (run.index_sha256, run.plan_sha256):
            continue  # the data was changed on the way: nothing of this run is of the later one's epochs
        end = None if child is None or child.origin is None else (child.origin.epoch, child.origin.groups_done)
        for path in sorted((folder / AUDIT_FOLDER).glob("*.bits")):
            header, computed = read_stretch(path)
            if end is None or (header.epoch, header.end_group) <= end:
                _add(found, header, computed, str(folder))
    return found


def _add(found: dict[int, EpochAudit], header: AuditStretch, computed: NDArray[np.bool_], run: str) -> None:
    epoch = found.get(header.epoch)
    if epoch is None:
        epoch = found[header.epoch] = EpochAudit(
            header.epoch, header.num_places, header.left_out, np.zeros(header.num_places, np.int64)
        )
    epoch.counts += computed
    np.add.at(epoch.counts, np.array(header.repeated, dtype=np.int64), 1)
    epoch.unreadable |= set(header.unreadable)
    epoch.end_group = max(epoch.end_group, header.end_group)
    epoch.runs.add(run)
    epoch.world_sizes.add(header.world_size)
    epoch.stretches += 1


def _verdict(found: EpochAudit, epochs: Epochs) -> EpochVerdict:
    planned, selection = epochs.planned_without(found.epoch, found.left_out)
    wanted = np.zeros(len(selection), bool)
    before = 0
    for _, plan in planned.windows(0):
        groups = min(max(found.end_group - before, 0), plan.num_groups)
        wanted[plan.order[: plan.batch_offsets[plan.group_offsets[groups]]]] = True
        before += plan.num_groups
    counts = found.counts
    unreadable = np.zeros(len(selection), bool)
    unreadable[list(found.unreadable)] = True
    missing = np.flatnonzero(wanted & (counts == 0) & ~unreadable)
    repeated = np.flatnonzero((counts > 1) | (~wanted & (counts > 0)))

    def keys(places: NDArray[np.int64]) -> tuple[str, ...]:
        return tuple(epochs.shards.key(int(row)) for row in selection.rows_at(places))

    return EpochVerdict(
        epoch=found.epoch, steps=found.end_group, is_whole=found.end_group == planned.num_groups,
        planned=int(wanted.sum()), once=int((wanted & (counts == 1)).sum()), unreadable=int(unreadable.sum()),
        missing=keys(missing), repeated=keys(repeated), runs=len(found.runs),
        world_sizes=tuple(sorted(found.world_sizes)),
    )  # fmt: skip


def audit_json(verdicts: Sequence[EpochVerdict]) -> str:
    """The verdicts as JSON."""
    content = [
        {
            "epoch": one.epoch, "steps": one.steps, "whole": one.is_whole, "planned": one.planned, "once": one.once,
            "unreadable": one.unreadable, "missing": one.missing, "repeated": one.repeated, "runs": one.runs,
            "ranks": one.world_sizes, "proven": one.is_proven,
        }
        for one in verdicts
    ]  # fmt: skip
    return json.dumps(content, ensure_ascii=False, indent=2)


def audit_text(verdicts: Sequence[EpochVerdict]) -> str:
    """A line an epoch, and what is wrong with it."""
    lines = []
    for one in verdicts:
        steps = f"{one.steps:,} steps, {'the whole epoch' if one.is_whole else 'so far'}"
        ranks = " and ".join(str(size) for size in one.world_sizes)
        lines.append(
            f"epoch {one.epoch}: {steps}, on {ranks} ranks in {one.runs} run{'s' * (one.runs > 1)}: "
            f"{one.once:,} of {one.planned:,} utterances computed exactly once"
            + (f", {one.unreadable:,} could not be read" if one.unreadable else "")
        )
        for told, keys in (("never", one.missing), ("more than once, or before its turn", one.repeated)):
            if keys:
                more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
                lines.append(f"  {told}: {', '.join(keys[:_NAMED])}{more}")
    lines.append(_conclusion(verdicts))
    return "\n".join(lines)


def _conclusion(verdicts: Sequence[EpochVerdict]) -> str:
    if not verdicts:
        return "nothing was computed up to a checkpoint yet"
    wrong = [str(one.epoch) for one in verdicts if not one.is_proven]
    if wrong:
        return f"NOT exactly once in epoch {', '.join(wrong)}"
    return "proven: each utterance exactly once in every epoch, over all restarts"
