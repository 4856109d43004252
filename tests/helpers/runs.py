"""Short training runs of a very small model, and what they did."""

from dataclasses import dataclass, field

import pytorch_lightning as pl
import torch

from trainer.data.module import ShardDataModule
from trainer.lit import VoiceModule
from trainer.model.config import ModelConfig

SMALL = ModelConfig(
    encoder_channels=8, encoder_blocks=1, decoder_channels=8, decoder_blocks=1, duration_channels=8, speaker_channels=4,
    condition_channels=8, dropout=0.1,
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    epoch: int
    global_step: int
    keys: tuple[str, ...]
    loss: float


@dataclass
class Recorded(pl.Callback):
    steps: list[Step] = field(default_factory=list)
    validations: list[float] = field(default_factory=list)

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        weighted = [key for key, weight in zip(batch.keys, batch.weights.tolist(), strict=True) if weight]
        self.steps.append(Step(trainer.current_epoch, trainer.global_step, tuple(weighted), float(outputs["loss"])))

    def on_validation_end(self, trainer, module):
        self.validations.append(float(trainer.callback_metrics["val/loss"]))


class Saver(pl.Callback):
    """Saves a checkpoint from every hook that a checkpoint may be saved from."""

    def __init__(self, folder):
        self.folder = folder
        self.saved = []  # (path, optimizer steps done)

    def save(self, trainer, hook):
        path = self.folder / f"{len(self.saved):03d}-{trainer.global_step}-{hook}.ckpt"
        trainer.save_checkpoint(path)
        self.saved.append((path, trainer.global_step))

    def on_train_epoch_start(self, trainer, module):
        self.save(trainer, "epoch-start")

    def on_train_batch_end(self, trainer, *rest):
        self.save(trainer, "batch")

    def on_validation_end(self, trainer, module):
        self.save(trainer, "validation")

    def on_train_epoch_end(self, trainer, module):
        self.save(trainer, "epoch")

    def on_train_end(self, trainer, module):
        self.save(trainer, "end")


def small_module(**options):
    return VoiceModule(**{"model": SMALL, "warmup_steps": 4, **options})


def fit(shards, *, callbacks=(), ckpt_path=None, max_frames=150, num_workers=0, module=None, data=None, **flags):
    """Trains and returns what was recorded."""
    torch.set_num_threads(1)
    recorded = Recorded()
    defaults = {
        "accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
        "enable_model_summary": False, "reload_dataloaders_every_n_epochs": 1, "use_distributed_sampler": False,
        "num_sanity_val_steps": 0, "gradient_clip_val": 1.0,
    }  # fmt: skip
    trainer = pl.Trainer(**{**defaults, **flags}, callbacks=[recorded, *callbacks])
    data = data or ShardDataModule(str(shards), max_frames=max_frames, num_workers=num_workers)
    trainer.fit(module or small_module(), datamodule=data, ckpt_path=ckpt_path, weights_only=True)
    return recorded
