"""How a run ends that is ended from outside: in two lines that say how to go on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

from pytorch_lightning.utilities.exceptions import SIGTERMException

from dataprep.console import end
from schemas.errors import MachineError, TrainingError
from trainer.going_on import how_to_go_on
from trainer.lost_ranks import LOST, is_lost_rank

_TERMINATED = 143  # as a shell reports SIGTERM
_MOMENT_SECONDS = 0.5


@contextmanager
def told_endings(shards: str, run: Path, *, is_first_rank: bool) -> Iterator[None]:
    """Tells what ended the run that the block trains; what ended all ranks, the first alone tells.

    Args:
        shards: the shard sets, as they were given.
        run: folder of the run.
        is_first_rank: whether this process is the one that was started by hand.

    Raises:
        SystemExit: with status 143 after SIGTERM, whose checkpoint was written between two steps; or of another rank
            than the first, where that tells why.
        MachineError: a process that reads data was killed, or another rank is gone.
    """
    parent, others = os.getppid(), set(multiprocessing.active_children())
    try:
        yield
    except SIGTERMException:  # a SystemExit without a status, which would be 0
        if not is_first_rank:
            raise SystemExit(_TERMINATED) from None
        end("terminated", how_to_go_on(run, shards), _TERMINATED)
    except TrainingError as error:
        if is_first_rank:
            raise
        raise SystemExit(error.exit_status) from None  # all ranks have come to it
    except RuntimeError as error:
        # torch raises it from its handler of SIGCHLD, in whatever line the training is at
        if "DataLoader worker" in str(error):
            raise MachineError(
                "a process that reads data was lost (killed, perhaps because memory ran out)",
                hint=how_to_go_on(run, shards),
            ) from error
        if is_lost_rank(error):
            if not is_first_rank and _is_alive(parent):
                raise SystemExit(MachineError.exit_status) from None  # the first rank tells
            raise MachineError(LOST, hint=how_to_go_on(run, shards)) from error
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            _end(set(multiprocessing.active_children()) - others)


def _end(readers: set[BaseProcess]) -> None:
    """Kills what still reads data for this process: it leaves signals alone, and an exit would wait for it."""
    if not readers:
        return
    told = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's handler would call it a lost worker
    for process in readers:
        process.kill()
        process.join()
    if told is not None:
        signal.signal(signal.SIGCHLD, told)


def _is_alive(parent: int) -> bool:
    """Whether the process that started this one is there still; it is asked a moment after its sockets have closed."""
    time.sleep(_MOMENT_SECONDS)
    return os.getppid() == parent
