"""`trainer fit`: a LightningCLI for the voice: the shard set first, packaged configurations, a folder for each run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException
from pytorch_lightning.callbacks import Callback

from schemas.errors import FormatError, IdentityError, UsageError
from trainer.audit import Audit
from trainer.commands.configs import config_path, read_config
from trainer.commands.endings import told_endings
from trainer.commands.fit_arguments import FitArguments
from trainer.commands.run_folder import run_folder
from trainer.commands.shard_folder import open_shards
from trainer.commands.voice_cli import VoiceCLI, silence_lightning, usage_error
from trainer.lost_ranks import LostRanks
from trainer.probe import Probe
from trainer.synth.checkpoint import find_checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOutcome:
    """What a run left behind."""

    run: Path
    """Its folder."""
    steps: int
    """Optimizer steps since the run's first start."""
    new_steps: int
    """Those of them that this command trained."""
    is_first_rank: bool
    """Whether this process is the one that talks."""

    def has(self, name: str) -> bool:
        """Whether the run holds a checkpoint of that name."""
        return (self.run / "checkpoints" / f"{name}.ckpt").is_file()


def fit(arguments: Sequence[str]) -> FitOutcome:
    """Trains on one or more shard sets.

    Args:
        arguments: the shard sets; then options of LightningCLI, where `--config` may also name a packaged
            configuration, and `--audit`, `--probe` and `--reset-data`.

    Raises:
        UsageError: an option is unknown or its value wrong, or a resumed run has nothing left to train.
        FormatError, IdentityError, TrainingError: as the data module and the module raise them.
        MachineError: a checkpoint could not be written, or a process that reads data or another rank was lost.
        SystemExit: after SIGTERM, with status 143.
    """
    given = FitArguments.of(arguments)
    if not any(argument.startswith("--print_config") for argument in given.rest):
        for location in given.shards:
            if "://" not in location:  # what is far away is opened once, by the data module
                open_shards(Path(location)).close()  # a wrong folder is told before anything is made
    silence_lightning()
    configuration, options = _with_config(given)
    with run_folder() as (run, is_handed_down), told_endings(given.location, run, is_first_rank=not is_handed_down):
        try:
            cli = VoiceCLI(
                run,
                ["fit", *options],
                configuration="" if is_handed_down else configuration,
                callbacks=[LostRanks(run, given.location), *_asked_for(given, run)],
            )
        except MisconfigurationException as error:
            raise usage_error(" ".join(str(error).split())) from error
        except (UsageError, FormatError, IdentityError):
            if not is_handed_down and not any(run.rglob("*.ckpt")):
                shutil.rmtree(run, ignore_errors=True)  # it was refused: nothing but its configuration is there
            raise
    steps = cli.trainer.global_step
    return FitOutcome(
        run=run, steps=steps, new_steps=steps - cli.steps_before, is_first_rank=cli.trainer.is_global_zero
    )


def _asked_for(given: FitArguments, run: Path) -> list[Callback]:
    """Callbacks of the flags."""
    return [*([Probe()] if given.probe else []), *([Audit(run)] if given.audit else [])]


def _with_config(given: FitArguments) -> tuple[str, list[str]]:
    """What to say of the configuration; and the options, with configurations as files before all else."""
    configs, rest = given.configs, list(given.rest)
    if given.checkpoint is not None:
        checkpoint = find_checkpoint(Path(given.checkpoint))
        rest += ["--ckpt_path", str(checkpoint)]
        own = checkpoint.parent.parent / "config.yaml"
        if not configs and own.is_file():
            configs = (str(own),)
    told = ", ".join(configs)
    if not configs:
        configs = ("base",) if torch.cuda.is_available() else ("tiny",)
        reason = "there is a GPU" if configs == ("base",) else "there is no GPU"
        told = f"{configs[0]}, since {reason}; --config chooses another"
    paths = [config_path(name) for name in configs]
    for path in paths:
        read_config(path)
    files = [item for path in paths for item in ("--config", str(path))]
    return told, [*files, *given.shards_option, *rest]
