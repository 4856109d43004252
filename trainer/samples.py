"""What the voice sounds like so far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.loggers import TensorBoardLogger

from trainer.data.batch import Batch
from trainer.data.dataset import ShardDataset
from trainer.data.module import ShardDataModule
from trainer.data.sampler import BatchRequest
from trainer.lit import VoiceModule
from trainer.recipe import mixed_seed
from trainer.synth.vocoder import GriffinLim, Vocoder


class SampleWriter(Callback):
    """After each validation, shows and plays a few utterances of the validation split in TensorBoard.

    For each: the recorded mel, the alignment, and what the averaged weights make of its symbols, as mel and as sound
    (Griffin-Lim). Cost: a few short utterances on one rank.

    Args:
        num_utterances: how many.
        max_frames: longest utterance that is taken.
        num_steps: steps of the flow.
    """

    def __init__(self, num_utterances: int = 2, max_frames: int = 600, num_steps: int = 10) -> None:
        self.num_utterances, self.max_frames, self.num_steps = num_utterances, max_frames, num_steps
        self._vocoder: Vocoder | None = None

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Writes them, on the first rank."""
        loggers = [logger for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]
        data: object = trainer.datamodule  # type: ignore[attr-defined]  # set by Trainer.fit
        if trainer.sanity_checking or not trainer.is_global_zero or not loggers:
            return
        if not isinstance(pl_module, VoiceModule) or not isinstance(data, ShardDataModule):
            return
        with pl_module.average.applied(pl_module.model):
            for place, row in enumerate(data.example_rows(self.num_utterances, self.max_frames)):
                self._write(loggers[0], pl_module, single(data, row), place)

    def _write(self, logger: TensorBoardLogger, module: VoiceModule, batch: Batch, place: int) -> None:
        assert module.header is not None
        board, step = logger.experiment, module.global_step
        spec = module.header.feature_spec
        self._vocoder = self._vocoder or GriffinLim(spec)
        moved = batch.to(module.device)
        generator = torch.Generator(module.device).manual_seed(mixed_seed(module.seed, place))
        with torch.no_grad():
            durations = module.model(moved, generator).token_durations[0]
        mel = module.model.infer(moved.symbol_ids[0], int(batch.speakers[0]), self.num_steps, generator)
        spoken = mel.float().cpu().numpy()
        name = batch.keys[0]
        board.add_image(f"{name}/recorded", picture(batch.mels[0].numpy()), step, dataformats="HW")
        board.add_image(f"{name}/spoken", picture(spoken), step, dataformats="HW")
        board.add_image(f"{name}/alignment", picture(alignment(durations.cpu().numpy())), step, dataformats="HW")
        board.add_audio(f"{name}/spoken", self._vocoder(spoken)[None], step, sample_rate=spec.sample_rate)


def single(data: ShardDataModule, row: int) -> Batch:
    """A batch of one utterance, by its row in the index."""
    columns = data.shard_set.columns
    request = BatchRequest(
        rows=np.array([row]), weights=np.ones(1, np.float32), group_frames=int(columns.frames[row]),
        group_symbols=int(columns.symbols[row]), num_slots=1,
    )  # fmt: skip
    return ShardDataset(data.shard_set).read(request)


def picture(values: NDArray[Any]) -> NDArray[np.uint8]:
    """`[rows, columns]` as grey values, the lowest row at the bottom."""
    low, high = float(values.min()), float(values.max())
    return ((values[::-1] - low) / max(high - low, 1e-6) * 255).astype(np.uint8)


def alignment(durations: NDArray[np.int64]) -> NDArray[np.float32]:
    """Frames of each token `[N]` as the path of the alignment, `[N, T]`: 1 where a token has a frame."""
    ends = durations.cumsum()
    frames = np.arange(int(ends[-1]))
    return ((frames >= (ends - durations)[:, None]) & (frames < ends[:, None])).astype(np.float32)
