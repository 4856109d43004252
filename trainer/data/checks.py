"""What is refused before any training, and what is warned of: options out of range, limits that leave nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from schemas.errors import UsageError
from trainer.data.plan import PlanSettings, overlong_rows
from trainer.data.sampler import accumulations
from trainer.data.selection import Selection

_LEAST = {
    "num_workers": 0, "group_size": 1, "max_bad_samples": 0, "cache_gigabytes": 0, "retry_seconds": 0,
}  # fmt: skip


def checked_settings(plan_options: Mapping[str, Any], others: Mapping[str, float | None]) -> PlanSettings:
    """The plan's settings before the number of ranks is known.

    Args:
        plan_options: of `PlanSettings`, without `ranks`.
        others: the data module's other numbers, `group_size` among them.

    Raises:
        UsageError: values out of range; names all of them.
    """
    wrong = [
        f"{name} = {value!r} must be at least {_LEAST[name]}"
        for name, value in others.items()
        if value is not None and not _LEAST[name] <= value < math.inf
    ]
    group_size = others["group_size"] or plan_options["length_classes"]
    try:
        settings = PlanSettings(ranks=max(int(group_size), 1), **plan_options)
    except UsageError as error:
        raise UsageError("; ".join([error.message, *wrong]), hint=error.hint) from error
    if wrong:
        raise UsageError("data: " + "; ".join(wrong), hint="change the value")
    return settings


def wanted_accumulations(group_size: int, world_size: int, given: int, *, is_asked_for: bool) -> int:
    """Accumulations for step groups of a size.

    Args:
        group_size: micro-batches of a step group.
        world_size: number of ranks.
        given: accumulations that the Trainer has; 1 is its default.
        is_asked_for: whether the group size was, and not made of the accumulations.

    Raises:
        UsageError: the Trainer has others.
    """
    wanted = accumulations(group_size, world_size)
    if given != wanted and not (is_asked_for and given == 1):
        raise UsageError(
            f"group_size {group_size} on {world_size} ranks takes {wanted} accumulations, "
            f"accumulate_grad_batches is {given}",
            hint=f"--trainer.accumulate_grad_batches {wanted}",
        )
    return wanted


def data_warnings(training: Selection, validation: Selection) -> Iterator[str]:
    """One sentence for each thing that a person should know of the splits."""
    for warning in (training.warning("train"), validation.warning("validation")):
        if warning:
            yield warning
    if len(validation) == 0:
        yield "the validation split is empty: nothing will be validated, and no checkpoint is the best"


def require_some(training: Selection, settings: PlanSettings, location: str) -> None:
    """Raises UsageError where there is nothing to train on, or the limits drop all of it."""
    if len(training) == 0:
        raise UsageError(
            "the training split holds no utterance that can be trained on",
            hint="see `dataprep validate` for what is in the shard set",
            path=location,
        )
    frames, symbols = training.num_frames, training.num_symbols
    if settings.overlong != "drop" or len(overlong_rows(frames, symbols, settings)) < len(frames):
        return
    limits = f"max_frames {settings.max_frames} (utterances have {frames.min()} to {frames.max()})"
    flags = f"--data.max_frames {frames.max()}"
    if settings.max_symbols is not None:
        limits += f", max_symbols {settings.max_symbols} (utterances have {symbols.min()} to {symbols.max()})"
        flags += f" --data.max_symbols {symbols.max()}"
    raise UsageError(
        f"all {len(frames)} utterances of the training split are over a limit, and overlong = drop leaves none: "
        f"{limits}",
        hint=f"raise the limits ({flags} keeps all), or set --data.overlong own-batch",
        path=location,
    )
