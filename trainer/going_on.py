"""What is said of going on with a run that was ended from outside."""

from __future__ import annotations

from pathlib import Path

LAST_NAME = "last.ckpt"
"""The newest checkpoint of a run."""


def how_to_go_on(run: Path, shards: str = "SHARDS") -> str:
    """What to do after a run was ended from outside: go on from its last checkpoint, if it has one."""
    if (run / "checkpoints" / LAST_NAME).is_file():
        return f"trainer fit {shards} --ckpt_path {run} continues from its last checkpoint"
    return "start it again: it had no checkpoint yet"
