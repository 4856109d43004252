"""The arguments of `trainer fit`: what is ours among those of LightningCLI."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class FitArguments:
    """What a command was given."""

    shards: tuple[str, ...]
    """Shard sets: folders, or locations such as `s3://bucket/shards`."""
    configs: tuple[str, ...]
    """Values of `--config`."""
    checkpoint: str | None
    """The last value of `--ckpt_path`."""
    audit: bool
    """Whether what was delivered is written down."""
    probe: bool
    """Whether the most expensive micro-batches are tried first."""
    rest: tuple[str, ...]
    """Options of LightningCLI."""

    @classmethod
    def of(cls, arguments: Sequence[str]) -> FitArguments:
        """Takes arguments apart: shard sets come first, then options.

        Raises:
            UsageError: no shard set, or an option without its value.
        """
        shards = tuple(itertools.takewhile(lambda argument: not argument.startswith("-"), arguments))
        if not shards:
            raise UsageError("no shard set was given", hint="trainer fit SHARDS... [OPTIONS]")
        configs, rest = _taken_out(arguments[len(shards) :], ("--config", "-c"))
        checkpoints, rest = _taken_out(rest, ("--ckpt_path",))
        given = {flag: flag in rest for flag in ("--audit", "--probe", "--reset-data")}
        rest = [argument for argument in rest if argument not in given]
        if given["--reset-data"]:
            rest += ["--data.reset_data", "true"]
        return cls(
            shards=shards,
            configs=tuple(configs),
            checkpoint=checkpoints[-1] if checkpoints else None,
            audit=given["--audit"],
            probe=given["--probe"],
            rest=tuple(rest),
        )

    @property
    def location(self) -> str:
        """The shard sets, as they were given."""
        return " ".join(self.shards)

    @property
    def shards_option(self) -> tuple[str, str]:
        """The shard sets as an option of LightningCLI."""
        value = self.shards[0] if len(self.shards) == 1 else json.dumps(self.shards, ensure_ascii=False)
        return "--data.shards", value


def _taken_out(arguments: Sequence[str], names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Values of an option, and the arguments without it. Raises UsageError where a value is missing."""
    values: list[str] = []
    rest: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, value = argument.partition("=")
        if name not in names:
            rest.append(argument)
            continue
        value = value if equals else next(remaining, "")
        if not value:
            raise UsageError(f"{name} needs a value", hint=f"such as {name} tiny")
        values.append(value)
    return values, rest
