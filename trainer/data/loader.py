"""`EpochLoader`: the batches of one epoch on one rank, as Lightning takes them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

import torch
from torch.utils.data import DataLoader

from schemas.errors import VoxloomError
from trainer.data.batch import Batch
from trainer.data.dataset import ShardDataset, as_it_is
from trainer.data.sampler import RankSampler


class EpochLoader:
    """Reads the micro-batches of a `RankSampler`, in its order whatever the number of workers.

    Not itself a torch `DataLoader`, so that Lightning leaves the sampler alone, and because Lightning makes two
    iterators at the start of each epoch (`FitLoop.setup_data` and `_TrainingEpochLoop.on_run_start`): here the workers
    start with the first batch, so the first iterator costs nothing.

    Args:
        dataset: reads a micro-batch.
        sampler: says which.
        num_workers: processes that read; 0 reads in this one.
        pin_memory: put batches into page-locked memory, for a GPU.
    """

    def __init__(self, dataset: ShardDataset, sampler: RankSampler, *, num_workers: int, pin_memory: bool) -> None:
        self._dataset, self._sampler = dataset, sampler
        self._num_workers, self._pin_memory = num_workers, pin_memory

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[Batch]:
        """The batches. Raises FormatError where a shard is damaged."""
        for item in self._torch_loader() if self._num_workers else self._read_here():
            if isinstance(item, VoxloomError):
                raise item
            yield item

    def _read_here(self) -> Iterator[Batch | VoxloomError]:
        """The batches, read by this process; torch's loader would add a twentieth to the time."""
        for request in self._sampler:
            item = self._dataset[request]
            yield item.pin_memory() if self._pin_memory and isinstance(item, Batch) else item

    def _torch_loader(self) -> DataLoader[Batch | VoxloomError]:
        return DataLoader(
            self._dataset,
            batch_size=None,  # an item of the dataset is a whole micro-batch
            sampler=self._sampler,
            num_workers=self._num_workers,
            pin_memory=self._pin_memory,
            worker_init_fn=leave_signals_to_the_parent,
            collate_fn=as_it_is,  # type: ignore[arg-type]  # typed for lists; there is no list where batch_size is None
            multiprocessing_context=self._start_method(),
            generator=torch.Generator(),  # else the loader draws its workers' seed from the global generator
        )

    def _start_method(self) -> str | None:
        """How reading processes are started; forked where it is safe.

        Threads hold locks for which a forked process waits without end: those that fetch shards, and those of gloo. On
        two ranks, one fork in some two hundred came at such a moment.
        """
        if self._dataset.shards.is_remote:
            return "spawn"
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            _start_fork_server()
            return "forkserver"
        return None

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the place in the epoch is in the data module's state. It tells Lightning that resuming is exact."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing, as `state_dict`."""


def _start_fork_server() -> None:
    """Starts the process without threads from which others are forked, if it is not there yet.

    It imports what they need, and leaves SIGTERM alone as they do: without it, they would end.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload(["__main__", __name__])
    resource_tracker.ensure_running()  # else it is started below, and takes the mask off again
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # a new process inherits it
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def leave_signals_to_the_parent(worker: int) -> None:  # noqa: ARG001
    """What each reading process does first: it ends when the training process closes it or is gone, not by a signal.

    SIGTERM and Ctrl-C reach a whole process group, and the training process still needs a batch to end its step well.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    trainer = multiprocessing.parent_process()
    if trainer is not None and trainer.pid != os.getppid():
        # a fork server stands between; torch's worker would watch that one, which in turn waits for its workers
        threading.Thread(target=_end_with, args=(trainer,), daemon=True).start()


def _end_with(process: BaseProcess) -> None:
    process.join()
    os._exit(1)
