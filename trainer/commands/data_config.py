"""What a configuration says of the data and of the plan, as `trainer fit` would take it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from dataprep.shards.cache import CacheSettings, default_folder
from schemas.errors import UsageError
from trainer.commands.configs import config_path, num_gpus, section_of
from trainer.data.plan import DEFAULT_MAX_FRAMES, PlanSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """The shard sets and the plan of a configuration."""

    shards: tuple[str, ...]
    """Shard sets that it names; none in a packaged one."""
    settings: PlanSettings
    """Settings of the plan."""
    weights: tuple[float, ...] | None
    """How often an epoch takes each utterance of each set."""
    temperature: float | None
    """Instead of weights."""
    cache: CacheSettings
    """Where copies of what lies in an object store are kept."""
    overruled: tuple[str, ...] = ()
    """Weights or temperature, where the configuration names one and the other was asked for."""


class _Data(BaseModel):
    """What is read of the section `data` beside the settings of the plan, which check themselves."""

    model_config = ConfigDict(frozen=True)

    shards: str | tuple[str, ...] = ()
    weights: tuple[float, ...] | None = None
    temperature: float | None = None
    group_size: int | None = None
    cache_folder: str | None = None
    cache_gigabytes: float = CacheSettings().max_bytes / 1e9
    retry_seconds: float = CacheSettings().retry_seconds


class _Trainer(BaseModel):
    """What is read of the section `trainer`: what makes the micro-batches of a step."""

    model_config = ConfigDict(frozen=True)

    accelerator: object = "auto"
    devices: int | str | tuple[int, ...] = "auto"
    num_nodes: int = 1
    accumulate_grad_batches: int = 1

    @property
    def micro_batches(self) -> int:
        """Ranks times accumulations, on this machine."""
        there = 1 if self.accelerator == "cpu" else max(num_gpus(), 1)
        asked = len(self.devices) if isinstance(self.devices, tuple) else str(self.devices)
        devices = int(asked) if str(asked).isdigit() else there  # `auto` and -1 are all there are
        return max(devices * self.num_nodes * self.accumulate_grad_batches, 1)


def data_config(config: str | None, ranks: int | None, given: Mapping[str, object]) -> DataConfig:
    """What `trainer fit` would take from a configuration.

    Args:
        config: name or file; where None, the one that `trainer fit` takes here.
        ranks: micro-batches of a step group; where None, those of the configuration on this machine.
        given: by name, what was asked for; what is not None goes before the configuration.

    Raises:
        UsageError: no such configuration, or a value that is none.
    """
    path = config_path(config or ("base" if num_gpus() else "tiny"))
    asked = {name: value for name, value in given.items() if value is not None}
    section, either = section_of(path, "data"), {"weights", "temperature"}
    overruled = {name for name in either - asked.keys() if either & asked.keys() and section.get(name) is not None}
    values = {**section, **dict.fromkeys(overruled), **asked}
    try:
        data = _Data.model_validate(
            {name: value for name, value in values.items() if name in _Data.model_fields and value is not None}
        )
        trainer = _Trainer.model_validate(
            {name: value for name, value in section_of(path, "trainer").items() if value is not None}
        )
    except ValidationError as error:
        wrong = {f"{problem['loc'][0]} = {problem['input']!r}: {problem['msg']}" for problem in error.errors()}
        raise UsageError("; ".join(sorted(wrong)), hint="change the value", path=path) from error
    names = {field.name for field in dataclasses.fields(PlanSettings)} - {"ranks"}
    chosen = {"max_frames": DEFAULT_MAX_FRAMES, **{name: values[name] for name in names & values.keys()}}
    return DataConfig(
        shards=(data.shards,) if isinstance(data.shards, str) else data.shards,
        settings=PlanSettings(ranks=ranks or data.group_size or trainer.micro_batches, **chosen),  # type: ignore[arg-type]  # checks itself
        weights=data.weights,
        temperature=data.temperature,
        cache=CacheSettings(
            folder=default_folder() if data.cache_folder is None else Path(data.cache_folder),
            max_bytes=int(data.cache_gigabytes * 1e9),
            retry_seconds=data.retry_seconds,
        ),
        overruled=tuple(overruled),
    )
