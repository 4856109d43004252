"""What ranks tell each other, once each optimizer step: gradients, how much fits into memory, whether to stop.

Not inside the backward pass, as `DistributedDataParallel` does it: a rank that computes a micro-batch in parts has more
passes than the others, and each rank must take part in each exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import pytorch_lightning as pl
import torch
import torch.distributed as dist
from pytorch_lightning.strategies import DDPStrategy
from torch import Tensor
from torch.nn import Parameter
from torch.nn.parallel import DistributedDataParallel

from schemas.errors import UsageError

BUCKET_BYTES = 25 << 20
"""Gradients sent at once: few messages, and one of them of memory on top."""
_NO_LIMIT = 2**62


class Stop(IntEnum):
    """Whether the run is asked to end after the step that is being computed."""

    NO = 0
    INTERRUPTED = 1
    """By Ctrl-C."""
    TERMINATED = 2
    """By SIGTERM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a rank says with a step's gradients, or what all have said."""

    stop: Stop = Stop.NO
    """The most urgent wish counts."""
    limit: int | None = None
    """Padded frames that fit into memory; the least counts."""
    has_news: bool = False
    """Whether any rank has something to tell, which the others then ask for."""

    def to_tensor(self, device: torch.device) -> Tensor:
        """As int64 [3], of which the largest of each counts."""
        limit = _NO_LIMIT if self.limit is None else self.limit
        return torch.tensor([int(self.stop), -limit, int(self.has_news)], dtype=torch.int64, device=device)

    @classmethod
    def from_tensor(cls, values: Tensor) -> Word:
        """From what `to_tensor` gave."""
        stop, limit, has_news = values.tolist()
        return cls(stop=Stop(stop), limit=None if limit == -_NO_LIMIT else -limit, has_news=bool(has_news))


def switch_off_reducer(trainer: pl.Trainer) -> None:
    """Makes `DistributedDataParallel` exchange nothing, in the backward pass or before the forward pass.

    It has sent rank 0's parameters and buffers to the others when it was made; no step changes the buffers.

    Raises:
        UsageError: several ranks by another strategy than DDP, which would exchange gradients in its own way.
    """
    strategy = trainer.strategy
    if not isinstance(strategy, DDPStrategy):
        if trainer.world_size > 1:
            raise UsageError(f"the strategy {type(strategy).__name__} is not supported", hint="--trainer.strategy ddp")
        return
    wrapper = strategy.model
    assert isinstance(wrapper, DistributedDataParallel)
    wrapper.require_backward_grad_sync = False
    wrapper.require_forward_param_sync = False


def average_gradients(parameters: Sequence[Parameter], world_size: int) -> None:
    """Replaces each gradient by its mean over the ranks. One that a rank does not have counts as zeros there."""
    sent: list[tuple[list[Parameter], Tensor, dist.Work]] = []
    for bucket in _buckets(parameters):
        flat = torch.cat([_gradient(item).reshape(-1) for item in bucket])
        for item in bucket:
            item.grad = None  # it is in the bucket now
        sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))
    for bucket, flat, work in sent:
        work.wait()
        flat.div_(world_size)
        for item, gradient in zip(bucket, torch.split(flat, [item.numel() for item in bucket]), strict=True):
            item.grad = gradient.view_as(item)


def _buckets(parameters: Sequence[Parameter]) -> Iterator[list[Parameter]]:
    """Parameters of one type side by side, of `BUCKET_BYTES` or one parameter at most."""
    bucket: list[Parameter] = []
    size = 0
    for item in parameters:
        if bucket and (size + item.nbytes > BUCKET_BYTES or item.dtype != bucket[0].dtype):
            yield bucket
            bucket, size = [], 0
        bucket.append(item)
        size += item.nbytes
    if bucket:
        yield bucket


def _gradient(parameter: Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def agree(word: Word, device: torch.device, world_size: int) -> Word:
    """What all ranks have said; every one of them has to ask."""
    if world_size == 1:
        return word
    values = word.to_tensor(device)
    dist.all_reduce(values, op=dist.ReduceOp.MAX)
    return Word.from_tensor(values)


def gather_news(news: Sequence[Any], world_size: int) -> list[Any]:
    """The news of all ranks, in their order; every one of them has to ask."""
    if world_size == 1:
        return list(news)
    gathered: list[list[Any]] = [[]] * world_size
    dist.all_gather_object(gathered, list(news))
    return [item for items in gathered for item in items]
