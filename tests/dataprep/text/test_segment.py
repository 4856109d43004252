"""Scripts, runs, and the language of a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.text.segment import Script, language_stretches, script_of, split_runs
from schemas.errors import LanguageError

SPOKEN = st.text(st.sampled_from("你好世界abcXYZé019 .,!?，。-'\"$%"))


@pytest.mark.parametrize("character", ["ы", "か", "カ", "한", "ع", "๓", "α"])
def test_other_scripts_are_refused_by_name(character: str) -> None:
    with pytest.raises(LanguageError, match=character):
        script_of(character)


@given(SPOKEN)
def test_runs_and_stretches_lose_nothing(text: str) -> None:
    assert "".join(run.text for run in split_runs(text)) == text
    assert "".join(piece for _, piece in language_stretches(text, None)) == text


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("don't stop", ["don't", " ", "stop"]),
        ("U.S. troops", ["U.S.", " ", "troops"]),
        ("the end.", ["the", " ", "end", "."]),
        ("at 5 a.m.", ["at", " ", "5", " ", "a.m", "."]),
        ("wait - what", ["wait", " - ", "what"]),
        ("lower-case", ["lower", "-", "case"]),
        ("hold不住......", ["hold", "不住", "......"]),
    ],
)
def test_runs(text: str, runs: list[str]) -> None:
    assert [run.text for run in split_runs(text)] == runs


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("MP3播放器", ["en", "zh"]),
        ("16GB内存", ["zh", "en", "zh"]),
        ("iPhone 15 Pro很贵", ["en", "zh"]),
        ("In 1813", ["en"]),
        ("1 From fairest", ["en"]),
        ("三星V2V", ["zh", "en", "zh", "en"]),
        ("重5kg", ["zh"]),
        ("1813", ["zh"]),
        ("B2B", ["en"]),
    ],
)
def test_a_number_has_the_language_of_its_neighbours(text: str, languages: list[str]) -> None:
    assert [language for language, _ in language_stretches(text, None)] == languages


def test_combining_accents_are_latin() -> None:
    assert script_of("\u0301") is Script.LATIN
