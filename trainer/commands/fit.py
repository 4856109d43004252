"""`trainer fit`: a LightningCLI for the voice: the shard set first, packaged configurations, a folder for each run."""

from __future__ import annotations

import difflib
import os
import re
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonargparse
import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException
from pytorch_lightning.cli import ArgsType, LightningArgumentParser, LightningCLI
from pytorch_lightning.loggers import TensorBoardLogger

from dataprep.shards.reader import ShardSet
from schemas.errors import UsageError
from trainer.callbacks import AtomicCheckpointIO, InterruptStop, LastCheckpoint, SampleWriter, best_checkpoint
from trainer.commands.configs import config_path
from trainer.data.module import ShardDataModule
from trainer.lit import VoiceModule
from trainer.synth.checkpoint import find_checkpoint

_RUN_VARIABLE = "VOXLOOM_RUN"
"""Hands the run's folder down to the other ranks: Lightning starts them with the same command, a moment later."""

_NOISE = (
    r".*isinstance\(treespec, LeafSpec\)` is deprecated",  # Lightning's own affair with torch
    r"The number of training batches .* is smaller than the logging interval",  # steps are logged over epochs
    r"Total length of `list` across ranks is zero",  # told better by the data module
    r"The dirpath has changed",  # a resumed run has its own folder
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOutcome:
    """What a run left behind."""

    run: Path
    """Its folder."""
    steps: int
    """Optimizer steps."""
    is_first_rank: bool
    """Whether this process is the one that talks."""


class VoiceCLI(LightningCLI):
    """LightningCLI with one subcommand, errors of ours, and the run's folder.

    Args:
        run: folder of the run.
        args: arguments, `fit` first.
    """

    def __init__(self, run: Path, args: list[str]) -> None:
        self.run = run
        checkpoints = run / "checkpoints"
        quiet: dict[str, Any] = {"exit_on_error": False, "allow_abbrev": False}
        super().__init__(
            VoiceModule,
            ShardDataModule,
            args=args,
            trainer_defaults={
                "callbacks": [
                    InterruptStop(),
                    SampleWriter(),
                    best_checkpoint(checkpoints),
                    LastCheckpoint(checkpoints),
                ],
                "reload_dataloaders_every_n_epochs": 1,
                "use_distributed_sampler": False,
            },
            save_config_kwargs={"overwrite": True},
            parser_kwargs={**quiet, "prog": "trainer", "fit": {**quiet, "prog": "trainer fit SHARDS"}},
            auto_configure_optimizers=False,
        )

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Only `fit`, whose model and data are ours."""
        return {"fit": {"model", "train_dataloaders", "val_dataloaders", "datamodule", "weights_only"}}

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        """Parses; what is wrong is told in one line. Raises UsageError."""
        try:
            self.config = parser.parse_args(args)  # type: ignore[arg-type]  # a list, as __init__ was given
        except jsonargparse.ArgumentError as error:
            raise self._told(error) from error

    def _told(self, error: jsonargparse.ArgumentError) -> UsageError:
        message = " ".join(str(error).split())
        unknown = re.search(r"[Uu]nrecognized arguments: (--[\w.]+)", message)
        if unknown is None:
            return UsageError(message, hint="`trainer fit --help` lists every option")
        known = [option for action in self._parser("fit")._actions for option in action.option_strings]
        nearest = difflib.get_close_matches(unknown[1], known, n=1)
        hint = f"did you mean {nearest[0]}? " if nearest else ""
        return UsageError(f"no such option: {unknown[1]}", hint=f"{hint}`trainer fit --help` lists every option")

    def _parse_ckpt_path(self) -> None:
        """Leaves the options as given: Lightning's own would replace them all by those stored in the checkpoint."""

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:  # noqa: ANN401
        """The Trainer, with the run's folder, its TensorBoard log and atomic checkpoints."""
        kwargs["default_root_dir"] = str(self.run)
        config = self.config["fit"]["trainer"]
        if config.get("logger") in (None, True):
            kwargs["logger"] = TensorBoardLogger(
                str(self.run.parent), name=self.run.name, version="", default_hp_metric=False
            )
        plugins = config.get("plugins") or []
        kwargs["plugins"] = [*(plugins if isinstance(plugins, list) else [plugins]), AtomicCheckpointIO()]
        return super().instantiate_trainer(**kwargs)

    def fit(self, **kwargs: Any) -> None:  # noqa: ANN401
        """Trains. Checkpoints are read without unpickling anything but tensors and plain types."""
        self.trainer.fit(weights_only=True, **kwargs)


def fit(shards: Path, arguments: list[str]) -> FitOutcome:
    """Trains on a shard set.

    Args:
        shards: folder of the shard set.
        arguments: options of LightningCLI; `--config` may also name a packaged configuration.

    Raises:
        UsageError: an option is unknown or its value wrong.
        FormatError, IdentityError, TrainingError: as the data module and the module raise them.
    """
    if not any(argument.startswith(("--print_config", "--help")) for argument in arguments):
        ShardSet(shards).close()  # a wrong folder is told before anything is made
    for message in _NOISE:
        warnings.filterwarnings("ignore", message)
    run, is_handed_down = _run_folder()
    if not is_handed_down:
        os.environ[_RUN_VARIABLE] = str(run)
    try:
        cli = VoiceCLI(
            run, ["fit", *_with_config(shards, arguments, tell=not is_handed_down and arguments != ["--help"])]
        )
    except MisconfigurationException as error:
        raise UsageError(" ".join(str(error).split()), hint="`trainer fit --help` lists every option") from error
    finally:
        if not is_handed_down:
            del os.environ[_RUN_VARIABLE]
    return FitOutcome(run=run, steps=cli.trainer.global_step, is_first_rank=cli.trainer.is_global_zero)


def _run_folder() -> tuple[Path, bool]:
    """The folder of this run, and whether it was handed down by the process that started this one."""
    if _RUN_VARIABLE in os.environ:
        return Path(os.environ[_RUN_VARIABLE]), True
    name = time.strftime("%Y-%m-%d_%H-%M-%S")
    run, number = Path("runs", name), 1
    while run.exists():
        number += 1
        run = Path("runs", f"{name}-{number}")
    return run, False


def _with_config(shards: Path, arguments: list[str], *, tell: bool) -> list[str]:
    """The arguments with configurations as files, the first of them before all else, and the shard set."""
    configs, rest = _taken_out(arguments, ("--config", "-c"))
    checkpoints, rest = _taken_out(rest, ("--ckpt_path",))
    if checkpoints:
        checkpoint = find_checkpoint(Path(checkpoints[-1]))
        rest = [*rest, "--ckpt_path", str(checkpoint)]
        own = checkpoint.parent.parent / "config.yaml"
        if not configs and own.is_file():
            configs = [str(own)]
    if not configs:
        configs = ["base" if torch.cuda.is_available() else "tiny"]
        reason = "there is a GPU" if configs == ["base"] else "there is no GPU"
        _say(f"configuration: {configs[0]}, since {reason} (--config chooses another)", tell)
    else:
        _say(f"configuration: {', '.join(configs)}", tell)
    files = [item for name in configs for item in ("--config", str(config_path(name)))]
    return [*files, "--data.shards", str(shards), *rest]


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


def _say(message: str, tell: bool) -> None:
    if tell:
        sys.stderr.write(message + "\n")
