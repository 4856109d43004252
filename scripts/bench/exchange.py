"""What exchanging gradients once a step costs beside DDP's reducer: `python -m scripts.bench.exchange`.

Two gloo ranks on this machine, one thread each; a step is forward, backward and the exchange of a small batch.
"""

from __future__ import annotations

import os
import socket
import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

from trainer.data.batch import Batch
from trainer.exchange import Word, agree, average_gradients
from trainer.gradients import GradientSum
from trainer.model.acoustic import AcousticModel
from trainer.model.config import BASE, TINY

RANKS, REPEATS = 2, 12
NUM_SYMBOLS, NUM_SPEAKERS, NUM_MELS = 12, 3, 8


def made_batch(rank: int) -> Batch:
    """Four short utterances."""
    random = torch.Generator().manual_seed(rank)
    return Batch(
        keys=tuple(f"utterance-{place}" for place in range(4)),
        symbol_ids=torch.randint(1, NUM_SYMBOLS, (4, 5), generator=random),
        symbol_lengths=torch.full((4,), 5),
        mels=torch.randn((4, NUM_MELS, 30), generator=random),
        mel_lengths=torch.full((4,), 30),
        speakers=torch.zeros(4, dtype=torch.int64),
        weights=torch.ones(4),
        group_frames=4 * 30.0 * RANKS,
        group_symbols=4 * 5.0 * RANKS,
        num_slots=RANKS,
    )


def rank_main(rank: int, size: str, port: int) -> None:
    """One rank: times each kind of step in turns, and prints on the first rank."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    model = AcousticModel({"tiny": TINY, "base": BASE}[size], NUM_SYMBOLS, NUM_SPEAKERS, NUM_MELS)
    batch, parameters = made_batch(rank), list(model.parameters())
    reducing, sums = DistributedDataParallel(model), GradientSum(parameters)

    def loss(of: torch.nn.Module) -> torch.Tensor:
        for parameter in parameters:
            parameter.grad = None
        total: torch.Tensor = of(batch, torch.Generator().manual_seed(1)).total
        return total

    def ours() -> None:
        sums.add(loss(model))
        sums.hand_over()
        agree(Word(), torch.device("cpu"), RANKS)
        average_gradients(parameters, RANKS)

    steps: dict[str, Callable[[], object]] = {
        "DDP's reducer": lambda: loss(reducing).backward(),  # type: ignore[no-untyped-call]
        "one exchange a step": ours,
        "no exchange": lambda: loss(model).backward(),  # type: ignore[no-untyped-call]
    }
    took: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(REPEATS):
        for name, step in steps.items():
            torch.distributed.barrier()
            began = time.perf_counter()
            step()
            torch.distributed.barrier()
            took[name].append(time.perf_counter() - began)
    if rank == 0:
        medians = {name: statistics.median(values[2:]) for name, values in took.items()}
        count = sum(parameter.numel() for parameter in parameters)
        told = " | ".join(f"{median / medians[next(iter(steps))]:.2f} x" for median in medians.values())
        print(f"| {size}, {count / 1e6:.1f} M parameters | {told} |", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print("| model | DDP's reducer | one exchange a step | no exchange |\n|---|---|---|---|", flush=True)
    for chosen in ("tiny", "base"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            number = free.getsockname()[1]
        spawn(rank_main, args=(chosen, number), nprocs=RANKS)  # type: ignore[no-untyped-call]
