"""The random numbers of one micro-batch, the same whether it is computed as a whole or in parts.

What the model draws from the generator is drawn utterance by utterance (`trainer.model.draws`), so parts in order draw
what the whole draws. Dropout draws one mask for all that is computed at once: parts see other masks than the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from trainer.recipe import mixed_seed


class Chance:
    """All chance of a micro-batch.

    Args:
        seed: decides all of it.
        device: where the model draws.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._seed, self._device = seed, device
        self._state: Tensor | None = None

    @contextmanager
    def part(self, first: int) -> Iterator[torch.Generator]:
        """Gives the generator for the part that starts with utterance `first`, which goes on where the last part ended.

        A part that ended with an error is as if it had not been.
        """
        generator = torch.Generator(self._device)
        if self._state is None:
            generator.manual_seed(self._seed)
        else:
            generator.set_state(self._state)
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            # dropout draws from the global generator
            torch.manual_seed(self._seed if first == 0 else mixed_seed(self._seed, first))
            yield generator
        self._state = generator.get_state()
