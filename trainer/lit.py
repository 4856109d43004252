"""`VoiceModule`: the acoustic model as Lightning trains it.

Every random number of a step comes from (seed, optimizer step, slot of the step group), so a resumed run goes on bit
for bit, and one rank with two accumulations draws what two ranks draw.

The averaged weights are what is validated and spoken with; they are put into the model for the length of a call and
never stored there, so that no checkpoint can hold them as the weights that train on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from pytorch_lightning.utilities.types import STEP_OUTPUT, OptimizerLRScheduler
from torch import Tensor
from torch.func import functional_call
from torch.optim.lr_scheduler import LambdaLR

from schemas.checkpoint import VoiceHeader
from schemas.errors import UsageError
from trainer.chance import Chance
from trainer.data.batch import Batch
from trainer.data.module import ShardDataModule
from trainer.memory import padded_frames
from trainer.model.acoustic import AcousticModel
from trainer.model.config import ModelConfig
from trainer.model.ema import ExponentialAverage
from trainer.model.losses import Losses, UtteranceLosses
from trainer.optim import TrainingOptions
from trainer.recipe import Schedule, mixed_seed
from trainer.skipping import SkippingModule
from trainer.split_sums import SplitSums
from trainer.voice_header import header_of, require_same_voice

_INITIAL, _TRAINING, _VALIDATION = range(3)  # what a seed is for


class VoiceModule(SkippingModule):
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
        super().__init__(max_skipped_steps)
        self.config = model
        self.options = TrainingOptions(
            learning_rate=learning_rate, warmup_steps=warmup_steps, schedule=schedule, weight_decay=weight_decay,
            ema_decay=ema_decay, seed=seed, max_skipped_steps=max_skipped_steps,
        )  # fmt: skip
        self.save_hyperparameters({"model": model.to_dict(), **self.options.to_dict()})
        self.seed = seed
        self.header: VoiceHeader | None = None
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
        self.average = ExponentialAverage(self.model, self.options.ema_decay)
        self.train_on(self.model.parameters())

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Loss of a micro-batch; see `trainer.model.losses` for how it adds up over the step group."""
        trainer = self.trainer
        slot = batch_idx % trainer.accumulate_grad_batches * trainer.world_size + trainer.global_rank
        chance = Chance(mixed_seed(self.seed, _TRAINING, trainer.global_step, slot), self.device)
        total, duration, prior, flow = self.add_gradients(batch, chance)
        padding_share = 1 - batch.mel_lengths.sum() / padded_frames(batch)
        logged = {"loss": total, "duration": duration, "prior": prior, "flow": flow, "padding_share": padding_share}
        self.log_dict({f"train/{name}": value for name, value in logged.items()}, batch_size=len(batch.keys))
        return cast(Tensor, total)

    def losses(self, batch: Batch, generator: torch.Generator, weights: Mapping[str, Tensor] | None = None) -> Losses:
        """The model's losses; if given, with other weights than its own."""
        if weights is None:
            losses: Losses = self.model(batch, generator)
        else:
            losses = functional_call(self.model, dict(weights), (batch, generator))
        return losses

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """AdamW; the learning rate is a pure function of the optimizer step."""
        return self.options.optimizer(self.model.parameters())

    def on_train_start(self) -> None:
        """A resumed run takes its learning rate and weight decay from the options, not from the checkpoint."""
        self.options.impose_on(cast(LambdaLR, item.scheduler) for item in self.trainer.lr_scheduler_configs)
        self._step_began = None

    def on_stepped(self) -> None:
        """Moves the average along."""
        self.average.update(self.model)

    def on_train_batch_end(self, outputs: STEP_OUTPUT, batch: Batch, batch_idx: int) -> None:  # noqa: ARG002
        """Logs the learning rate and how many frames all ranks together take a second."""
        if (batch_idx + 1) % self.trainer.accumulate_grad_batches:
            return
        now = time.monotonic()
        self.log("train/learning_rate", self.trainer.optimizers[0].param_groups[0]["lr"])
        self.log("train/skipped_steps", float(self.skipped_steps))
        if self.budget.limit is not None:
            self.log("train/max_frames_at_once", float(self.budget.limit))
        if self._step_began is not None:
            self.log("train/frames_per_second", batch.group_frames / max(now - self._step_began, 1e-9))
        self._step_began = now

    def on_validation_epoch_start(self) -> None:
        """Starts with none of the validation split."""
        self._sums = SplitSums("cpu" if self.device.type == "mps" else self.device)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Adds up the losses of each utterance, with the averaged weights and the same chance every time."""
        number = batch_idx * self.trainer.world_size + self.trainer.global_rank
        chance, weights = Chance(mixed_seed(self.seed, _VALIDATION, number), self.device), self.averaged_weights()

        def compute(part: Batch, first: int) -> UtteranceLosses:
            with chance.part(first) as generator:
                return self.losses(part, generator, weights).utterances

        for part, losses in self.budget.computed(batch, compute):
            self._sums.add(part, losses)

    def on_validation_epoch_end(self) -> None:
        """The mean over the validation split, the same for any number of ranks. Raises TrainingError as `conclude`."""
        self.conclude()
        values = self._sums.means(self.trainer.strategy)
        self.log_dict({f"val/{name}": value for name, value in values.items()}, rank_zero_only=False)
        self._step_began = None

    def averaged_weights(self) -> dict[str, Tensor]:
        """The averaged weights by name, on the model's device."""
        average = self.average
        average.parameters = {name: value.to(self.device) for name, value in average.parameters.items()}
        return average.parameters

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Adds what makes a checkpoint enough to speak from, as plain types."""
        super().on_save_checkpoint(checkpoint)
        assert self.header is not None
        checkpoint["voxloom"] = self.header.model_dump(mode="json")
        checkpoint["ema"] = self.average.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Takes over averaged weights and counts, and brings Lightning's own counters to the plan's state.

        Raises:
            FormatError: the checkpoint is of another version.
            IdentityError: it has other symbols, mels, speakers, model sizes, data or plan; the message names them.
        """
        header = VoiceHeader.from_content(checkpoint.get("voxloom"), Path("checkpoint"))
        if self.header is None:  # load_from_checkpoint, without data
            self._build(header)
        assert self.header is not None
        require_same_voice(self.header, header, self.config, checkpoint["hyper_parameters"]["model"])
        self.average.load_state_dict(checkpoint["ema"])
        super().on_load_checkpoint(checkpoint)
        if self._trainer is not None and self._trainer.state.fn == "fit":
            self._data.resume(checkpoint)

    @property
    def _data(self) -> ShardDataModule:
        data: object = self.trainer.datamodule  # type: ignore[attr-defined]  # set by Trainer.fit
        if not isinstance(data, ShardDataModule):
            raise UsageError("VoiceModule trains on a ShardDataModule", hint="Trainer.fit(module, datamodule=...)")
        return data
