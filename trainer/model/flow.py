"""Conditional flow matching: straight paths from noise to mel, what the decoder learns on them, and how to follow it.

Lipman et al. 2022 (https://arxiv.org/abs/2210.02747), optimal-transport path of section 4.1:
x_t = (1 - (1 - sigma) t) z + t x_1, whose velocity is x_1 - (1 - sigma) z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

Schedule = Literal["uniform", "cosine"]
Velocity = Callable[[Tensor, Tensor], Tensor]
"""(x [B, M, T], times [B]) -> velocity [B, M, T]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTarget:
    """A point on the path of each utterance, and the velocity there."""

    x: Tensor
    """Points [B, M, T]."""
    times: Tensor
    """Where on the path [B], from 0 to 1."""
    velocity: Tensor
    """Velocity to learn [B, M, T]."""


def flow_target(mels: Tensor, noise: Tensor, times: Tensor, sigma_min: float) -> FlowTarget:
    """The training pair of mels [B, M, T] (normalised), standard normal noise [B, M, T] and times [B]."""
    t = times[:, None, None]
    return FlowTarget(
        x=(1 - (1 - sigma_min) * t) * noise + t * mels, times=times, velocity=mels - (1 - sigma_min) * noise
    )


def time_grid(num_steps: int, schedule: Schedule) -> list[float]:
    """`num_steps` + 1 times from 0 to 1; `cosine` takes smaller steps near the noise.

    >>> time_grid(2, "uniform")
    [0.0, 0.5, 1.0]
    """
    shares = [step / num_steps for step in range(num_steps + 1)]
    return shares if schedule == "uniform" else [1 - math.cos(share * math.pi / 2) for share in shares]


def sample_flow(velocity: Velocity, noise: Tensor, num_steps: int, schedule: Schedule = "uniform") -> Tensor:
    """Follows the flow from noise to mel by Euler's method.

    Args:
        velocity: the vector field.
        noise: starting points [B, M, T].
        num_steps: steps, at least 1; each calls `velocity` once.
        schedule: how the steps are spread over the path.

    Returns:
        [B, M, T].
    """
    grid = time_grid(num_steps, schedule)
    x = noise
    for start, end in pairwise(grid):
        times = torch.full((noise.shape[0],), start, device=noise.device)
        x = x + (end - start) * velocity(x, times)
    return x
