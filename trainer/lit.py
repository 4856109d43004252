"""`VoiceModule`: the acoustic model as Lightning trains it.

Every random number of a step comes from (seed, optimizer step, slot of the step group), so a resumed run goes on bit
for bit, and one rank with two accumulations draws what two ranks draw.

The averaged weights are what is validated and spoken with; they are put into the model for the length of a call and
never stored there, so that no checkpoint can hold them as the weights that train on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytorch_lightning as pl
import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from pytorch_lightning.utilities import rank_zero_warn
from pytorch_lightning.utilities.types import STEP_OUTPUT, OptimizerLRScheduler
from torch import Tensor
from torch.func import functional_call

from schemas.checkpoint import VoiceHeader
from schemas.errors import IdentityError, TrainingError, UsageError
from schemas.shards import ShardManifest
from trainer.data.batch import Batch
from trainer.data.module import ShardDataModule
from trainer.model.acoustic import AcousticModel
from trainer.model.config import ModelConfig
from trainer.model.ema import ExponentialAverage
from trainer.model.losses import Losses
from trainer.recipe import Schedule, learning_rate_factor, mixed_seed

_INITIAL, _TRAINING, _VALIDATION = range(3)  # what a seed is for


class VoiceModule(pl.LightningModule):
    """Trains an `AcousticModel` on the batches of a `ShardDataModule`, whose manifest says what it is built for.

    Args:
        model: sizes of the acoustic model.
        learning_rate: of AdamW, after the warm-up.
        warmup_steps: optimizer steps over which the learning rate rises from 0.
        schedule: what it does then: stay, or fall with the inverse square root of the step.
        weight_decay: of AdamW, for weights with two or more axes.
        ema_decay: share of the averaged weights that each step keeps.
        seed: of the initial weights and of all chance in training.
        max_skipped_steps: steps that may be left out because loss or gradient is not finite, before the run is ended.

    Raises:
        UsageError: values outside their range; the message names all of them.
    """

    model: AcousticModel

    def __init__(
        self,
        model: ModelConfig,
        learning_rate: float = 1e-3,
        warmup_steps: int = 100,
        schedule: Schedule = "constant",
        weight_decay: float = 0.01,
        ema_decay: float = 0.999,
        seed: int = 0,
        max_skipped_steps: int = 20,
    ) -> None:
        super().__init__()
        _require_sensible(
            ("learning_rate", learning_rate, 0 < learning_rate < math.inf, "above 0"),
            ("warmup_steps", warmup_steps, warmup_steps >= 0, "at least 0"),
            ("schedule", schedule, schedule in get_args(Schedule), f"one of {', '.join(get_args(Schedule))}"),
            ("weight_decay", weight_decay, 0 <= weight_decay < math.inf, "at least 0"),
            ("ema_decay", ema_decay, 0 <= ema_decay < 1, "from 0 to below 1"),
            ("seed", seed, seed >= 0, "at least 0"),
            ("max_skipped_steps", max_skipped_steps, max_skipped_steps >= 0, "at least 0"),
        )
        self.config = model
        self.options = {
            "learning_rate": learning_rate, "warmup_steps": warmup_steps, "schedule": schedule, "seed": seed,
            "weight_decay": weight_decay, "ema_decay": ema_decay, "max_skipped_steps": max_skipped_steps,
        }  # fmt: skip
        self.save_hyperparameters({"model": model.to_dict(), **self.options})
        self.learning_rate, self.weight_decay, self.ema_decay = learning_rate, weight_decay, ema_decay
        self.factor: Callable[[int], float] = partial(
            learning_rate_factor, warmup_steps=warmup_steps, schedule=schedule
        )
        self.seed, self.max_skipped_steps = seed, max_skipped_steps
        self.header: VoiceHeader | None = None
        self.skipped_steps = 0
        self._skip = False
        self._step_began: float | None = None

    def configure_model(self) -> None:
        """Builds the network for the data's symbols, speakers and mels."""
        if self.header is None:
            self._build(header_of(self._data.shard_set.manifest))

    def _build(self, header: VoiceHeader) -> None:
        self.header = header
        # on the CPU, so that the initial weights are the same on every machine
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.manual_seed(mixed_seed(self.seed, _INITIAL))
            self.model = AcousticModel(
                self.config,
                len(header.symbols.symbols),
                len(header.speakers),
                header.feature_spec.num_mels,
                blank_id=header.symbols.blank_id,
            )
        self.model.set_mel_statistics(header.mel_statistics.mean, header.mel_statistics.std)
        self.average = ExponentialAverage(self.model, self.ema_decay)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Loss of a micro-batch; see `trainer.model.losses` for how it adds up over the step group."""
        trainer = self.trainer
        slot = batch_idx % trainer.accumulate_grad_batches * trainer.world_size + trainer.global_rank
        losses = self._losses(batch, (_TRAINING, trainer.global_step, slot))
        parts = {name: getattr(losses, name) for name in ("duration", "prior", "flow")}
        padded = batch.mels.shape[0] * batch.mels.shape[2]
        logged = {"loss": losses.total.detach(), **parts, "padding_share": 1 - batch.mel_lengths.sum() / padded}
        self.log_dict({f"train/{name}": value for name, value in logged.items()}, batch_size=len(batch.keys))
        # A loss that is not finite may have finite gradients. Poisoned, they reach all ranks, and all skip the step.
        return losses.total * torch.where(losses.total.detach().isfinite(), 1.0, torch.nan)

    def _losses(self, batch: Batch, seeds: tuple[int, ...], weights: Mapping[str, Tensor] | None = None) -> Losses:
        """The model's losses, with all chance from `seeds` and, if given, other weights than its own."""
        seed = mixed_seed(self.seed, *seeds)
        generator = torch.Generator(self.device).manual_seed(seed)
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)  # dropout draws from the global generator
            if weights is None:
                losses: Losses = self.model(batch, generator)
            else:
                losses = functional_call(self.model, dict(weights), (batch, generator))
        return losses

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """AdamW; the learning rate is a pure function of the optimizer step."""
        parameters = list(self.model.parameters())
        groups = [
            {"params": [item for item in parameters if item.ndim >= 2], "weight_decay": self.weight_decay},
            {"params": [item for item in parameters if item.ndim < 2], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=self.learning_rate)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, self.factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_train_start(self) -> None:
        """A resumed run takes its learning rate and weight decay from the options, not from the checkpoint."""
        for scheduler in (item.scheduler for item in self.trainer.lr_scheduler_configs):
            scheduler.base_lrs = [self.learning_rate] * len(scheduler.base_lrs)
            decayed, other = scheduler.optimizer.param_groups
            decayed["weight_decay"] = self.weight_decay
            for group in (decayed, other):
                group["initial_lr"] = self.learning_rate
                group["lr"] = self.learning_rate * self.factor(scheduler.last_epoch)
        self._step_began = None

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clips as the Trainer says. Gradients that are not finite are dropped: without any, AdamW changes nothing."""
        gradients = [item.grad for item in self.model.parameters() if item.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        self.log("train/gradient_norm", norm)
        self._skip = not bool(norm.isfinite())
        if self._skip:
            optimizer.zero_grad(set_to_none=True)
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def optimizer_step(
        self,
        epoch: int,
        batch_idx: int,
        optimizer: torch.optim.Optimizer | LightningOptimizer,
        optimizer_closure: Callable[[], Any] | None = None,
    ) -> None:
        """Steps, moves the average along, and counts the steps that were skipped.

        Raises:
            TrainingError: more than `max_skipped_steps` were.
        """
        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)
        if not self._skip:
            self.average.update(self.model)
            return
        self.skipped_steps += 1
        step = self.trainer.global_step
        rank_zero_warn(f"step {step} is skipped: its loss or gradient is not finite ({self.skipped_steps} so far)")
        if self.skipped_steps > self.max_skipped_steps:
            raise TrainingError(
                f"{self.skipped_steps} steps up to step {step} had a loss or gradient that is not finite, "
                f"at most {self.max_skipped_steps} may",
                hint="resume the last checkpoint with a lower --model.learning_rate, or --trainer.precision 32",
            )

    def on_train_batch_end(self, outputs: STEP_OUTPUT, batch: Batch, batch_idx: int) -> None:  # noqa: ARG002
        """Logs the learning rate and how many frames all ranks together take a second."""
        if (batch_idx + 1) % self.trainer.accumulate_grad_batches:
            return
        now = time.monotonic()
        self.log("train/learning_rate", self.trainer.optimizers[0].param_groups[0]["lr"])
        self.log("train/skipped_steps", float(self.skipped_steps))
        if self._step_began is not None:
            self.log("train/frames_per_second", batch.group_frames / max(now - self._step_began, 1e-9))
        self._step_began = now

    def on_validation_epoch_start(self) -> None:
        """Sums of duration, prior and flow, then symbols and frames, over the validation split."""
        self._sums = torch.zeros(5, dtype=torch.float64, device="cpu" if self.device.type == "mps" else self.device)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Adds up the losses of each utterance, with the averaged weights and the same chance every time."""
        number = batch_idx * self.trainer.world_size + self.trainer.global_rank
        losses = self._losses(batch, (_VALIDATION, number), self.averaged_weights())
        sums = losses.utterances
        values = (sums.duration, sums.prior, sums.flow, batch.symbol_lengths, batch.mel_lengths)
        self._sums += torch.stack([torch.dot(batch.weights.double(), value.double()) for value in values])

    def on_validation_epoch_end(self) -> None:
        """The mean over the validation split, the same for any number of ranks."""
        sums = self.trainer.strategy.reduce(self._sums, reduce_op="sum")
        duration, prior, flow = sums[0] / sums[3], sums[1] / sums[4], sums[2] / sums[4]
        values = {"loss": duration + prior + flow, "duration": duration, "prior": prior, "flow": flow}
        self.log_dict({f"val/{name}": value.float() for name, value in values.items()}, rank_zero_only=False)
        self._step_began = None

    def averaged_weights(self) -> dict[str, Tensor]:
        """The averaged weights by name, on the model's device."""
        average = self.average
        average.parameters = {name: value.to(self.device) for name, value in average.parameters.items()}
        return average.parameters

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Adds what makes a checkpoint enough to speak from, as plain types."""
        assert self.header is not None
        checkpoint["voxloom"] = self.header.model_dump(mode="json")
        checkpoint["ema"] = self.average.state_dict()
        checkpoint["skipped_steps"] = self.skipped_steps

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Takes over averaged weights and counts, and brings Lightning's own counters to the plan's state.

        Raises:
            FormatError: the checkpoint is of another version.
            IdentityError: it has other symbols, mels, speakers, model sizes, data or plan; the message names them.
        """
        header = VoiceHeader.from_content(checkpoint.get("voxloom"), Path("checkpoint"))
        if self.header is None:  # load_from_checkpoint, without data
            self._build(header)
        self._require_same(header, checkpoint["hyper_parameters"]["model"])
        self.average.load_state_dict(checkpoint["ema"])
        self.skipped_steps = int(checkpoint["skipped_steps"])
        if self._trainer is not None and self._trainer.state.fn == "fit":
            self._data.resume(checkpoint)

    def _require_same(self, header: VoiceHeader, model: Mapping[str, object]) -> None:
        assert self.header is not None
        self.header.symbols.require_same(header.symbols, "the shard set", "the checkpoint")
        for name, told in (("feature_spec", "feature spec"), ("speakers", "speakers")):
            mine, theirs = getattr(self.header, name), getattr(header, name)
            if mine != theirs:
                raise IdentityError(
                    f"the {told} of the checkpoint is {theirs}, that of the shard set {mine}",
                    hint="resume with the shard set of that run, or start a new run without --ckpt_path",
                )
        differing = [name for name, value in self.config.to_dict().items() if model.get(name) != value]
        if differing:
            raise IdentityError(
                "the checkpoint's model has other settings: "
                + ", ".join(f"{name} {model.get(name)} (here {getattr(self.config, name)})" for name in differing),
                hint="give the --config of that run (config.yaml in its folder)",
            )

    @property
    def _data(self) -> ShardDataModule:
        data: object = self.trainer.datamodule  # type: ignore[attr-defined]  # set by Trainer.fit
        if not isinstance(data, ShardDataModule):
            raise UsageError("VoiceModule trains on a ShardDataModule", hint="Trainer.fit(module, datamodule=...)")
        return data


def _require_sensible(*options: tuple[str, object, bool, str]) -> None:
    """Raises UsageError for all of (name, value, whether it is allowed, what is) that are not."""
    wrong = [f"{name} = {value!r} must be {allowed}" for name, value, is_allowed, allowed in options if not is_allowed]
    if wrong:
        raise UsageError("training: " + "; ".join(wrong), hint="change the value")


def header_of(manifest: ShardManifest) -> VoiceHeader:
    """What a checkpoint says of the data it was trained on.

    Raises:
        UsageError: there are no mel statistics, since there is no training split.
    """
    if manifest.mel_statistics is None:
        raise UsageError("the training split is empty", hint="prepare more recordings")
    return VoiceHeader(
        feature_spec=manifest.feature_spec,
        symbols=manifest.symbols,
        text_frontend=manifest.text_frontend,
        speakers=manifest.speakers,
        languages=manifest.languages,
        mel_statistics=manifest.mel_statistics,
        index_sha256=manifest.index.sha256,
    )
