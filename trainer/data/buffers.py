"""Memory for batches, used again as soon as nobody holds the batch that was in it."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import get_worker_info

_KEPT = 4


class BatchBuffers:
    """Gives float32 tensors to be filled.

    In a reading process they lie in shared memory, so that sending them is no copy. Else they come from a few buffers
    that are kept: filling pages for the first time takes a third of the time of reading a batch.
    """

    def __init__(self) -> None:
        self._buffers: list[NDArray[np.float32]] = []
        # what a buffer counts that only a list holds; another Python counts otherwise
        self._nobody = _references([np.empty(1, np.float32)])[0]

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]  # a copy in another process begins with nothing

    def empty(self, *shape: int) -> Tensor:
        """A tensor of this shape with any content."""
        count = math.prod(shape)
        if get_worker_info() is not None:
            storage = torch.UntypedStorage._new_shared(4 * count, device="cpu")  # type: ignore[no-untyped-call]
            return torch.empty(0, dtype=torch.float32).set_(storage).view(shape)
        return torch.from_numpy(self._unused(count)[:count].reshape(shape))

    def _unused(self, count: int) -> NDArray[np.float32]:
        """A buffer of at least so many numbers; one that is too small, or that was kept in vain, is let go."""
        unused = [place for place, held in enumerate(_references(self._buffers)) if held == self._nobody]
        for place in unused:
            if len(self._buffers[place]) >= count:
                return self._buffers[place]
        if unused:
            del self._buffers[unused[0]]
        new = np.empty(count + count // 8, np.float32)
        if len(self._buffers) < _KEPT:
            self._buffers.append(new)
        return new


def _references(buffers: list[NDArray[np.float32]]) -> list[int]:
    """How many references there are to each."""
    return [sys.getrefcount(buffer) for buffer in buffers]
