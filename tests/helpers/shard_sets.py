"""Small shard sets of made utterances, written by the real writer in milliseconds."""

from pathlib import Path

import numpy as np

from dataprep.audio import decode_flac, encode_flac
from dataprep.features.mel import log_mel
from dataprep.shards.atomic import file_sha256
from dataprep.shards.index import IndexRow, index_table, write_index
from dataprep.shards.writer import SUFFIXES, Sample, write_shard
from schemas.features import FeatureSpec
from schemas.sample import SampleInfo
from schemas.shards import MelStatistics, ShardInfo, ShardManifest
from schemas.symbols import SymbolTable

SPEC = FeatureSpec(
    name="made", sample_rate=8000, n_fft=256, win_length=256, hop_length=64, num_mels=8, fmin_hz=0.0, fmax_hz=4000.0
)
SYMBOLS = SymbolTable(version=1, symbols=("_", *"abcdefghijk"))
SPEAKERS = ("ann", "bob")


def made_frames(count, seed=0, shortest=12, longest=60):
    """Lengths in frames, as a list."""
    return np.random.default_rng(seed).integers(shortest, longest, count).tolist()


def make_shard_set(
    folder: Path, *, train, validation=(), symbols=SYMBOLS, symbol_counts=None, seed=0, container="webdataset",
    mel_dtype="float32", shard_utterances=None, sound=False,
):  # fmt: skip
    """Writes a shard set with utterances of the given lengths in frames and returns its folder.

    `symbol_counts` says how many symbols the training utterances have; a quarter of their frames by default. One shard
    a split, or shards of `shard_utterances`. With `sound` there are recordings, and the mels are theirs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    rows, shards = [], []
    for split, lengths in (("train", train), ("validation", validation)):
        if not len(lengths):
            continue
        counts = symbol_counts if split == "train" and symbol_counts is not None else [max(n // 4, 1) for n in lengths]
        samples = [
            made_sample(f"{split}-{place:04d}", frames, count, symbols, random, sound)
            for place, (frames, count) in enumerate(zip(lengths, counts, strict=True))
        ]
        each = shard_utterances or len(samples)
        for number, first in enumerate(range(0, len(samples), each)):
            some = samples[first : first + each]
            path = folder / f"{split}-{number:06d}{SUFFIXES[container]}"
            placed = write_shard(path, some, container, mel_dtype)
            rows += [index_row(sample, split, len(shards), place) for sample, place in zip(some, placed, strict=True)]
            shards.append(
                ShardInfo(
                    name=path.name, bytes=path.stat().st_size, sha256=file_sha256(path), split=split,
                    utterances=len(some), frames=sum(sample.info.num_frames for sample in some),
                )
            )  # fmt: skip
    statistics = MelStatistics(mean=(-5.0,) * SPEC.num_mels, std=(2.0,) * SPEC.num_mels) if len(train) else None
    manifest = ShardManifest(
        container=container, mel_dtype=mel_dtype, feature_spec=SPEC, symbols=symbols,
        symbols_sha256=symbols.digest(), text_frontend="made", shard_version=1, shard_size_bytes=10**6,
        dataset_fingerprint="0" * 64, speakers=SPEAKERS, languages=("en",),
        mel_statistics=statistics, shards=tuple(shards),
        index=write_index(folder / "index.arrow", index_table(rows, SPEAKERS, ("en",))),
    )  # fmt: skip
    (folder / "shards.json").write_bytes(manifest.pretty_json())
    return folder


def made_sample(key, frames, num_symbols, symbols, random, sound=False):
    ids = tuple(random.integers(1, len(symbols.symbols), num_symbols).tolist())
    info = SampleInfo(
        id=key, text=key, normalized_text=key, phonemes=tuple(symbols.symbols[place] for place in ids), phoneme_ids=ids,
        speaker=SPEAKERS[int(random.integers(2))], language="en", sample_rate=SPEC.sample_rate,
        num_samples=frames * SPEC.hop_length, num_frames=frames,
    )  # fmt: skip
    mel = (2 * random.standard_normal((SPEC.num_mels, frames)) - 5).astype(np.float32)
    if not sound:
        return Sample(key=key, info=info, flac=b"no sound", mel=mel)
    flac = encode_flac(random.uniform(-0.3, 0.3, info.num_samples).astype(np.float32), SPEC.sample_rate)
    return Sample(key=key, info=info, flac=flac, mel=log_mel(decode_flac(flac).samples, SPEC))


def index_row(sample, split, shard, placed):
    info = sample.info
    return IndexRow(
        key=sample.key, split=split, language=info.language, speaker=info.speaker, frames=info.num_frames,
        symbols=len(info.phoneme_ids), samples=info.num_samples, shard=shard, row_group=placed.row_group,
        row=placed.row, json_offset=placed.json.offset, json_size=placed.json.size, json_crc32=placed.json.crc32,
        flac_offset=placed.flac.offset, flac_size=placed.flac.size, flac_crc32=placed.flac.crc32,
        mel_offset=placed.mel.offset, mel_size=placed.mel.size, mel_crc32=placed.mel.crc32,
    )  # fmt: skip
