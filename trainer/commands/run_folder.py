"""The folder of a run, `runs/<time>`: reserved by making it, shared by all ranks of one command."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_VARIABLE = "VOXLOOM_RUN"
"""Hands the folder down to the other ranks: Lightning starts them with the same command, a moment later."""


@contextmanager
def run_folder() -> Iterator[tuple[Path, bool]]:
    """The folder of this run, and whether it was handed down by the process that started this one.

    No other command gets the same one. Where nothing was written into it, it is gone after the block.
    """
    if _VARIABLE in os.environ:
        yield Path(os.environ[_VARIABLE]), True
        return
    run = _reserved(Path("runs"))
    os.environ[_VARIABLE] = str(run)
    try:
        yield run, False
    finally:
        del os.environ[_VARIABLE]
        for folder in (run, run.parent):
            with suppress(OSError):  # not empty, which is the rule
                folder.rmdir()


def _reserved(parent: Path) -> Path:
    """A new folder named by the time; of several commands in one second, the later ones get a number too."""
    name, number = time.strftime("%Y-%m-%d_%H-%M-%S"), 1
    while True:
        run = parent / (name if number == 1 else f"{name}-{number}")
        try:
            parent.mkdir(exist_ok=True)
            run.mkdir()
        except FileExistsError:
            if not run.exists():  # it is the parent that is in the way, as a file
                raise
            number += 1
        except FileNotFoundError:
            continue  # another command, that wrote nothing, has taken the parent away between the two
        else:
            return run
