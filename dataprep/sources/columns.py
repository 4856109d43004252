"""Which column of a metadata file is what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

# fmt: off
PATH_NAMES = frozenset((
    "path", "file", "filename", "file_name", "filepath", "file_path", "wav", "wavs", "wav_path", "wav_file",
    "wav_filename", "audio", "audio_path", "audio_file", "audio_filename", "audio_filepath", "recording", "clip", "id",
    "utt", "utt_id", "utterance", "utterance_id",
))
TEXT_NAMES = frozenset((
    "text", "raw_text", "sentence", "transcript", "transcription", "transcript_text", "content", "label",
))
NORMALIZED_NAMES = frozenset(("normalized_text", "normalised_text", "normalized", "normalised", "text_normalized"))
SPEAKER_NAMES = frozenset((
    "speaker", "speaker_id", "speaker_name", "spk", "spk_id", "spkid", "speaker_label", "voice", "client_id",
))
# fmt: on

SAMPLED_ROWS = 200
RESEMBLING_ROWS_SHARE = 0.5
RESEMBLING_PAIRS_SHARE = 0.3
NAME_CHARACTERS, NAME_WORDS = 40, 4
"""A longer third column is no speaker's name: pinyin or IPA, for example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Places of the columns, counted from 0; None where there is none."""

    path: int
    text: int
    normalized: int | None
    speaker: int | None
    num_columns: int
    """Cells a row should have."""
    has_header: bool
    is_third_ignored: bool = False
    """Whether the third column is something that is not known here."""

    def allows(self, num_cells: int) -> bool:
        """Whether a row of `num_cells` can be understood. A normalised text at its end may be missing altogether."""
        shortest = self.num_columns - (self.normalized == self.num_columns - 1)
        return shortest <= num_cells <= self.num_columns

    def text_of(self, cells: Sequence[str]) -> str:
        """The normalised text where the row has one, else the text: it is what the person reads aloud."""
        if self.normalized is not None and self.normalized < len(cells) and cells[self.normalized]:
            return cells[self.normalized]
        return cells[self.text]


def find_columns(rows: Sequence[Sequence[str]]) -> Columns:
    """Decides by the header, where the first row is one, else by the rows themselves.

    A first row is a header where one of its cells is a known name of the path column (path, file, wav, audio, id ...)
    and another of the text column (text, sentence, transcript ...), in any case; columns may then stand in any order,
    and unknown ones are ignored. Without a header, two columns are path and text. Of three, the third is a normalised
    text (LJ Speech: id, text, normalised text) where it resembles the second in at least half of up to 200 rows taken
    evenly from the file, else the speaker. Two texts resemble each other where at least 30 % of the pairs of adjacent
    letters and digits of the longer are in the other, whatever the case and punctuation: written-out numbers change
    some rows, speakers' names resemble no text. (Numbers alone, `1|one`, need a header to be told from speakers.) A
    third column that is neither, with more than 40 characters or 4 words in most rows, is ignored.
    """
    header = _from_header(rows[0])
    if header is not None:
        return header
    # The rows decide by majority: a text that holds the delimiter, or a cut line, must not.
    counts = Counter(len(cells) for cells in rows if len(cells) in (2, 3) and cells[0] and cells[1])
    if counts[3] <= counts[2]:
        return Columns(path=0, text=1, normalized=None, speaker=None, num_columns=2, has_header=False)
    third = _third_column([cells for cells in rows if len(cells) == 3])
    return Columns(
        path=0,
        text=1,
        normalized=2 if third == "normalized" else None,
        speaker=2 if third == "speaker" else None,
        num_columns=3,
        has_header=False,
        is_third_ignored=third == "unknown",
    )


def _from_header(cells: Sequence[str]) -> Columns | None:
    names = [cell.casefold().replace(" ", "_").replace("-", "_") for cell in cells]
    path, text, normalized, speaker = (
        next((place for place, name in enumerate(names) if name in known), None)
        for known in (PATH_NAMES, TEXT_NAMES, NORMALIZED_NAMES, SPEAKER_NAMES)
    )
    text = normalized if text is None else text
    if path is None or text is None:
        return None
    return Columns(
        path=path, text=text, normalized=normalized, speaker=speaker, num_columns=len(cells), has_header=True
    )


def _third_column(rows: Sequence[Sequence[str]]) -> Literal["normalized", "speaker", "unknown"]:
    filled = [cells for cells in rows if cells[1] and cells[2]]
    sample = filled[:: max(1, len(filled) // SAMPLED_ROWS)]
    if sum(_resemble(cells[1], cells[2]) for cells in sample) >= max(1, RESEMBLING_ROWS_SHARE * len(sample)):
        return "normalized"
    num_long = sum(len(cells[2]) > NAME_CHARACTERS or cells[2].count(" ") >= NAME_WORDS for cells in sample)
    return "unknown" if num_long > len(sample) / 2 else "speaker"


def _resemble(text: str, other: str) -> bool:
    letters, other_letters = (
        "".join(character for character in cell.casefold() if character.isalnum()) for cell in (text, other)
    )
    if letters == other_letters:
        return True
    pairs, other_pairs = Counter(pairwise(letters)), Counter(pairwise(other_letters))
    longest = max(pairs.total(), other_pairs.total())
    return longest > 0 and (pairs & other_pairs).total() >= RESEMBLING_PAIRS_SHARE * longest
