"""What a training step takes from its number alone: its learning rate and its seed."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

Schedule = Literal["constant", "inverse-sqrt"]


def learning_rate_factor(step: int, *, warmup_steps: int, schedule: Schedule) -> float:
    """Factor on the learning rate at an optimizer step, counted from 0.

    >>> [learning_rate_factor(step, warmup_steps=4, schedule="constant") for step in (0, 1, 3, 4, 99)]
    [0.25, 0.5, 1.0, 1.0, 1.0]
    >>> learning_rate_factor(15, warmup_steps=4, schedule="inverse-sqrt")
    0.5
    """
    warmup = max(warmup_steps, 1)
    if step + 1 <= warmup:
        return (step + 1) / warmup
    return math.sqrt(warmup / (step + 1)) if schedule == "inverse-sqrt" else 1.0


def mixed_seed(*numbers: int) -> int:
    """One seed out of several numbers; none of their sums or orders collide. From 0 to 2^63 - 1."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
