"""Whether a run may go on with this data: the checks of a checkpoint's plan state, each mismatch by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from schemas.checkpoint import PlanState
from schemas.errors import IdentityError
from trainer.data.plan import PlanSettings

RESET = "--reset-data starts the data anew and keeps the weights"


def require_same_data(state: PlanState, index_sha256: str, location: str) -> None:
    """Raises IdentityError where the checkpoint was trained on another index."""
    if state.index_sha256 != index_sha256:
        raise IdentityError(
            f"the checkpoint was trained on the index {state.index_sha256[:12]}, "
            f"{location} has the index {index_sha256[:12]}",
            hint=f"resume with the shard set of that run, or start a new run without --ckpt_path; {RESET}",
        )


def require_same_mix(state: PlanState, repeats: tuple[float, ...]) -> None:
    """Raises IdentityError where the checkpoint's epochs took the shard sets in other proportions."""
    if state.repeats != repeats:
        told = ", ".join(f"{times:g}" for times in state.repeats)
        raise IdentityError(
            f"the checkpoint's epochs take the shard sets {told} times, these {', '.join(f'{t:g}' for t in repeats)}",
            hint=f"add --data.weights '[{','.join(str(times) for times in state.repeats)}]' --data.temperature null; "
            f"{RESET}",
        )


def resumed_settings(state: PlanState, settings: PlanSettings, group_size: int | None) -> PlanSettings:
    """The plan's settings of the resumed run: those given, with the checkpoint's group size where none was given.

    So the step groups stay what they were on any number of ranks.

    Raises:
        IdentityError: another plan; the message names the settings that differ.
    """
    known = state.plan_settings.get("ranks")
    if group_size is None and isinstance(known, int) and known % settings.length_classes == 0:
        settings = dataclasses.replace(settings, ranks=known)
    if state.plan_sha256 == settings.digest():
        return settings
    mine = settings.to_dict()
    differing = {name: (state.plan_settings.get(name), value) for name, value in mine.items()}
    differing = {name: pair for name, pair in differing.items() if pair[0] != pair[1]}
    flags = " ".join(
        f"--data.{'group_size' if name == 'ranks' else name} {'null' if old is None else old}"
        for name, (old, _) in differing.items()
    )
    told = "; ".join(f"{name} was {old}, is {new}" for name, (old, new) in differing.items())
    raise IdentityError(
        f"the checkpoint's epoch plan has other settings: {told or 'made by another version'}",
        hint=f"add {flags}; {RESET}" if flags else f"resume with the version of voxloom that wrote it; {RESET}",
    )


def read_state(content: object) -> PlanState:
    """The plan's state in a checkpoint. Raises FormatError where it is none of this version."""
    return PlanState.from_content(content, Path("checkpoint"))
