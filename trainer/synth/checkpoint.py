"""What speaking needs of a checkpoint: where it lies, its header, and the model with the averaged weights.

checkpoint["voxloom"]                   schemas.checkpoint.VoiceHeader as plain types
checkpoint["hyper_parameters"]["model"] trainer.model.config.ModelConfig as a plain dict
checkpoint["state_dict"]                weights and buffers, names prefixed with `model.`
checkpoint["ema"]                       {"num_updates", "parameters"}: averaged weights, names without the prefix
"""

from __future__ import annotations

import pickle
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from schemas.checkpoint import VoiceHeader
from schemas.errors import FormatError, UsageError
from trainer.model.acoustic import AcousticModel
from trainer.model.config import ModelConfig
from trainer.model.ema import ExponentialAverage

PREFIX = "model."
_HINT = "use a checkpoint that `trainer fit` of this version wrote"

_RESUMED = (
    "voxloom", "hyper_parameters.model", "state_dict", "ema.parameters", "ema.num_updates", "skipped_steps",
    "optimizer_states", "lr_schedulers", "epoch", "global_step", "pytorch-lightning_version", "ShardDataModule",
    "loops.fit_loop.epoch_progress.current", "loops.fit_loop.epoch_progress.total",
    "loops.fit_loop.epoch_loop/state_dict", "loops.fit_loop.epoch_loop/batch_progress.current",
    "loops.fit_loop.epoch_loop/batch_progress.total", "loops.fit_loop.epoch_loop/scheduler_progress.current",
    "loops.fit_loop.epoch_loop/scheduler_progress.total",
    "loops.fit_loop.epoch_loop/automatic_optimization/optim_progress.optimizer.step",
    "loops.fit_loop.epoch_loop/automatic_optimization/optim_progress.optimizer.zero_grad",
)  # fmt: skip
"""What going on reads of a checkpoint, as paths; a slash stands for a dot within a name."""

_DAMAGES = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError, KeyError,
    OverflowError,
)  # fmt: skip
"""What `zipfile` raises on a file whose headers are not what was written."""

_MISREADINGS = (
    pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError, KeyError, TypeError, AttributeError,
    IndexError, ImportError, AssertionError, OverflowError,
)  # fmt: skip
"""What unpickling raises on a file that is whole but not of ours."""


def find_checkpoint(path: Path) -> Path:
    """The checkpoint that `path` means: itself, or of a run's folder the last, else the newest.

    Raises:
        UsageError: no such file or folder, or a folder without a checkpoint.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        raise UsageError(
            "no such checkpoint or run", hint="give a .ckpt file or a folder that `trainer fit` made", path=path
        )
    candidates = list(path.glob("checkpoints/last*.ckpt")) or list(path.rglob("*.ckpt"))
    if not candidates and not (path / "checkpoints").is_dir() and not (path / "config.yaml").is_file():
        raise UsageError("is not a run of `trainer fit`", hint="give a folder such as runs/<time>", path=path)
    if not candidates:
        raise UsageError("no checkpoint in this folder yet", hint="wait for the first one, or start again", path=path)
    return max(candidates, key=lambda candidate: (candidate.stat().st_mtime_ns, candidate.name))


def read_checkpoint(path: Path) -> Mapping[str, object]:
    """Reads a checkpoint onto the CPU without unpickling anything but tensors and plain types.

    Raises:
        FormatError: damaged (its checksums are compared first), holding more than tensors and plain types, or with
            weights that are not finite.
        OSError: it cannot be opened.
    """
    with path.open("rb") as handle:
        damage = _damage(handle)
        if damage:
            raise FormatError(f"cannot be read as a checkpoint: {damage}", hint=_HINT, path=path)
        handle.seek(0)
        content = _unpickled(handle, path)
    for name in _not_finite(content):
        raise FormatError(
            f"weights are not finite: {name}",
            hint="use an earlier checkpoint, such as best.ckpt of that run",
            path=path,
        )
    return content


def require_resumable(content: Mapping[str, object], path: Path) -> None:
    """Makes sure that training can go on from a checkpoint.

    Args:
        content: what `read_checkpoint` gave.
        path: only for messages.

    Raises:
        FormatError: something is missing, named by its path, or does not fit together.
    """
    for name in _RESUMED:
        part: object = content
        keys = [step.replace("/", ".") for step in name.split(".")]
        for depth, key in enumerate(keys):
            if not isinstance(part, Mapping) or key not in part:
                told = ".".join(keys[: depth + 1])
                raise FormatError(f"has no {told!r}, so training cannot go on from it", hint=_HINT, path=path)
            part = part[key]
    for name, kinds in (("optimizer_states", list), ("lr_schedulers", list), ("skipped_steps", int)):
        value = content[name]
        if not isinstance(value, kinds) or value == []:
            raise FormatError(f"{name!r} is empty or not what fit writes", hint=_HINT, path=path)
    for state in _listed(content["optimizer_states"]):
        if not isinstance(state, Mapping) or not state.keys() >= {"state", "param_groups"}:
            raise FormatError("'optimizer_states' has no 'state' or no 'param_groups'", hint=_HINT, path=path)
    restore(content, path)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _damage(handle: IO[bytes]) -> str | None:
    """Why a file is not a whole ZIP archive, which a checkpoint is, or None."""
    start = handle.read(4)
    if not start:
        return "it is empty"
    if start != b"PK\x03\x04":
        return "it is a file of another kind"
    try:
        with zipfile.ZipFile(handle) as archive:
            broken = archive.testzip()
    except _DAMAGES:
        return "it is damaged or cut short"
    return None if broken is None else f"it is damaged: the checksum of {broken} does not match"


def _unpickled(handle: IO[bytes], path: Path) -> Mapping[str, object]:
    try:
        content = torch.load(handle, map_location="cpu", weights_only=True)
    except _MISREADINGS as error:
        raise FormatError(
            "cannot be read as a checkpoint: it holds something other than tensors and plain types",
            hint=_HINT,
            path=path,
        ) from error
    if not isinstance(content, Mapping):
        raise FormatError(f"is not a checkpoint: it holds a {type(content).__name__}", hint=_HINT, path=path)
    return content


def _not_finite(content: Mapping[str, object]) -> Iterator[str]:
    """Names of the weights, averaged or not, that hold NaN or infinity."""
    average = content.get("ema")
    parts = {"state_dict": content.get("state_dict")}
    parts["ema"] = average.get("parameters") if isinstance(average, Mapping) else None
    for part, weights in parts.items():
        for name, value in weights.items() if isinstance(weights, Mapping) else ():
            if isinstance(value, Tensor) and value.is_floating_point() and not bool(value.isfinite().all()):
                yield f"{name} in {part}"


def restore(content: Mapping[str, object], path: Path) -> tuple[VoiceHeader, AcousticModel]:
    """Builds the model that a checkpoint describes, with its averaged weights where it has them, ready to speak.

    Args:
        content: what `read_checkpoint` gave.
        path: only for messages.

    Raises:
        FormatError: something is missing, or header, configuration and weights do not fit together.
    """
    header = VoiceHeader.from_content(_part(content, "voxloom", path), path)
    hyper_parameters = _part(content, "hyper_parameters", path)
    config = ModelConfig.from_dict(_part(hyper_parameters, "model", path))
    symbols, speakers, num_mels = header.symbols, header.speakers, header.feature_spec.num_mels
    model = AcousticModel(config, len(symbols.symbols), len(speakers), num_mels, blank_id=symbols.blank_id)
    weights = _part(content, "state_dict", path)
    own = {name.removeprefix(PREFIX): value for name, value in weights.items() if name.startswith(PREFIX)}
    try:
        model.load_state_dict({name: value for name, value in own.items() if isinstance(value, Tensor)})
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise FormatError(f"weights do not fit the model: {reason}", hint=_HINT, path=path) from error
    if "ema" in content:
        average = ExponentialAverage(model, decay=0.0)
        average.load_state_dict(_part(content, "ema", path))
        average.copy_to(model)
    return header, model.eval()


def _part(content: Mapping[str, object], name: str, path: Path) -> Mapping[str, object]:
    """A named mapping inside another. Raises FormatError where it is missing."""
    part = content.get(name)
    if not isinstance(part, Mapping):
        raise FormatError(f"has no {name!r}", hint=_HINT, path=path)
    return part
