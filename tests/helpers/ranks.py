"""Trains on one or several gloo ranks and writes what each rank saw.

`python -m tests.helpers.ranks SHARDS OUT RANKS [MAX_BAD_SAMPLES]`; Lightning starts the other ranks with the same
command.
"""

import json
import os
import sys
from pathlib import Path

import pytorch_lightning as pl
import torch

from schemas.errors import TrainingError
from tests.helpers.runs import Saver, fit
from trainer.audit import Audit
from trainer.data.module import ShardDataModule
from trainer.quarantine import Quarantine

GROUP_SIZE = 3
MAX_FRAMES = 80


class Gradients(pl.Callback):
    """Keeps the gradients of the first step, before they are clipped."""

    def __init__(self):
        self.first = None

    def on_before_optimizer_step(self, trainer, module, optimizer):
        if self.first is None:
            self.first = {name: item.grad.clone() for name, item in module.model.named_parameters()}


def run(shards, out, num_ranks, *, ckpt_path=None, max_bad_samples=100):
    """Two epochs of step groups of three micro-batches."""
    gradients = Gradients()
    recorded = fit(
        shards,
        callbacks=[Quarantine(out), Audit(out), gradients, Saver(out)],
        ckpt_path=ckpt_path,
        data=ShardDataModule(
            str(shards),
            max_frames=MAX_FRAMES,
            group_size=GROUP_SIZE,
            num_workers=0,
            max_bad_samples=max_bad_samples,
        ),
        devices=num_ranks,
        strategy="ddp" if num_ranks > 1 else "auto",
        accumulate_grad_batches=-(-GROUP_SIZE // num_ranks),
        max_epochs=2,
    )
    return recorded, gradients.first


def steps_by_group(recordings):
    """Keys of each optimizer step over all ranks, sorted, from each rank's micro-batches."""
    groups = {}
    for recorded, accumulations in recordings:
        for place, (epoch, keys) in enumerate(recorded):
            groups.setdefault((epoch, place // accumulations), []).extend(keys)
    return [(epoch, sorted(keys)) for (epoch, _), keys in sorted(groups.items())]


def main(shards, out, num_ranks, max_bad_samples="100"):
    torch.set_num_threads(1)
    try:
        recorded, gradients = run(Path(shards), Path(out), int(num_ranks), max_bad_samples=int(max_bad_samples))
    except TrainingError as error:
        (Path(out) / f"error-{os.environ.get('LOCAL_RANK', 0)}.txt").write_text(str(error))
        return
    rank = torch.distributed.get_rank()
    torch.save(gradients, Path(out) / f"gradients-{rank}.pt")
    content = {"steps": [(step.epoch, step.keys) for step in recorded.steps], "validations": recorded.validations}
    (Path(out) / f"rank-{rank}.json").write_text(json.dumps(content))


if __name__ == "__main__":
    main(*sys.argv[1:])
