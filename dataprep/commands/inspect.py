"""`dataprep inspect`: one utterance, or the whole set, as a person wants to see it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dataprep.audio import decode_flac
from dataprep.features.mel import log_mel
from dataprep.report import duration
from dataprep.shards.atomic import atomic_file
from dataprep.shards.keys import sample_key
from dataprep.shards.parts import read_part
from dataprep.shards.prepared import DATASET_NAME, PreparedSet
from dataprep.shards.reader import MANIFEST_NAME, ShardSet
from schemas.errors import UsageError
from schemas.features import HIFIGAN_22K, PRESETS, FeatureSpec
from schemas.units import samples_to_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is shown: named lines, and what is drawn: samples float32 `[num_samples]`, mel `[num_mels, num_frames]`."""

    title: str
    lines: tuple[tuple[str, str], ...]
    samples: NDArray[np.float32] | None = None
    mel: NDArray[np.float32] | None = None
    spec: FeatureSpec | None = None


def inspect(folder: Path, key: str | None) -> View:
    """Looks up an utterance by its key or id; without one, the set as a whole.

    Raises:
        UsageError: no data set there, or no such utterance (the nearest names are listed).
    """
    if (folder / MANIFEST_NAME).is_file():
        shards = ShardSet(folder)
        return _shard_set(shards) if key is None else _sample(shards, key)
    if (folder / DATASET_NAME).is_file():
        prepared = PreparedSet.open(folder)
        return _prepared_set(prepared) if key is None else _utterance(prepared, key)
    raise UsageError(
        f"holds neither {DATASET_NAME} nor {MANIFEST_NAME}", hint="give the folder of a data set", path=folder
    )


def _find(wanted: str, names: list[str], folder: Path) -> int:
    if wanted in names:
        return names.index(wanted)
    near = difflib.get_close_matches(wanted, names, n=5, cutoff=0.3) or names[:5]
    hint = "some that there are: " + ", ".join(near) if near else "the data set is empty"
    raise UsageError(f"no utterance {wanted!r} among {len(names)}", hint=hint, path=folder)


def _shard_set(shards: ShardSet) -> View:
    manifest = shards.manifest
    num_samples = int(shards.columns.samples.sum(dtype=np.int64))
    seconds = samples_to_seconds(num_samples, manifest.feature_spec.sample_rate)
    keys = [shards.key(row) for row in range(min(5, len(shards)))]
    lines = (
        ("format", manifest.container),
        ("shards", str(len(manifest.shards))),
        ("utterances", str(len(shards))),
        ("of speech", duration(seconds)),
        ("speakers", _some(manifest.speakers)),
        ("features", f"{manifest.feature_spec.name}, {manifest.mel_dtype}"),
        ("some keys", ", ".join(keys)),
    )
    return View(title=str(shards.folder), lines=lines)


def _some(names: tuple[str, ...], most: int = 10) -> str:
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _prepared_set(prepared: PreparedSet) -> View:
    counts = prepared.manifest.counts
    seconds = sum(amount.seconds for amount in counts.by_split.values())
    some = prepared.table(("id",)).column("id").to_pylist()[:5]
    lines = (
        ("parts", str(len(prepared.manifest.parts))),
        ("utterances", f"{counts.utterances} of {counts.rows} rows"),
        ("dropped", ", ".join(f"{reason} {number}" for reason, number in counts.drops.items()) or "none"),
        ("of speech", duration(seconds)),
        ("sample rate", f"{prepared.manifest.config.sample_rate} Hz"),
        ("some ids", ", ".join(some)),
    )
    return View(title=str(prepared.folder), lines=lines)


def _sample(shards: ShardSet, key: str) -> View:
    keys = shards.table.column("key").to_pylist()
    row = _find(sample_key(key) if key not in keys and sample_key(key) in keys else key, keys, shards.folder)
    info, spec = shards.read_info(row), shards.manifest.feature_spec
    shard = shards.manifest.shards[shards.value("shard", row)]
    seconds = samples_to_seconds(info.num_samples, info.sample_rate)
    lines = (
        ("id", info.id),
        ("text", info.text),
        ("spoken as", info.normalized_text),
        ("phonemes", " ".join(info.phonemes)),
        ("language", info.language),
        ("speaker", info.speaker),
        ("split", shard.split),
        (
            "length",
            f"{seconds:.3f} s, {info.num_samples} samples, {info.num_frames} frames",
        ),
        ("symbols", str(len(info.phoneme_ids))),
        ("shard", f"{shard.name}, sample {shards.value('row', row)}"),
    )
    return View(title=key, lines=lines, samples=shards.read_audio(row), mel=shards.read_mel(row), spec=spec)


def _utterance(prepared: PreparedSet, key: str) -> View:
    table = prepared.table(("id",))
    place = _find(key, table.column("id").to_pylist(), prepared.folder)
    part = prepared.manifest.parts[table.column("part")[place].as_py()]
    found = read_part(prepared.folder / part.name).slice(table.column("row")[place].as_py(), 1).to_pylist()[0]
    samples = decode_flac(found["audio"]).samples
    spec = next((spec for spec in PRESETS.values() if spec.sample_rate == found["sample_rate"]), None)
    measures = found["measures"]
    seconds = samples_to_seconds(found["num_samples"], found["sample_rate"])
    lines = (
        ("path", found["path"]),
        ("text", found["text"]),
        ("spoken as", found["normalized_text"]),
        ("phonemes", " ".join(found["phonemes"])),
        ("warnings", ", ".join(found["warnings"]) or "none"),
        ("language", found["language"]),
        ("speaker", found["speaker"]),
        ("split", found["split"]),
        ("length", f"{seconds:.3f} s at {found['sample_rate']} Hz"),
        ("trimmed", f"{found['trim_start_seconds']:.3f} s at the start, {found['trim_end_seconds']:.3f} s at the end"),
        (
            "level",
            f"{measures['rms_dbfs']:.1f} dBFS, peak {measures['peak']:.3f}, clipped {measures['clipped_share']:.2%}",
        ),
        ("part", part.name),
    )
    mel = None if spec is None else log_mel(samples, spec)
    return View(title=key, lines=lines, samples=samples, mel=mel, spec=spec)


def plot(view: View, path: Path) -> None:
    """Draws waveform and mel to a PNG. Raises UsageError where there is no utterance to draw."""
    if view.samples is None:
        raise UsageError("--plot draws one utterance", hint="name one: dataprep inspect PATH KEY --plot FILE.png")
    from matplotlib.figure import Figure

    spec = view.spec or HIFIGAN_22K
    figure = Figure(figsize=(10, 5), layout="constrained")
    wave, image = figure.subplots(2, 1)
    wave.plot(np.arange(len(view.samples)) / spec.sample_rate, view.samples, linewidth=0.4)
    wave.set(title=view.title if view.title.isascii() else "", xlabel="seconds", ylabel="amplitude", ylim=(-1, 1))
    wave.margins(x=0)
    if view.mel is not None:
        seconds = view.mel.shape[1] * spec.hop_length / spec.sample_rate
        shown = image.imshow(view.mel, origin="lower", aspect="auto", extent=(0, seconds, 0, spec.num_mels))
        image.set(xlabel="seconds", ylabel="mel band")
        figure.colorbar(shown, ax=image, label="natural log of magnitude")
    with atomic_file(path) as handle:
        figure.savefig(handle, format="png", dpi=120)
