"""`trainer audit`: proves from what ranks wrote down that each utterance was computed once, over all restarts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from dataprep.shards.reader import ShardSet
from schemas.errors import IdentityError
from trainer.commands.audit_chain import AuditedRun, chain_of, epochs_of, stretches_of
from trainer.commands.audit_counts import EpochCounts, EpochVerdict
from trainer.data.collection import ShardMix
from trainer.data.epochs import Epochs
from trainer.data.plan import PlanSettings

_NAMED = 10


def audit(folders: Sequence[Path], shards: Sequence[str] | None = None) -> list[EpochVerdict]:
    """Checks every epoch that the last of the runs, and those it goes back to, computed.

    Args:
        folders: the last run; before it, where runs were moved, those it went on from.
        shards: where the shard sets lie now; where the run found them if None.

    Raises:
        UsageError, FormatError, IdentityError: as `chain_of` and `stretches_of`; also where the shard sets are not
            those of the run, or not to be found.
    """
    chain = chain_of(folders)
    last = chain[-1]
    mix = ShardMix([ShardSet(location) for location in shards or last.record.shards])
    if mix.index_sha256 != last.record.index_sha256:
        raise IdentityError(
            f"the run was trained on the index {last.record.index_sha256[:12]}, "
            f"the shard sets have {mix.index_sha256[:12]}",
            hint="give the shard sets of the run with --shards",
        )
    settings = PlanSettings(**last.record.plan_settings)  # type: ignore[arg-type]  # checks itself
    epochs = Epochs(mix, settings, weights=last.record.repeats)
    return [_verdict(epoch, chain, epochs) for epoch in epochs_of(chain)]


def _verdict(epoch: int, chain: Sequence[AuditedRun], epochs: Epochs) -> EpochVerdict:
    counts = EpochCounts(epoch)
    for found in stretches_of(chain, epoch):
        counts.add(found)
    return counts.verdict(epochs, chain[-1].until)


def audit_json(verdicts: Sequence[EpochVerdict]) -> str:
    """The verdicts as JSON."""
    content = [
        {
            "epoch": one.epoch, "steps": one.steps, "all_steps": one.all_steps, "whole": one.is_whole,
            "planned": one.planned, "once": one.once, "unreadable": one.unreadable, "missing": one.missing,
            "repeated": one.repeated, "early": one.early, "stretches": one.stretches, "discarded": one.discarded,
            "runs": one.runs, "ranks": one.world_sizes, "proven": one.is_proven,
        }
        for one in verdicts
    ]  # fmt: skip
    return json.dumps(content, ensure_ascii=False, indent=2)


def audit_text(verdicts: Sequence[EpochVerdict]) -> str:
    """A table with a row an epoch; below it, what is wrong and the conclusion."""
    head = (
        "epoch", "steps", "utterances", "once", "never", "more than once", "too early", "unreadable",
        "files", "discarded", "runs", "ranks",
    )  # fmt: skip
    rows = [
        (
            str(one.epoch), f"{one.steps:,} of {one.all_steps:,}",
            *(
                f"{number:,}"
                for number in (
                    one.planned, one.once, len(one.missing), len(one.repeated), len(one.early), one.unreadable,
                    one.stretches, one.discarded, one.runs,
                )
            ),
            ", ".join(str(size) for size in one.world_sizes),
        )
        for one in verdicts
    ]  # fmt: skip
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    for one in verdicts:
        for told, keys in (("never", one.missing), ("more than once", one.repeated), ("too early", one.early)):
            if keys:
                more = f" and {len(keys) - _NAMED:,} more" if len(keys) > _NAMED else ""
                lines.append(f"epoch {one.epoch}, {told}: {', '.join(keys[:_NAMED])}{more}")
    return "\n".join([*(lines if rows else []), _conclusion(verdicts)])


def _conclusion(verdicts: Sequence[EpochVerdict]) -> str:
    if not any(one.steps for one in verdicts) and all(one.is_proven for one in verdicts):
        return "nothing was computed up to a checkpoint yet"
    wrong = [str(one.epoch) for one in verdicts if not one.is_proven]
    if wrong:
        return f"NOT exactly once in epoch {', '.join(wrong)}"
    unreadable = sum(one.unreadable for one in verdicts)
    but = f", but for {unreadable:,} that could not be read" if unreadable else ""
    return f"proven: each utterance exactly once in every epoch{but}, over all restarts"
