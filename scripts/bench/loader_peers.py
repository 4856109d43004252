"""The same utterances through other loaders: lhotse Shar and stock webdataset."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dataprep.shards.reader import ShardSet
from scripts.bench.lengths import FRAMES_PER_SECOND

_SHARD_UTTERANCES = 250
_SORTED_TOGETHER = 1000
_NUM_BUCKETS = 30


def write_shar(shards: ShardSet, folder: Path) -> Path:
    """Writes the mels of a shard set as lhotse Shar, features as numpy arrays; returns the folder."""
    from lhotse import Features, MonoCut, SupervisionSegment
    from lhotse.shar import SharWriter

    folder.mkdir()
    with SharWriter(str(folder), fields={"features": "numpy"}, shard_size=_SHARD_UTTERANCES) as writer:
        for row in range(len(shards)):
            mel = np.ascontiguousarray(shards.read_mel(row).T)
            seconds = len(mel) / FRAMES_PER_SECOND
            info = shards.read_info(row)
            cut = MonoCut(
                id=shards.key(row), start=0, duration=seconds, channel=0,
                supervisions=[
                    SupervisionSegment(
                        id=shards.key(row), recording_id=shards.key(row), start=0, duration=seconds,
                        text=" ".join(info.phonemes), speaker=info.speaker, custom={"ids": list(info.phoneme_ids)},
                    )
                ],
                features=Features(
                    type="made", num_frames=len(mel), num_features=mel.shape[1], frame_shift=seconds / len(mel),
                    sampling_rate=22050, start=0, duration=seconds, storage_type="memory_raw", storage_path="",
                    storage_key="", channels=0,
                ),
            )  # fmt: skip
            writer.write(_with_features(cut, mel))
    return folder


def _with_features(cut: Any, mel: NDArray[np.float32]) -> Any:  # noqa: ANN401  # lhotse has no types
    """The cut with its features in memory, from where the writer takes them."""
    from lhotse.features.io import MemoryRawWriter

    key = MemoryRawWriter().write(cut.id, mel)
    features = cut.features
    features.storage_type, features.storage_key, features.storage_path = "memory_raw", key, ""
    return cut


def lhotse_bins(folder: Path) -> list[float]:
    """Edges of the buckets, as `lhotse cut estimate-bucket-bins` finds them once for a data set.

    Without them the sampler reads 10,000 cuts for an estimate when an epoch begins: here, all of them twice.
    """
    from lhotse import CutSet
    from lhotse.dataset.sampling.dynamic_bucketing import estimate_duration_buckets

    bins: list[float] = estimate_duration_buckets(CutSet.from_shar(in_dir=str(folder)), num_buckets=_NUM_BUCKETS)
    return bins


def lhotse_epoch(folder: Path, budget_seconds: float, bins: list[float]) -> int:
    """Frames of an epoch: Shar read lazily, dynamic buckets, features padded by lhotse's own collation."""
    from lhotse import CutSet
    from lhotse.dataset import DynamicBucketingSampler
    from lhotse.dataset.collation import collate_features

    cuts = CutSet.from_shar(in_dir=str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = DynamicBucketingSampler(
            cuts, max_duration=budget_seconds, num_buckets=_NUM_BUCKETS, duration_bins=bins, shuffle=True, seed=0
        )
        total = 0
        for batch in sampler:
            _, lengths = collate_features(batch)
            torch.nn.utils.rnn.pad_sequence([torch.tensor(cut.supervisions[0].custom["ids"]) for cut in batch])
            total += int(lengths.sum())
    return total


def webdataset_epoch(shards: ShardSet, budget_seconds: float) -> int:
    """Frames of an epoch: stock decoding of mel and JSON, a sorted buffer of 1,000, batches under the budget."""
    import webdataset

    urls = [str(shards.folder / info.name) for info in shards.manifest.shards]
    dataset = webdataset.WebDataset(urls, shardshuffle=False, empty_check=False).decode(only=["mel.npy", "json"])
    total = 0
    for batch in _batches(iter(dataset), budget_seconds * FRAMES_PER_SECOND):
        longest = max(sample["mel.npy"].shape[1] for sample in batch)
        mels = np.zeros((len(batch), batch[0]["mel.npy"].shape[0], longest), np.float32)
        for place, sample in enumerate(batch):
            mels[place, :, : sample["mel.npy"].shape[1]] = sample["mel.npy"]
        torch.from_numpy(mels)
        torch.nn.utils.rnn.pad_sequence([torch.tensor(sample["json"]["phoneme_ids"]) for sample in batch])
        total += sum(sample["mel.npy"].shape[1] for sample in batch)
    return total


def _batches(samples: Iterator[dict[str, Any]], max_frames: float) -> Iterator[list[dict[str, Any]]]:
    buffer: list[dict[str, Any]] = []
    for sample in samples:
        buffer.append(sample)
        if len(buffer) == _SORTED_TOGETHER:
            yield from _cut(buffer, max_frames)
            buffer = []
    yield from _cut(buffer, max_frames)


def _cut(buffer: list[dict[str, Any]], max_frames: float) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for sample in sorted(buffer, key=lambda item: -item["mel.npy"].shape[1]):
        if batch and (len(batch) + 1) * batch[0]["mel.npy"].shape[1] > max_frames:
            yield batch
            batch = []
        batch.append(sample)
    if batch:
        yield batch
