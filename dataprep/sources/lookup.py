"""From a path as a metadata file spells it to the recording that it means."""

from __future__ import annotations

import os
import posixpath
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from dataprep.sources.discover import RECORDING_SUFFIXES, RECORDINGS_FOLDER, Entry, lexical, suffix_of


class Lookup:
    """The recordings of a folder by every spelling that a row may use.

    A row's path is relative to the metadata file's folder, to the source, to `wavs` in it, or to the folder above the
    source (`wavs/a.wav` where `wavs` itself is the source), in this order; absolute paths into the source are accepted.
    Of each of these places, in this order: the file of exactly that name; the
    recording of that name with another suffix, or with one where the row has none; the same whatever the case, where
    only one fits. Names are compared in Unicode's NFC.
    """

    def __init__(self, root: Path, metadata_folder: Path, entries: Iterable[Entry]) -> None:
        self._root = lexical(root)
        self._homes = (lexical(metadata_folder), self._root)
        bases = (*self._homes, f"{self._root}/{RECORDINGS_FOLDER}", posixpath.dirname(self._root))
        self._bases = tuple(dict.fromkeys(bases))
        self._files: dict[str, Entry] = {}
        self._stems: dict[str, list[Entry]] = defaultdict(list)
        self.notes: Counter[str] = Counter()
        """How often a row was understood only by leniency, by kind."""
        for entry in entries:
            path = unicodedata.normalize("NFC", entry.path)
            self._files.setdefault(path, entry)
            if suffix := suffix_of(path):
                self._stems[path.removesuffix(suffix)].append(entry)
        for same_stem in self._stems.values():
            same_stem.sort(key=_preference)

    def find(self, path: str) -> Entry | None:
        """The recording that `path` (NFC, forward slashes) means, or None."""
        candidates = self._candidates(path)
        for candidate in candidates:
            if found := self._files.get(candidate):
                return found
        suffix = suffix_of(path)
        stems = [candidate.removesuffix(suffix) for candidate in candidates]
        for stem in stems:
            if same_stem := self._stems.get(stem):
                if not suffix and len(same_stem) > 1:
                    self.notes["several_suffixes"] += 1
                elif suffix and suffix_of(same_stem[0].path).lower() != suffix.lower():
                    self.notes["other_suffix"] += 1
                return same_stem[0]
        for stem in stems:
            same_letters = self._folded.get(stem.casefold(), ())
            if len(same_letters) == 1:
                self.notes["other_case"] += 1
                return same_letters[0]
        return None

    def id_of_missing(self, path: str) -> str:
        """The id that the recording would have below the source, were it there."""
        candidates = self._candidates(path) or [path.lstrip("/")]
        return candidates[0].removesuffix(suffix_of(path))

    def leaves_source(self, path: str) -> bool:
        """Whether `path` (absolute, or with `..`) lies in neither the source nor the metadata file's folder."""
        if not path.startswith("/") and ".." not in path.split("/"):
            return False
        return not any(_below(place, base) is not None for place in self._places(path) for base in self._homes)

    def _places(self, path: str) -> list[str]:
        """Absolute paths that `path` can mean."""
        if path.startswith("/"):
            return [os.path.normpath(path)]
        return [os.path.normpath(f"{base}/{path}") for base in self._bases]

    def _candidates(self, path: str) -> list[str]:
        """Paths below the source that `path` can mean."""
        below = (_below(place, self._root) for place in self._places(path))
        return list(dict.fromkeys(candidate for candidate in below if candidate is not None))

    @cached_property
    def _folded(self) -> dict[str, list[Entry]]:
        folded: dict[str, list[Entry]] = defaultdict(list)
        for stem, entries in self._stems.items():
            folded[stem.casefold()].extend(entries)
        return folded


def _preference(entry: Entry) -> tuple[int, str]:
    return RECORDING_SUFFIXES.index(suffix_of(entry.path).lower()), entry.path


def _below(place: str, base: str) -> str | None:
    """`place` relative to `base`, or None where it is not below it."""
    start = base.rstrip("/") + "/"
    return place[len(start) :] if place.startswith(start) else None


def normal_path(cell: str) -> str:
    r"""A path as it is compared: NFC, forward slashes (also for `wavs\a.wav` as Windows writes it), no `./` in front.

    >>> normal_path(r"./wavs\\a.wav")
    'wavs/a.wav'
    """
    path = unicodedata.normalize("NFC", cell.replace("\\", "/"))
    return posixpath.normpath(path) if "./" in path or "//" in path else path
