"""The packaged configurations, by name."""

from __future__ import annotations

import os
from pathlib import Path

import yaml  # type: ignore[import-untyped]  # no stubs are installed

from schemas.errors import UsageError

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


def num_gpus() -> int:
    """GPUs that the NVIDIA driver shows, of those that `CUDA_VISIBLE_DEVICES` names; asks without importing torch."""
    there = len(list(Path("/proc/driver/nvidia/gpus").glob("*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return there
    return min(there, len([name for name in visible.split(",") if name.strip() not in ("", "-1")]))


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


def section_of(path: Path, name: str) -> dict[str, object]:
    """A section of a configuration, empty where it has none.

    Raises:
        UsageError: it cannot be read, or what stands there is no section.
    """
    section = read_config(path).get(name) or {}
    if not isinstance(section, dict):
        raise UsageError(f"`{name}:` is not a section", hint="start from a packaged one", path=path)
    return section


def _packaged() -> str:
    return ", ".join(sorted(path.stem for path in FOLDER.glob("*.yaml")))
