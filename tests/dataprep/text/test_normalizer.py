"""Cleaning, and writing out what is not spelled as it is spoken."""

import pytest

from dataprep.text import normalize
from dataprep.text.cleaning import clean
from dataprep.text.normalizer import normalize_with_warnings
from schemas.errors import LanguageError, UsageError


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("\ufeff一三一\u200b零", "一三一零"),
        ("Ｈｅｌｌｏ，　ｗｏｒｌｄ！", "Hello, world!"),
        ("  a\t\nb  ", "a b"),
        ("don’t", "don't"),
        ("30㎡ ①", "30m2 1"),
        ("3½", "3 1/2"),
        ("10²", "10²"),
        ("⼀⼆", "一二"),
    ],
)
def test_clean(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("今天25°C", "今天二十五摄氏度"),
        ("12.9英寸", "十二点九英寸"),
        ("版本v1.2.3", "版本v一点二点三"),
        ("GPT-4o很好", "GPT-四o很好"),
        ("用C++写", "用C plus plus写"),
        ("价格$5", "价格五美元"),
        ("2024-05-01", "二零二四年五月一日"),
        ("价格A$13.5", "价格十三点五澳元"),
        ("￥1.2万", "一点二万元"),
        ("5 am", "five AM"),
        ("-5℃", "负五摄氏度"),
        ("C#和.NET", "C sharp和.NET"),
        ("MP3播放器", "MP三播放器"),
        ("16GB内存", "十六GB内存"),
        ("Press 1 to mute", "Press one to mute"),
        ("In 1813", "In eighteen thirteen"),
        ("Mr. Quilter", "Mister Quilter"),
        ('say "5" now', 'say "five" now'),
        ("in the 1990s", "in the nineteen nineties"),
        ("AT&T", "AT and T"),
        ("No numbers here.", "No numbers here."),
    ],
)
def test_written_out(text: str, spoken: str) -> None:
    assert normalize(text) == spoken


def test_a_given_language_reads_every_number() -> None:
    assert normalize("1813", "en") == "eighteen thirteen"
    assert normalize("1813", "zh") == "一千八百一十三"
    assert normalize("版本 2", "en") == "版本 two"


@pytest.mark.parametrize("text", ["[5] apples", "dial #1", "mail me @5", "+1 555 123 4567 please"])
def test_what_the_rules_trip_over_is_still_spoken(text: str) -> None:
    result = normalize_with_warnings(text)
    assert not any(character.isdigit() for character in result.text)


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(UsageError, match="'fr' is not one of auto, zh, en"):
        normalize("hello", "fr")


def test_other_scripts_are_refused() -> None:
    with pytest.raises(LanguageError, match="cyrillic"):
        normalize("Нажмите 1")
