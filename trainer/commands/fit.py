"""`trainer fit`: a LightningCLI for the voice: the shard set first, packaged configurations, a folder for each run."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException

from schemas.errors import FormatError, IdentityError, UsageError
from trainer.commands.configs import config_path, read_config
from trainer.commands.endings import told_endings
from trainer.commands.run_folder import run_folder
from trainer.commands.shard_folder import open_shards
from trainer.commands.voice_cli import VoiceCLI, silence_lightning, usage_error
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


def fit(shards: Path, arguments: list[str]) -> FitOutcome:
    """Trains on a shard set.

    Args:
        shards: folder of the shard set.
        arguments: options of LightningCLI; `--config` may also name a packaged configuration.

    Raises:
        UsageError: an option is unknown or its value wrong, or a resumed run has nothing left to train.
        FormatError, IdentityError, TrainingError: as the data module and the module raise them.
        MachineError: a checkpoint could not be written, or a process that reads data was lost.
        SystemExit: after SIGTERM, with status 143.
    """
    if not any(argument.startswith("--print_config") for argument in arguments):
        open_shards(shards).close()  # a wrong folder is told before anything is made
    silence_lightning()
    configuration, given = _with_config(shards, arguments)
    with run_folder() as (run, is_handed_down), told_endings(shards, run, is_first_rank=not is_handed_down):
        try:
            cli = VoiceCLI(run, ["fit", *given], configuration="" if is_handed_down else configuration)
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


def _with_config(shards: Path, arguments: list[str]) -> tuple[str, list[str]]:
    """What to say of the configuration; and the arguments, with configurations as files before all else."""
    configs, rest = _taken_out(arguments, ("--config", "-c"))
    checkpoints, rest = _taken_out(rest, ("--ckpt_path",))
    if checkpoints:
        checkpoint = find_checkpoint(Path(checkpoints[-1]))
        rest = [*rest, "--ckpt_path", str(checkpoint)]
        own = checkpoint.parent.parent / "config.yaml"
        if not configs and own.is_file():
            configs = [str(own)]
    told = ", ".join(configs)
    if not configs:
        configs = ["base" if torch.cuda.is_available() else "tiny"]
        reason = "there is a GPU" if configs == ["base"] else "there is no GPU"
        told = f"{configs[0]}, since {reason}; --config chooses another"
    paths = [config_path(name) for name in configs]
    for path in paths:
        read_config(path)
    files = [item for path in paths for item in ("--config", str(path))]
    return told, [*files, "--data.shards", str(shards), *rest]


def _taken_out(arguments: list[str], names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Values of an option, and the arguments without it. Raises UsageError where a value is missing."""
    values: list[str] = []
    rest: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, value = argument.partition("=")
        if name not in names:
            rest.append(argument)
            continue
        value = value if equals else next(remaining, "")
        if not value:
            raise UsageError(f"{name} needs a value", hint=f"such as {name} tiny")
        values.append(value)
    return values, rest
