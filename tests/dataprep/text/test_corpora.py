"""Every transcript of the real recordings: Mandarin and English are pronounced, other languages refused."""

import csv
from pathlib import Path

import pytest

from dataprep.text import phonemize
from dataprep.text.mandarin import read_han
from schemas.errors import LanguageError
from tests.helpers.recordings import DATA, needs_data

pytestmark = [needs_data, pytest.mark.data]
SPOKEN = ("zh_*", "en_*")


def _texts(pattern: str) -> list[str]:
    tables = sorted((DATA / "corpora").glob(f"{pattern}/metadata.csv"))
    assert tables
    rows = [row for table in tables for row in _rows(table)]
    return list(dict.fromkeys(row[1] for row in rows))


def _rows(table: Path) -> list[list[str]]:
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("pattern", SPOKEN)
def test_every_row_is_pronounced(pattern: str) -> None:
    for text in _texts(pattern):
        assert phonemize(text).symbols, text


def test_other_languages_are_refused_unless_their_words_are_english_too() -> None:
    """82 of 107 rows measured; most of the rest are one word (`Tango`, `Zero`, `Lundi`), where nothing tells."""
    texts = _texts("multi_*")
    refused = []
    for text in texts:
        try:
            phonemize(text)
        except LanguageError:
            refused.append(text)
    assert len(refused) >= 0.7 * len(texts)
    accepted = set(texts) - set(refused)
    assert sum(len(text.split()) > 1 for text in accepted) <= 4


def test_syllables_agree_with_the_corpus_own_pinyin() -> None:
    """AISHELL-3's labels are surface tones; third-tone sandhi (3 said as 2), 一 and 不, and neutral tones differ."""
    ours: list[str] = []
    theirs: list[str] = []
    for _, text, pinyin in _rows(DATA / "corpora" / "zh_aishell3_44k" / "pinyin_reference.csv"):
        ours += read_han(text)
        theirs += pinyin.split()
    assert len(ours) == len(theirs)
    pairs = list(zip(ours, theirs, strict=True))
    assert sum(mine[:-1] == label[:-1] for mine, label in pairs) / len(pairs) > 0.98
    sandhi = sum(
        mine == label or (mine[:-1] == label[:-1] and (mine[-1], label[-1]) == ("3", "2")) for mine, label in pairs
    )
    assert sandhi / len(pairs) > 0.9
