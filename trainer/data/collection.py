"""Several shard sets as one: rows one set after the other, speakers by name."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataprep.shards.reader import IndexColumns, ShardSet
from schemas.base import canonical_json
from schemas.errors import FormatError, IdentityError
from schemas.features import MelStatistics
from schemas.shards import ShardManifest
from schemas.utterance import Split


class ShardMix:
    """One or more shard sets as one row space. Picklable; copies in other processes open files of their own.

    Args:
        sets: at least one. Rows of the first come first.

    Raises:
        IdentityError: they differ in their symbols, mels or text front end.
    """

    def __init__(self, sets: Sequence[ShardSet]) -> None:
        self.sets = tuple(sets)
        for other in self.sets[1:]:
            _require_same(self.sets[0], other)
        self.offsets = np.cumsum([0, *(len(one) for one in self.sets)])

    def __getstate__(self) -> dict[str, Any]:
        return {"sets": self.sets, "offsets": self.offsets}  # columns that were put together are made again

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def manifest(self) -> ShardManifest:
        """That of the set; of several sets, what they have together."""
        if len(self.sets) == 1:
            return self.sets[0].manifest
        manifests = [one.manifest for one in self.sets]
        first = manifests[0]
        hashes = [manifest.index.sha256 for manifest in manifests]
        index = first.index.model_copy(
            update={"sha256": hashlib.sha256(canonical_json(hashes)).hexdigest(), "rows": len(self)}
        )
        return first.model_copy(
            update={
                "speakers": tuple(sorted({name for manifest in manifests for name in manifest.speakers})),
                "languages": tuple(sorted({name for manifest in manifests for name in manifest.languages})),
                "mel_statistics": pooled_statistics(manifests),
                "shards": tuple(info for manifest in manifests for info in manifest.shards),
                "index": index,
            }
        )

    def shared_speakers(self) -> tuple[str, ...]:
        """Names that stand in several of the sets, sorted: each is one speaker of the mix."""
        counts = Counter(name for one in self.sets for name in one.manifest.speakers)
        return tuple(sorted(name for name, count in counts.items() if count > 1))

    @property
    def index_sha256(self) -> str:
        """Identity of the data: the hash of the index, or the hash over those of all sets."""
        return self.manifest.index.sha256

    @cached_property
    def columns(self) -> IndexColumns:
        """Columns of the index; of one set without a copy. Numbers of speakers, languages, shards are the mix's."""
        if len(self.sets) == 1:
            return self.sets[0].columns
        parts = [one.columns for one in self.sets]
        shards_before = np.cumsum([0, *(len(one.manifest.shards) for one in self.sets)])
        speakers = self._speakers
        languages = [_renumbered(one.manifest.languages, self.manifest.languages) for one in self.sets]
        numbered = range(len(parts))
        return IndexColumns(
            frames=np.concatenate([part.frames for part in parts]),
            symbols=np.concatenate([part.symbols for part in parts]),
            samples=np.concatenate([part.samples for part in parts]),
            split=np.concatenate([part.split for part in parts]),
            language=np.concatenate([languages[at][parts[at].language] for at in numbered]).astype(np.int8),
            speaker=np.concatenate([speakers[at][parts[at].speaker] for at in numbered]),
            shard=np.concatenate([parts[at].shard + np.uint32(shards_before[at]) for at in numbered]),
        )

    def rows_of(self, split: Split) -> NDArray[np.int64]:
        """Rows of a split, int64, ascending."""
        return np.concatenate([one.rows_of(split) + self.offsets[at] for at, one in enumerate(self.sets)])

    def set_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of the set of each row."""
        return np.asarray(np.searchsorted(self.offsets, rows, side="right") - 1)

    @cached_property
    def _speakers(self) -> list[NDArray[np.int32]]:
        """Numbers of each set's speakers in the mix."""
        return [_renumbered(one.manifest.speakers, self.manifest.speakers) for one in self.sets]

    def speakers_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the speakers of some rows, int64; reads those numbers of the index, not a column."""
        return self._looked_up(rows, lambda at, within: self._speakers[at][self.sets[at].columns.speaker[within]])

    def frames_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Frames of some rows, int64; reads those numbers of the index, not a column."""
        return self._looked_up(rows, lambda at, within: self.sets[at].columns.frames[within])

    def keys(self, rows: NDArray[np.int64]) -> list[str]:
        """Keys of the utterances in some rows."""
        if len(self.sets) == 1:
            return self.sets[0].keys(rows)
        return [self.key(row) for row in rows.tolist()]

    def _looked_up(
        self, rows: NDArray[np.int64], look_up: Callable[[int, NDArray[np.int64]], NDArray[Any]]
    ) -> NDArray[np.int64]:
        """Numbers of some rows, set by set."""
        if len(self.sets) == 1:
            return np.asarray(look_up(0, rows), dtype=np.int64)
        found, of_set = np.empty(len(rows), np.int64), self.set_of(rows)
        for at in np.unique(of_set).tolist():
            found[of_set == at] = look_up(at, rows[of_set == at] - self.offsets[at])
        return found

    def key(self, row: int) -> str:
        """Key of the utterance in a row."""
        at, within = self._within(row)
        return self.sets[at].key(within)

    def _within(self, row: int) -> tuple[int, int]:
        if len(self.sets) == 1:
            return 0, row
        at = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return at, row - int(self.offsets[at])

    def read_padded(
        self, rows: NDArray[np.int64], out: Sequence[NDArray[np.float32]]
    ) -> list[NDArray[np.int64] | FormatError]:
        """Symbol ids and mels in the order of `rows`, as `ShardSet.read_padded`. Raises MachineError."""
        if len(self.sets) == 1:
            return self.sets[0].read_padded(rows, out)
        loaded: dict[int, NDArray[np.int64] | FormatError] = {}
        of_set = self.set_of(rows)
        for at in np.unique(of_set).tolist():
            places = np.flatnonzero(of_set == at).tolist()
            found = self.sets[at].read_padded(rows[places] - self.offsets[at], [out[place] for place in places])
            loaded.update(zip(places, found, strict=True))
        return [loaded[place] for place in range(len(rows))]

    @property
    def is_remote(self) -> bool:
        """Whether any of the sets lies elsewhere."""
        return any(one.storage.is_remote for one in self.sets)

    def want(self, shards: NDArray[np.int64]) -> None:
        """Says which shards will be read next, by their numbers in the mix, in this order."""
        before = np.cumsum([0, *(len(one.manifest.shards) for one in self.sets)])
        for at, one in enumerate(self.sets):
            mine = shards[(shards >= before[at]) & (shards < before[at + 1])] - before[at]
            one.storage.want([one.manifest.shards[number] for number in mine.tolist()])

    def close(self) -> None:
        """Closes what is open; reading opens it again."""
        for one in self.sets:
            one.close()


def pooled_statistics(manifests: Sequence[ShardManifest]) -> MelStatistics | None:
    """Mean and standard deviation of each band over the training frames of all sets; None where there are none."""
    known = [
        (sum(info.frames for info in manifest.shards if info.split == "train"), manifest.mel_statistics)
        for manifest in manifests
    ]
    counted = [(frames, statistics) for frames, statistics in known if frames and statistics is not None]
    if not counted:
        return None
    frames = np.array([number for number, _ in counted], dtype=np.float64)[:, None]
    means = np.array([statistics.mean for _, statistics in counted])
    mean = (frames * means).sum(0) / frames.sum()
    # of the law of total variance: within the sets, and between them
    squares = np.square([statistics.std for _, statistics in counted]) + np.square(means - mean)
    variance = (frames * squares).sum(0) / frames.sum()
    return MelStatistics(mean=tuple(mean.tolist()), std=tuple(np.sqrt(variance).tolist()))


def _renumbered(names: Sequence[str], all_names: Sequence[str]) -> NDArray[np.int32]:
    places = {name: place for place, name in enumerate(all_names)}
    return np.array([places[name] for name in names], dtype=np.int32)


def _require_same(one: ShardSet, other: ShardSet) -> None:
    mine, theirs = one.manifest, other.manifest
    mine.symbols.require_same(theirs.symbols, one.location, other.location)
    spec, other_spec = mine.feature_spec.model_dump(), theirs.feature_spec.model_dump()
    fields = [("text_frontend", mine.text_frontend, theirs.text_frontend)]
    fields += [(name, value, other_spec[name]) for name, value in spec.items() if value != other_spec[name]]
    differing = [f"{name} {first!r} and {second!r}" for name, first, second in fields if first != second]
    if differing:
        raise IdentityError(
            f"{one.location} and {other.location} do not go together: {', '.join(differing)}",
            hint="make one of them again, with the version of voxloom and the --preset of the other",
        )
