"""Options of Lightning's Trainer that it takes without a word, whatever they are."""

from __future__ import annotations

import math
from collections.abc import Mapping

from schemas.errors import UsageError

_LEAST = {
    "accumulate_grad_batches": 1, "check_val_every_n_epoch": 1, "gradient_clip_val": 0, "log_every_n_steps": 0,
    "max_epochs": -1, "max_steps": -1, "num_nodes": 1, "num_sanity_val_steps": -1,
}  # fmt: skip


def require_sensible_trainer(options: Mapping[str, object]) -> None:
    """Raises UsageError that names every option of the Trainer that is out of its range."""
    wrong = [
        f"--trainer.{name} {value} must be at least {least}"
        for name, least in _LEAST.items()
        if isinstance(value := options.get(name), int | float) and not least <= value < math.inf
    ]
    if wrong:
        raise UsageError("; ".join(wrong), hint="change the value")
