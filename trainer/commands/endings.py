"""How a run ends that is ended from outside: in two lines that say how to go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytorch_lightning.utilities.exceptions import SIGTERMException

from dataprep.console import end
from schemas.errors import MachineError, TrainingError
from trainer.callbacks import how_to_go_on
from trainer.lost_ranks import LOST, is_lost_rank

_TERMINATED = 143  # as a shell reports SIGTERM


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
            raise MachineError(LOST, hint=how_to_go_on(run, shards)) from error
        raise
