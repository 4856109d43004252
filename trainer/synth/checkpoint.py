"""What speaking needs of a checkpoint: where it lies, its header, and the model with the averaged weights.

checkpoint["voxloom"]                   schemas.checkpoint.VoiceHeader as plain types
checkpoint["hyper_parameters"]["model"] trainer.model.config.ModelConfig as a plain dict
checkpoint["state_dict"]                weights and buffers, names prefixed with `model.`
checkpoint["ema"]                       {"num_updates", "parameters"}: averaged weights, names without the prefix
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from schemas.checkpoint import VoiceHeader
from schemas.errors import FormatError, UsageError
from trainer.model.acoustic import AcousticModel
from trainer.model.config import ModelConfig
from trainer.model.ema import ExponentialAverage

PREFIX = "model."
_HINT = "use a checkpoint that `trainer fit` of this version wrote"


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
    if not candidates:
        raise UsageError("no checkpoint in this folder yet", hint="wait for the first one, or train again", path=path)
    return max(candidates, key=lambda candidate: (candidate.stat().st_mtime_ns, candidate.name))


def read_checkpoint(path: Path) -> Mapping[str, object]:
    """Reads a checkpoint onto the CPU without unpickling anything but tensors and plain types.

    Raises:
        FormatError: damaged, or holding more than tensors and plain types.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise FormatError(f"cannot be read as a checkpoint: {reason}", hint=_HINT, path=path) from error
    if not isinstance(content, Mapping):
        raise FormatError("is not a checkpoint", hint=_HINT, path=path)
    return content


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
