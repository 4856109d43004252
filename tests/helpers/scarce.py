"""A model whose memory runs out above a number of padded frames, and runs of it on one or several gloo ranks.

`python -m tests.helpers.scarce SHARDS OUT RANKS SCARCE_RANK FITTING`; Lightning starts the other ranks with the same
command. Each rank writes what it saw, or the error it ended with.
"""

import dataclasses
import json
import sys
import warnings
from pathlib import Path

import pytorch_lightning as pl
import torch

from schemas.errors import VoxloomError
from tests.helpers.runs import SMALL, fit
from trainer.data.module import ShardDataModule
from trainer.lit import VoiceModule
from trainer.memory import padded_frames

STILL = dataclasses.replace(SMALL, dropout=0.0, duration_dropout=0.0)  # dropout draws anew for each part
MAX_FRAMES = 150


class NoRoomBackwards(torch.autograd.Function):
    @staticmethod
    def forward(_, value):
        return value.clone()

    @staticmethod
    def backward(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


class Scarce(VoiceModule):
    """Computes no more than `fitting` padded frames at once; in forward or in backward, it raises what torch raises."""

    def __init__(self, fitting, *, where="forward", config=STILL, **options):
        super().__init__(config, warmup_steps=4, **options)
        self.fitting, self.where = fitting, where
        self.computed, self.failed = [], []

    def losses(self, batch, generator, weights=None):
        size = padded_frames(batch)
        if size > self.fitting:
            self.failed.append(size)
            if self.where == "forward":
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        self.computed.append(size)
        losses = super().losses(batch, generator, weights)
        if size > self.fitting:
            return dataclasses.replace(losses, total=NoRoomBackwards.apply(losses.total))
        return losses


class Gradients(pl.Callback):
    """The gradients of each step, before they are clipped."""

    def __init__(self):
        self.steps = []

    def on_before_optimizer_step(self, trainer, module, optimizer):
        self.steps.append({name: item.grad.clone() for name, item in module.model.named_parameters()})


def data(shards, **options):
    return ShardDataModule(str(shards), max_frames=MAX_FRAMES, num_workers=0, **options)


def main(shards, out, num_ranks, scarce_rank, fitting):
    torch.set_num_threads(1)
    out, gradients = Path(out), Gradients()
    module = Scarce(10**9)

    class OnOneRank(pl.Callback):
        def on_fit_start(self, trainer, module):
            if trainer.global_rank == int(scarce_rank):
                module.fitting = int(fitting)

    content = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            recorded = fit(
                shards, module=module, callbacks=[OnOneRank(), gradients], data=data(shards, group_size=3),
                devices=int(num_ranks), strategy="ddp", accumulate_grad_batches=-(-3 // int(num_ranks)), max_epochs=1,
            )  # fmt: skip
            content["keys"] = [step.keys for step in recorded.steps]
        except VoxloomError as error:
            content["error"] = [str(error), error.hint]
    content["limit"] = module.budget.limit
    content["warned"] = [str(item.message) for item in caught if "memory ran out" in str(item.message)]
    rank = module.budget.rank
    torch.save(gradients.steps, out / f"gradients-{rank}.pt")
    (out / f"rank-{rank}.json").write_text(json.dumps(content))


if __name__ == "__main__":
    main(*sys.argv[1:])
