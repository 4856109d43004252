"""The `trainer fit` that trains as a plan was shown."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence


def fit_command(
    shards: Sequence[str], config: str | None, ranks: int | None, given: Mapping[str, object],
    overruled: Sequence[str] = (),
) -> str:  # fmt: skip
    """The command, quoted for a shell, with all that was asked for.

    Args:
        shards: locations of the shard sets.
        config: name or file of the configuration.
        ranks: micro-batches of a step group, where they were asked for. On any number of GPUs, `trainer fit` then takes
            as many accumulations as they need.
        given: options of the data module by name, where they are not None.
        overruled: options of the configuration that must not count.

    >>> fit_command(["a b/", "s3://x/y"], None, 8, {"weights": (1.0, 0.5), "max_frames": 24000, "seed": None})
    "trainer fit 'a b/' s3://x/y --data.weights '[1,0.5]' --data.max_frames 24000 --data.group_size 8"
    """
    data = {**given, **dict.fromkeys(overruled, "null"), "group_size": ranks}
    options = {"config": config, **{f"data.{name}": value for name, value in data.items()}}
    asked = {name: value for name, value in options.items() if value is not None}
    return shlex.join(
        ["trainer", "fit", *shards, *(word for name, value in asked.items() for word in (f"--{name}", _word(value)))]
    )


def _word(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ",".join(_word(item) for item in value) + "]"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
