"""The runs that an audit is about: the last one, those it went on from, and what counts of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from schemas.audit import AuditRun, AuditStretch
from schemas.errors import FormatError, IdentityError, UsageError
from trainer.data.stretches import AUDIT_FOLDER, RUN_NAME, read_stretch, stretch_name

_EPOCH = re.compile(r"epoch-(\d+)-")
Point = tuple[int, int]
"""Epoch, and its step groups done."""


@dataclass(frozen=True, slots=True)
class AuditedRun:
    """A run of the chain."""

    folder: Path
    record: AuditRun
    until: Point
    """Where its steps stopped to count: where the next run went on, or what it had reached."""


@dataclass(frozen=True, slots=True)
class FoundStretch:
    """A stretch that some rank of some run wrote."""

    run: AuditedRun
    header: AuditStretch
    computed: NDArray[np.bool_]

    @property
    def counts(self) -> bool:
        """Whether it went into the weights: not where it lies behind the last checkpoint, or the one gone on from."""
        return (self.header.epoch, self.header.end_group) <= self.run.until


def chain_of(folders: Sequence[Path]) -> list[AuditedRun]:
    """The runs from the first start, or the last time that the data was reset, to the last one.

    Args:
        folders: the last run; before it, where runs were moved, those it went on from.

    Raises:
        UsageError: a run was not audited, or one was named that does not belong to the last.
        FormatError: a damaged file.
        IdentityError: a run has other data or another plan than the one that went on from it.
    """
    named = {folder.absolute().name: folder.absolute() for folder in folders}
    last = folder = folders[-1].absolute()
    run = _record(folder)
    chain = [AuditedRun(folder, run, (run.reached.epoch, run.reached.groups_done))]
    while run.origin is not None and not run.origin.is_reset:
        until = (run.origin.epoch, run.origin.groups_done)
        child, folder = run, Path(run.origin.run)
        folder = named.get(folder.name, folder)
        if any(folder == known.folder for known in chain):
            raise FormatError("goes on from itself", hint="name the folder that it went on from", path=folder)
        run = _record(folder)
        if (run.index_sha256, run.plan_sha256, run.repeats) != (child.index_sha256, child.plan_sha256, child.repeats):
            raise IdentityError(
                f"{folder} has other data or another plan than {chain[0].folder}, which went on from it",
                hint="name the run that it went on from",
            )
        chain.insert(0, AuditedRun(folder, run, until))
    strangers = set(named.values()) - {known.folder for known in chain}
    if strangers:
        raise UsageError(
            f"{last} does not go back to {', '.join(sorted(map(str, strangers)))}",
            hint="name the last run last, and audit others by themselves",
        )
    return chain


def _record(folder: Path) -> AuditRun:
    path = folder / AUDIT_FOLDER / RUN_NAME
    if not path.is_file():
        raise UsageError(
            "was not audited", hint="train with `trainer fit --audit`; name all runs that were moved", path=folder
        )
    return AuditRun.read(path)


def epochs_of(chain: Sequence[AuditedRun]) -> list[int]:
    """Epochs that there is something to say of: those done, whether there are files or not, and those of any file."""
    origin, until = chain[0].record.origin, chain[-1].until
    done = range(0 if origin is None else origin.epoch, until[0] + (until[1] > 0))
    names = [path.name for run in chain for path in (run.folder / AUDIT_FOLDER).glob("*.bits")]
    return sorted({*done, *(int(match[1]) for name in names if (match := _EPOCH.match(name)))})


def stretches_of(chain: Sequence[AuditedRun], epoch: int) -> Iterator[FoundStretch]:
    """All stretches of an epoch, in the order of training, one in memory at a time.

    Raises:
        FormatError: a damaged file.
        IdentityError: one that belongs to another run.
    """
    for run in chain:
        for path in sorted((run.folder / AUDIT_FOLDER).glob(f"epoch-{epoch:05d}-*.bits")):
            header, computed = read_stretch(path)
            belongs = (header.index_sha256, header.plan_sha256) == (run.record.index_sha256, run.record.plan_sha256)
            if not belongs or path.name != stretch_name(header):
                raise IdentityError(
                    f"{path} is {stretch_name(header)} of {'this' if belongs else 'another'} run",
                    hint="put it back where it was written",
                )
            yield FoundStretch(run, header, computed)
