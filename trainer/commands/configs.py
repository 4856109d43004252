"""The packaged configurations, by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import yaml  # type: ignore[import-untyped]  # no stubs are installed

from schemas.errors import UsageError
from trainer.data.plan import DEFAULT_MAX_FRAMES, PlanSettings

FOLDER = Path(__file__).parent.parent / "configs"


def config_path(name: str) -> Path:
    """The file of a packaged configuration, or the file that `name` is.

    Raises:
        UsageError: neither.
    """
    packaged = FOLDER / f"{name}.yaml"
    if packaged.is_file():
        return packaged
    if Path(name).is_file():
        return Path(name)
    raise UsageError(f"no configuration {name!r}", hint=f"give a YAML file, or one of the packaged: {_packaged()}")


def has_gpu() -> bool:
    """Whether the NVIDIA driver shows a GPU; asks without importing torch."""
    return any(Path("/proc/driver/nvidia/gpus").glob("*"))


def plan_settings(config: str | None, ranks: int, given: Mapping[str, object]) -> PlanSettings:
    """The plan's settings that `trainer fit` would take from a configuration, but for what is `given` and not None.

    Raises:
        UsageError: no such configuration, or a value outside its range.
    """
    names = {field.name for field in dataclasses.fields(PlanSettings)} - {"ranks"}
    section = _data_section(config_path(config or ("base" if has_gpu() else "tiny")))
    values = {name: value for name, value in section.items() if name in names}
    values |= {name: value for name, value in given.items() if value is not None}
    return PlanSettings(ranks=ranks, **{"max_frames": DEFAULT_MAX_FRAMES, **values})  # type: ignore[arg-type]  # checks itself


def read_config(path: Path) -> dict[str, object]:
    """The sections of a configuration by name.

    Raises:
        UsageError: not YAML in UTF-8, or without sections.
    """
    hint = f"give a YAML file, or one of the packaged: {_packaged()}"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError("not a configuration: it is not text in UTF-8", hint=hint, path=path) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none is a ValueError
        raise UsageError(f"not YAML: {' '.join(str(error).split())}", hint=hint, path=path) from error
    if not isinstance(content, dict):
        raise UsageError("has no sections such as `data:`", hint="start from a packaged one", path=path)
    return content


def _data_section(path: Path) -> dict[str, object]:
    """The `data` section of a configuration. Raises UsageError where it is none."""
    section = read_config(path).get("data", {})
    if not isinstance(section, dict):
        raise UsageError("`data:` is not a section", hint="start from a packaged one", path=path)
    return section


def _packaged() -> str:
    return ", ".join(sorted(path.stem for path in FOLDER.glob("*.yaml")))
