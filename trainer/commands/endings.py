"""How a run ends that is ended from outside: in two lines that say how to go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytorch_lightning.utilities.exceptions import SIGTERMException

from dataprep.console import end
from schemas.errors import MachineError
from trainer.callbacks import how_to_go_on

_TERMINATED = 143  # as a shell reports SIGTERM


@contextmanager
def told_endings(shards: Path, run: Path, *, is_first_rank: bool) -> Iterator[None]:
    """Tells what ended the run that the block trains.

    Raises:
        SystemExit: with status 143 after SIGTERM, whose checkpoint was written between two steps.
        MachineError: a process that reads data was killed.
    """
    try:
        yield
    except SIGTERMException:  # a SystemExit without a status, which would be 0
        if not is_first_rank:
            raise SystemExit(_TERMINATED) from None
        end("terminated", how_to_go_on(run, shards), _TERMINATED)
    except RuntimeError as error:
        # torch raises it from its handler of SIGCHLD, in whatever line the training is at
        if "DataLoader worker" not in str(error):
            raise
        raise MachineError(
            "a process that reads data was lost (killed, perhaps because memory ran out)",
            hint=how_to_go_on(run, shards),
        ) from error
