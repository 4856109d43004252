"""`VoiceCLI`: LightningCLI with one subcommand, the run's folder, and errors of one line."""

from __future__ import annotations

import difflib
import logging
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonargparse
import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback, ProgressBar
from pytorch_lightning.cli import ArgsType, LightningArgumentParser, LightningCLI
from pytorch_lightning.loggers import TensorBoardLogger

from schemas.errors import UsageError
from trainer.callbacks import AtomicCheckpointIO, LastCheckpoint, best_checkpoint
from trainer.commands.limits import Limits
from trainer.commands.step_groups import told_step_groups
from trainer.commands.trainer_options import require_sensible_trainer
from trainer.data.module import ShardDataModule
from trainer.lit import VoiceModule
from trainer.progress import RunProgress
from trainer.quarantine import Quarantine
from trainer.samples import SampleWriter
from trainer.stopping import StopSignals
from trainer.synth.checkpoint import read_checkpoint, require_resumable

_NOISE = (
    r".*isinstance\(treespec, LeafSpec\)` is deprecated",  # Lightning's own affair with torch
    r"The number of training batches .* is smaller than the logging interval",  # steps are logged over epochs
    r"Total length of `list` across ranks is zero",  # told better by the data module
    r"The dirpath has changed",  # a resumed run has its own folder
    r"The '\w+' does not have many workers",  # the configurations choose how many
    r"This DataLoader will create \d+ worker processes",
)
_CKPT_PATH_HELP = "A checkpoint, or the folder of a run, from whose last checkpoint to go on."
HINT = "`trainer fit --help` lists every option"


class VoiceCLI(LightningCLI):
    """LightningCLI with one subcommand, errors of ours, and the run's folder.

    Args:
        run: folder of the run.
        args: arguments, `fit` first.
        configuration: what is said of the configuration before training, with the limits; nothing where empty.
        callbacks: those of this command, beside those of every run.
    """

    def __init__(self, run: Path, args: list[str], configuration: str = "", callbacks: Sequence[Callback] = ()) -> None:
        self.run, self.configuration = run, configuration
        self.steps_before = 0
        checkpoints = run / "checkpoints"
        quiet: dict[str, Any] = {"exit_on_error": False, "allow_abbrev": False}
        usage = {"usage": "trainer fit SHARDS... [OPTIONS]", "prog": "trainer fit SHARDS..."}
        super().__init__(
            VoiceModule,
            ShardDataModule,
            args=args,
            trainer_defaults={
                "callbacks": [
                    Quarantine(run),
                    StopSignals(),
                    SampleWriter(),
                    *callbacks,
                    best_checkpoint(checkpoints),
                    LastCheckpoint(checkpoints),
                ],
                "enable_model_summary": False,
                "reload_dataloaders_every_n_epochs": 1,
                "use_distributed_sampler": False,
            },
            save_config_kwargs={"overwrite": True},
            parser_kwargs={**quiet, "prog": "trainer", "fit": {**quiet, **usage}},
            auto_configure_optimizers=False,
        )

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Only `fit`, whose model and data are ours."""
        return {"fit": {"model", "train_dataloaders", "val_dataloaders", "datamodule", "weights_only"}}

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        """Parses; what is wrong is told in one line. Raises UsageError."""
        for action in self._parser("fit")._actions:
            if action.dest == "ckpt_path":
                action.help = _CKPT_PATH_HELP
        try:
            self.config = parser.parse_args(args)  # type: ignore[arg-type]  # a list, as __init__ was given
        except jsonargparse.ArgumentError as error:
            raise self._told(error) from error

    def _told(self, error: jsonargparse.ArgumentError) -> UsageError:
        message = " ".join(str(error).split())
        unknown = re.search(r"[Uu]nrecognized arguments: (--[\w.-]+)", message)
        if unknown is None:
            return usage_error(message)
        known = [option for action in self._parser("fit")._actions for option in action.option_strings]
        nearest = difflib.get_close_matches(unknown[1], known, n=1)
        hint = f"did you mean {nearest[0]}? " if nearest else ""
        return UsageError(f"no such option: {unknown[1]}", hint=f"{hint}{HINT}")

    def _set_seed(self) -> None:
        """Seeds. Raises UsageError where the seed is none."""
        try:
            super()._set_seed()
        except (TypeError, ValueError) as error:
            raise usage_error(f"--seed_everything: {error}") from error

    def instantiate_classes(self) -> None:
        """Makes the data, the model and the Trainer, none of which does anything yet.

        Raises:
            UsageError: a value that one of them cannot take.
        """
        require_sensible_trainer(self.config["fit"]["trainer"])
        try:
            super().instantiate_classes()
        except (TypeError, ValueError) as error:
            raise usage_error(" ".join(str(error).split())) from error

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
        callbacks = self.config_init["fit"]["trainer"].get("callbacks") or []
        if not any(isinstance(callback, ProgressBar) for callback in callbacks):  # else it is the user's to show
            enabled = config.get("enable_progress_bar") is not False
            self.trainer_defaults["callbacks"].append(RunProgress(enabled=enabled))
            kwargs["enable_progress_bar"] = False
        plugins = config.get("plugins") or []
        kwargs["plugins"] = [*(plugins if isinstance(plugins, list) else [plugins]), AtomicCheckpointIO()]
        return super().instantiate_trainer(**kwargs)

    def before_fit(self) -> None:
        """Says how long the run will be at most. Raises UsageError where a resumed run has nothing left to train."""
        limits, checkpoint = Limits.of(self.trainer), self.config["fit"].get("ckpt_path")
        told = [str(limits)]
        if checkpoint:
            content = read_checkpoint(Path(checkpoint))
            require_resumable(content, Path(checkpoint))
            used = Limits.used_by(content)
            limits.require_more_than(used)
            self.steps_before = used.steps or 0
            told = [f"goes on after step {self.steps_before}", *told]
            if self.datamodule.group_size is None and not self.datamodule.reset_data:
                groups = told_step_groups(content, self.trainer.world_size, self.trainer.accumulate_grad_batches)
                told += [groups] if groups else []
        told.append("Ctrl-C ends it with a checkpoint")
        if self.configuration:
            sys.stderr.write(f"configuration: {self.configuration} ({'; '.join(told)})\n")

    def fit(self, **kwargs: Any) -> None:  # noqa: ANN401
        """Trains. Checkpoints are read without unpickling anything but tensors and plain types."""
        self.trainer.fit(weights_only=True, **kwargs)


def usage_error(message: str) -> UsageError:
    """What Lightning or its parser says of a wrong value, in our words where theirs speak of their own insides."""
    if "Timer(" in message or "trainer.max_time" in message:
        return UsageError("--trainer.max_time is DD:HH:MM:SS, such as 00:00:20:00", hint=HINT)
    return UsageError(message, hint=HINT)


def silence_lightning() -> None:
    """Leaves out what Lightning says of itself and of what the command says better."""
    for message in _NOISE:
        warnings.filterwarnings("ignore", message)
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"  # not the line of our code as well
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)


def print_options() -> None:
    """Prints the help of LightningCLI, with the docstrings of the model's sizes. Raises SystemExit."""
    jsonargparse.set_docstring_parse_options(attribute_docstrings=True)
    VoiceCLI(Path("runs"), ["fit", "--help"])
