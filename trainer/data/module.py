"""`ShardDataModule`: a shard set as Lightning's training and validation data, and the place in the epoch plan.

What is relied on in pytorch_lightning 2.6 (loops/fit_loop.py, loops/training_epoch_loop.py, loops/fetchers.py):

* `FitLoop.setup_data` asks for the training loader again when `reload_dataloaders_every_n_epochs=1` and the epoch has
  moved on. Epochs differ in their number of steps, and only there is `num_training_batches` read from `len(loader)`: a
  loader that changed its length by itself would end the epoch early or run over.
* On resume, `setup_data` runs before `FitLoop.reset` has settled which epoch it is. A checkpoint from the end of an
  epoch therefore first asks for that epoch again, with all its groups done, gets a loader that yields nothing but still
  has the epoch's length, and then asks for the next.
* Within a resumed epoch, `on_run_start` adds the batches seen before to `data_fetcher.fetched`, and `fetched >=
  len(loader)` is the end. So the loader's length is the whole epoch's, and it yields only what is left.
* A loader with a length is not read ahead of (`_PrefetchDataFetcher.__iter__`); worker processes do read ahead. The
  state counts optimizer steps (`optim_progress`), never batches fetched.
* The loops count epochs and micro-batches in their own way; `trainer.data.rewind` brings them to the plan's state.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities import rank_zero_warn

from dataprep.shards.cache import CacheSettings, default_folder
from dataprep.shards.reader import ShardSet
from schemas.checkpoint import PlanState, QuarantinedUtterance
from schemas.errors import TrainingError, UsageError
from trainer.data.checks import checked_settings, data_warnings, require_some, wanted_accumulations
from trainer.data.collection import ShardMix
from trainer.data.dataset import ShardDataset
from trainer.data.epochs import Epochs, SetShare, left_out
from trainer.data.loader import EpochLoader
from trainer.data.plan import DEFAULT_MAX_FRAMES, Overlong, PlanSettings, plan_epoch
from trainer.data.planned import PlannedEpoch, WholeEpoch
from trainer.data.resume import read_state, require_same_data, require_same_mix, resumed_settings
from trainer.data.rewind import rewind_loops
from trainer.data.sampler import RankSampler, accumulations, grouped_for_validation
from trainer.data.selection import Selection, select


class ShardDataModule(pl.LightningDataModule):
    """Training and validation batches of a shard set.

    The Trainer needs `reload_dataloaders_every_n_epochs=1`, and `accumulate_grad_batches` = `group_size` / ranks.

    Args:
        shards: folder or URL of the shard set, or a list of them.
        weights: of several shard sets, how often an epoch takes each utterance of each: 2 is twice, 0.5 another half in
            each epoch.
        temperature: instead of weights: 1 takes everything once, more takes less of the large sets and more of the
            small ones, and an epoch stays as long.
        max_frames: budget of a micro-batch in padded frames: utterances times frames of the longest.
        max_batch_size: most utterances of a micro-batch.
        max_symbols: most padded symbols of a micro-batch; no limit where None.
        jitter: largest relative change of a length before sorting, which makes the batches anew each epoch; None takes
            0.01, or more for an epoch of few steps.
        overlong: what becomes of an utterance that is over a limit by itself.
        quadratic: cost of a frame for each frame of its utterance, for models with attention over all frames.
        fixed: cost of a micro-batch whatever is in it, in frames; only for the expected wait.
        length_classes: each accumulation takes another length class, of so many; they share `group_size` evenly.
        window: utterances that are sorted together, in whole shards drawn at random; None sorts the whole epoch. For
            shards in an object store or on disks that seek slowly, and for 100 million utterances.
        group_size: micro-batches of an optimizer step; None takes ranks x accumulate_grad_batches, and on resume what
            the run began with.
        seed: seed of the order of training.
        num_workers: processes that read.
        cache_folder: where copies of shards in an object store are kept; None is `voxloom` in the user's cache folder.
        cache_gigabytes: most that they may take; the longest unused make room.
        retry_seconds: how long an object store may be out of reach before the run is ended.
        max_bad_samples: utterances that may turn out unreadable before the run is ended.
        reset_data: on resume, start with a new epoch of this data whatever the checkpoint was trained on.
    """

    def __init__(
        self,
        shards: str | list[str],
        weights: list[float] | None = None,
        temperature: float | None = None,
        max_frames: int = DEFAULT_MAX_FRAMES,
        max_batch_size: int = 512,
        max_symbols: int | None = None,
        jitter: float | None = None,
        overlong: Overlong = "own-batch",
        quadratic: float = 0.0,
        fixed: float = 0.0,
        length_classes: int = 1,
        window: int | None = None,
        group_size: int | None = None,
        seed: int = 0,
        num_workers: int = 2,
        cache_folder: str | None = None,
        cache_gigabytes: float = 50.0,
        retry_seconds: float = 300.0,
        max_bad_samples: int = 100,
        reset_data: bool = False,
    ) -> None:
        super().__init__()
        self.locations = (shards,) if isinstance(shards, str) else tuple(shards)
        self._weights, self._temperature = weights, temperature
        self.num_workers, self.group_size = num_workers, group_size
        folder = default_folder() if cache_folder is None else Path(cache_folder)
        self.max_bad_samples, self.reset_data = max_bad_samples, reset_data
        self._options: dict[str, Any] = {
            "max_frames": max_frames, "max_batch_size": max_batch_size, "max_symbols": max_symbols, "jitter": jitter,
            "overlong": overlong, "quadratic": quadratic, "fixed": fixed, "length_classes": length_classes,
            "window": window, "seed": seed,
        }  # fmt: skip
        others = {
            "num_workers": num_workers, "group_size": group_size, "max_bad_samples": max_bad_samples,
            "cache_gigabytes": cache_gigabytes, "retry_seconds": retry_seconds,
        }  # fmt: skip
        self.plan_settings = checked_settings(self._options, others)
        self.cache = CacheSettings(folder=folder, max_bytes=int(cache_gigabytes * 1e9), retry_seconds=retry_seconds)
        self.quarantine: tuple[QuarantinedUtterance, ...] = ()
        self._epoch = 0  # of the loader that was last handed out
        self._began_at: int | None = None  # optimizer steps before that epoch
        self._resume = (0, 0)  # epoch, and its groups done

    @property
    def location(self) -> str:
        """The shard sets, for messages."""
        return " ".join(self.locations)

    @property
    def repeats(self) -> tuple[float, ...]:
        """How often an epoch takes each utterance of each shard set."""
        return self._epochs.repeats

    @property
    def resumed_at(self) -> tuple[int, int]:
        """Epoch and its groups done where a resumed run goes on."""
        return self._resume

    def realised(self, epoch: int) -> list[SetShare]:
        """What an epoch takes of each shard set."""
        return self._epochs.realised(epoch)

    def left_out(self, epoch: int) -> tuple[int, ...]:
        """Rows of the index that the plan of an epoch is made without, as far as is known today."""
        return left_out(self.quarantine, epoch)

    def setup(self, stage: str) -> None:
        """Opens the shard set and fixes the size of the step groups.

        Raises:
            FormatError: not a shard set, or a damaged one.
            UsageError: `group_size` does not suit the Trainer, or there is nothing to train on.
        """
        self.shard_set = ShardMix([ShardSet(location, self.cache) for location in self.locations])
        trainer = self._trainer()
        reload_every: int = trainer.reload_dataloaders_every_n_epochs  # type: ignore[attr-defined]  # set when made
        if reload_every != 1:
            raise UsageError(
                "each epoch has its own plan and number of steps",
                hint="set reload_dataloaders_every_n_epochs of the Trainer to 1",
            )
        group_size = self.group_size or trainer.world_size * trainer.accumulate_grad_batches
        trainer.accumulate_grad_batches = wanted_accumulations(
            group_size, trainer.world_size, trainer.accumulate_grad_batches, is_asked_for=self.group_size is not None
        )
        self.plan_settings = PlanSettings(ranks=group_size, **self._options)
        self._epochs = self._new_epochs()
        self._training, self._validation = self._epochs.training, select(self.shard_set, "validation")
        if stage == "fit":
            for warning in data_warnings(self._training, self._validation):
                rank_zero_warn(warning)
            require_some(self._training, self.plan_settings, self.location)

    def _new_epochs(self) -> Epochs:
        return Epochs(self.shard_set, self.plan_settings, self._weights, self._temperature)

    def train_dataloader(self) -> EpochLoader:
        """The batches of the Trainer's current epoch, from where a resumed run stopped."""
        trainer = self._trainer()
        epoch, groups_done = self._resume
        if self._began_at is None or trainer.current_epoch != self._epoch:
            self._epoch = trainer.current_epoch
            self._began_at = self._steps() - (groups_done if self._epoch == epoch else 0)
        planned, selection = self._epochs.planned(self._epoch, self.quarantine)
        if len(selection) == 0:
            raise TrainingError(
                f"none of the {len(self._training)} utterances of the training split can be read",
                hint="`dataprep validate` shows what is damaged; `dataprep shard` makes it again",
                path=self.location,
            )
        sampler = RankSampler(
            planned,
            selection,
            rank=trainer.global_rank,
            world_size=trainer.world_size,
            group_size=self.plan_settings.ranks,
            epoch=self._epoch,
            groups_done=groups_done if self._epoch == epoch else 0,
            on_window=self.shard_set.want if self.shard_set.is_remote else None,
        )
        return self._loader(sampler)

    def val_dataloader(self) -> EpochLoader | list[EpochLoader]:
        """Each utterance of the validation split once, in the same micro-batches for any number of ranks."""
        trainer, validation = self._trainer(), self._validation
        if len(validation) == 0:
            return []
        single: dict[str, Any] = {"jitter": 0.0, "overlong": "own-batch", "length_classes": 1, "window": None}
        settings = PlanSettings(ranks=1, **{**self._options, **single})
        plan = plan_epoch(validation.num_frames, validation.num_symbols, settings, 0)
        sampler = RankSampler(
            WholeEpoch(grouped_for_validation(plan, trainer.world_size)),
            validation,
            rank=trainer.global_rank,
            world_size=trainer.world_size,
            group_size=trainer.world_size,
        )
        return self._loader(sampler)

    def planned_epoch(self, epoch: int) -> tuple[PlannedEpoch, Selection]:
        """The plan of an epoch, and the utterances it is made from, as far as is known today."""
        return self._epochs.planned(epoch, self.quarantine)

    def selection_of(self, epoch: int) -> Selection:
        """The utterances that the plan of an epoch is made from, as far as is known today."""
        return self._epochs.planned(epoch, self.quarantine)[1]

    def example_rows(self, count: int, max_frames: int) -> list[int]:
        """The first rows of the validation split that are short enough; of the training split where that is empty."""
        chosen = self._validation if len(self._validation) else self._training
        return [int(row) for row in chosen.rows[chosen.num_frames <= max_frames][:count]]

    def state_dict(self) -> dict[str, Any]:
        """The plan's state as plain types (`schemas.checkpoint.PlanState`), the same on every rank."""
        epoch, groups_done = self._resume
        if self._began_at is not None:
            epoch, groups_done = self._epoch, self._steps() - self._began_at
        return PlanState(
            index_sha256=self.shard_set.index_sha256,
            plan_sha256=self.plan_settings.digest(),
            plan_settings=self.plan_settings.to_dict(),
            seed=self.plan_settings.seed,
            epoch=epoch,
            repeats=self.repeats,
            groups_done=groups_done,
            quarantine=self.quarantine,
        ).model_dump(mode="json")

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on where the state says, in the step groups of the run that wrote it.

        Raises:
            FormatError: not a plan's state of this version.
            IdentityError: it belongs to another index or other plan settings; the message names them.
        """
        state, trainer = read_state(state_dict), self._trainer()
        if self.reset_data:
            self._resume = (state.epoch + (state.groups_done > 0), 0)
            return
        require_same_data(state, self.shard_set.index_sha256, self.location)
        require_same_mix(state, self.repeats)
        self.plan_settings = resumed_settings(state, self.plan_settings, self.group_size)
        trainer.accumulate_grad_batches = accumulations(self.plan_settings.ranks, trainer.world_size)
        self._epochs, self.quarantine = self._new_epochs(), state.quarantine
        self._resume = (state.epoch, state.groups_done)

    def resume(self, checkpoint: dict[str, Any]) -> None:
        """Goes on where a loaded checkpoint stopped: takes over the plan's state and rewinds Lightning's loops to it.

        Raises:
            FormatError, IdentityError: as `load_state_dict`.
        """
        self.load_state_dict(checkpoint.get(type(self).__qualname__, {}))
        epoch, groups_done = self._resume
        trainer, loops = self._trainer(), checkpoint["loops"]["fit_loop"]
        if trainer.limit_train_batches != 1.0:  # an epoch cut short on purpose is over where Lightning says so
            return
        if groups_done >= self._epochs.planned(epoch, self.quarantine)[0].num_groups:
            epoch, groups_done = self._resume = (epoch + 1, 0)  # the loops know several ways to be done with an epoch
        rewind_loops(loops, epoch, groups_done, trainer.accumulate_grad_batches)

    def _loader(self, sampler: RankSampler) -> EpochLoader:
        return EpochLoader(
            ShardDataset(self.shard_set),
            sampler,
            num_workers=self.num_workers,
            pin_memory=self._trainer().strategy.root_device.type == "cuda" and torch.cuda.is_available(),
        )

    def _steps(self) -> int:
        """Optimizer steps since the first start. Lightning's count of an epoch's steps is at times the last epoch's."""
        progress = self._trainer().fit_loop.epoch_loop.automatic_optimization.optim_progress
        steps: int = progress.optimizer.step.total.completed
        return steps

    def _trainer(self) -> pl.Trainer:
        if self.trainer is None:
            raise UsageError("the data module has no Trainer", hint="pass it to Trainer.fit")
        return self.trainer
