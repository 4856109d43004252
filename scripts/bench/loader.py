"""How fast batches are read, beside the bare loop and other loaders: `python -m scripts.bench.loader [PART ...]`.

Parts: `speed` (our loader, a bare loop of pread, frombuffer and pad, lhotse Shar, webdataset; the same utterances in
one process, warm page cache), `start` (1 M rows: from opening to the first batch), `memory` (10 M rows, 1 and 4
workers).
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from dataprep.shards.npy import NPY_HEADER_BYTES
from dataprep.shards.reader import ShardSet
from scripts.bench.loader_peers import lhotse_bins, lhotse_epoch, webdataset_epoch, write_shar
from scripts.bench.loader_sets import NUM_MELS, large_index, read_mel_sizes, speech_like_set
from trainer.data.collection import ShardMix
from trainer.data.dataset import ShardDataset
from trainer.data.loader import EpochLoader
from trainer.data.plan import PlanSettings, plan_epoch
from trainer.data.planned import WholeEpoch
from trainer.data.sampler import RankSampler
from trainer.data.selection import select

NUM_UTTERANCES = 5000
BUDGET_SECONDS = 200.0
REPEATS = 10
FRAMES_PER_SECOND = 22050 / 256


def our_loader(mix: ShardMix, epoch: int, num_workers: int = 0) -> EpochLoader:
    """An epoch as `trainer fit` reads it on one rank."""
    selection = select(mix, "train")
    settings = PlanSettings(max_frames=int(BUDGET_SECONDS * FRAMES_PER_SECOND))
    plan = plan_epoch(selection.num_frames, selection.num_symbols, settings, epoch)
    sampler = RankSampler(WholeEpoch(plan), selection, rank=0, world_size=1, group_size=1)
    return EpochLoader(ShardDataset(mix), sampler, num_workers=num_workers, pin_memory=False)


def ours(mix: ShardMix) -> int:
    """Frames of an epoch of ours."""
    return sum(int(batch.mel_lengths.sum()) for batch in our_loader(mix, 0))


def bare(mix: ShardMix) -> int:
    """The same mels of the same batches with nothing around them: no JSON, no checksum, no symbols."""
    (shards,) = mix.sets
    selection = select(mix, "train")
    settings = PlanSettings(max_frames=int(BUDGET_SECONDS * FRAMES_PER_SECOND))
    plan = plan_epoch(selection.num_frames, selection.num_symbols, settings, 0)
    offsets, sizes, numbers = read_mel_sizes(shards)
    files = [os.open(shards.folder / info.name, os.O_RDONLY) for info in shards.manifest.shards]
    frames = shards.columns.frames
    total = 0
    for start, stop in zip(plan.batch_offsets[:-1].tolist(), plan.batch_offsets[1:].tolist(), strict=True):
        rows = selection.rows_at(plan.order[start:stop]).tolist()
        lengths = frames[rows].tolist()
        batch = np.zeros((len(rows), NUM_MELS, max(lengths)), np.float32)
        for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            content = os.pread(files[numbers[row]], int(sizes[row]), int(offsets[row]))
            mel = np.frombuffer(content, np.float32, offset=NPY_HEADER_BYTES).reshape(NUM_MELS, length)
            batch[place, :, :length] = mel
        total += sum(lengths)
    for file in files:
        os.close(file)
    return total


def speed() -> None:
    """Frames a second of each loader, in turns; the median over rounds of ours beside it, and the range of rounds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mix = ShardMix([ShardSet(speech_like_set(folder / "shards", NUM_UTTERANCES))])
        shar = write_shar(mix.sets[0], folder / "shar")
        bins = lhotse_bins(shar)
        contenders: dict[str, Callable[[], int]] = {
            "bare pread, frombuffer, pad": lambda: bare(mix),
            "voxloom": lambda: ours(mix),
            "lhotse Shar, DynamicBucketingSampler": lambda: lhotse_epoch(shar, BUDGET_SECONDS, bins),
            "webdataset, its decoders, padded": lambda: webdataset_epoch(mix.sets[0], BUDGET_SECONDS),
        }
        rates: dict[str, list[float]] = {name: [] for name in contenders}
        for repeat in range(-1, REPEATS):
            # back and forth: who comes after another loader finds its memory and the processor's cache in disorder
            for contender in list(contenders)[:: 1 if repeat % 2 else -1]:
                began = time.perf_counter()
                frames = contenders[contender]()
                if repeat >= 0:  # the first round warms up
                    rates[contender].append(frames / (time.perf_counter() - began))
        print("| loader | million frames a second | voxloom is | lowest and highest of the rounds |")
        print("|---|---|---|---|")
        for contender, values in rates.items():
            ratios = [mine / other for mine, other in zip(rates["voxloom"], values, strict=True)]
            print(
                f"| {contender} | {statistics.median(values) / 1e6:.2f} | {statistics.median(ratios):.2f} x "
                f"| {min(ratios):.2f} to {max(ratios):.2f} |",
                flush=True,
            )


def start() -> None:
    """From opening a set of 1 M rows to its plan and first batch."""
    with tempfile.TemporaryDirectory() as name:
        folder = large_index(Path(name), 10**6)
        began = time.perf_counter()
        mix = ShardMix([ShardSet(folder)])
        opened = time.perf_counter() - began
        next(iter(our_loader(mix, 0)))
        print("| rows | opened, s | first batch, s |")
        print("|---|---|---|")
        print(f"| 1,000,000 | {opened:.2f} | {time.perf_counter() - began:.2f} |", flush=True)


def memory() -> None:
    """Proportional memory of a training process and its workers on 10 M rows, over three epochs."""
    print("| workers | epoch | all processes, MB | of that the workers, MB |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = large_index(Path(name), 10**7)
        for num_workers in (1, 4):  # a process of its own, from which workers are forked as in training
            code = f"from scripts.bench.loader import _memory; _memory({str(folder)!r}, {num_workers})"
            subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def _memory(folder: str, num_workers: int) -> None:
    torch.set_num_threads(1)
    mix = ShardMix([ShardSet(folder)])
    for epoch in range(3):
        batches = iter(our_loader(mix, epoch, num_workers))
        for _ in range(200):
            next(batches)
        own, workers = (sum(_proportional(pid) for pid in pids) for pids in ([os.getpid()], _children()))
        print(f"| {num_workers} | {epoch} | {own + workers:.0f} | {workers:.0f} |", flush=True)
        del batches


def _children() -> Iterator[int]:
    yield from (child.pid for child in multiprocessing.active_children() if child.pid is not None)


def _proportional(pid: int) -> float:
    """Memory of a process in MB, shared pages divided by how many share them (PSS)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


PARTS: dict[str, Callable[[], None]] = {"speed": speed, "start": start, "memory": memory}

if __name__ == "__main__":
    torch.set_num_threads(1)
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
        print(flush=True)
