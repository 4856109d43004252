"""Exponential moving average of a model's parameters: the weights that are kept for speaking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypedDict

import torch
from torch import Tensor, nn

from schemas.errors import FormatError


class AverageState(TypedDict):
    """What a checkpoint keeps of the average."""

    num_updates: int
    parameters: dict[str, Tensor]


class ExponentialAverage:
    """Averages the parameters of a model by their names, starting from what they are now.

    The decay warms up as `min(decay, (1 + n) / (10 + n))` at update n, so that a short run forgets its beginning.

    Args:
        model: whose `named_parameters()` are averaged; every call takes this model or one of the same shape.
        decay: share of the average that each update keeps, once warmed up.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.num_updates = 0
        self.parameters = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Moves the average towards the model; call it after each optimizer step."""
        self.num_updates += 1
        decay = min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))
        names, current = zip(*model.named_parameters(), strict=True)
        averages = [self._on(parameter.device, name) for name, parameter in zip(names, current, strict=True)]
        torch._foreach_lerp_(averages, [parameter.detach() for parameter in current], 1 - decay)

    @torch.no_grad()
    def copy_to(self, model: nn.Module) -> None:
        """Overwrites the model's parameters with the average."""
        for name, parameter in model.named_parameters():
            parameter.copy_(self.parameters[name])

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The model speaks with the average inside the `with`, and has its own parameters back after it."""
        own = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
        self.copy_to(model)
        try:
            yield
        finally:
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    parameter.copy_(own[name])

    def state_dict(self) -> AverageState:
        """What `load_state_dict` takes: plain types and tensors."""
        return {"num_updates": self.num_updates, "parameters": dict(self.parameters)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Takes over a state of the same model.

        Raises:
            FormatError: the parameters differ in name or shape; the message names the first.
        """
        num_updates, parameters = state.get("num_updates"), state.get("parameters")
        if not isinstance(num_updates, int) or not isinstance(parameters, Mapping):
            raise FormatError(
                "the averaged weights are not {num_updates, parameters}",
                hint="use a checkpoint that `trainer fit` wrote",
            )
        for name in sorted(self.parameters.keys() | parameters.keys()):
            mine, theirs = self.parameters.get(name), parameters.get(name)
            if mine is None or not isinstance(theirs, Tensor) or mine.shape != theirs.shape:
                raise FormatError(
                    f"averaged weight {name!r} is {_shape(theirs)} in the checkpoint and {_shape(mine)} in the model",
                    hint="use the model configuration that the checkpoint was trained with",
                )
        self.num_updates = num_updates
        self.parameters = {name: parameters[name].detach().clone() for name in self.parameters}

    def _on(self, device: torch.device, name: str) -> Tensor:
        """The average of one parameter, moved to the model's device where the model has been moved."""
        if self.parameters[name].device != device:
            self.parameters[name] = self.parameters[name].to(device)
        return self.parameters[name]


def _shape(tensor: object) -> str:
    return str(tuple(tensor.shape)) if isinstance(tensor, Tensor) else "missing"
