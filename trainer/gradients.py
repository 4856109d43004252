"""The gradients of a micro-batch, computed in parts, and handed over when the last of them is done."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import Parameter


class GradientSum:
    """Adds up gradients beside the parameters.

    `backward` adds to `.grad` as it goes and would leave half a gradient there where memory runs out in the middle.

    Args:
        parameters: those that are trained.
    """

    def __init__(self, parameters: Iterable[Parameter]) -> None:
        self._parameters = [item for item in parameters if item.requires_grad]
        self._sums: list[Tensor | None] = [None] * len(self._parameters)
        self._count = 0

    def add(self, loss: Tensor) -> None:
        """Adds the gradients of a scalar, or none where it raises. Frees what the scalar was computed from."""
        # backward computes in the precision of each forward operation; autocast is for those alone
        with torch.autocast(loss.device.type, enabled=False):
            gradients = torch.autograd.grad(loss, self._parameters, allow_unused=True)
        self._sums = [_added(kept, new) for kept, new in zip(self._sums, gradients, strict=True)]
        self._count += 1

    def hand_over(self) -> None:
        """Adds the sum to the parameters' `.grad`, and starts anew from zero."""
        for parameter, kept in zip(self._parameters, self._sums, strict=True):
            parameter.grad = _added(parameter.grad, kept)
        self.discard()

    def discard(self) -> int:
        """Starts anew from zero; returns how many scalars were added."""
        self._sums, count, self._count = [None] * len(self._parameters), self._count, 0
        return count


def _added(kept: Tensor | None, new: Tensor | None) -> Tensor | None:
    """The sum, in place of `kept`, where None counts as zeros."""
    if kept is None or new is None:
        return new if kept is None else kept
    return kept.add_(new)
