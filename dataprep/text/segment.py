"""What script a character is of, and how a text falls into runs of one script or stretches of one language."""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Literal

from schemas.errors import LanguageError

Language = Literal["zh", "en"]
NUMBER_ALONE: Language = "zh"
"""How a number is read when no letter and no Han stands in the text and the language is not given."""


class Script(StrEnum):
    """What a character is to the front end."""

    HAN = "han"
    LATIN = "latin"
    DIGIT = "digit"
    MARK = "mark"
    """Punctuation, symbols and spaces: what they are worth is decided where they are spoken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A piece of text of one script: all neighbouring Han, one Latin word, some digits, or one mark.

    A word has its inner apostrophes (`don't`), and dotted initials are one (`U.S.`); dots or dashes in a row, and a
    dash between spaces, are one mark.
    """

    script: Script
    text: str


# Over the shape of a text, where each character is the first letter of its script or itself if it matters here.
_RUN = re.compile(r"h+|l(?:\.l)+(?!l)(?:\.(?!$))?|l+(?:'l+)*|d+|\.{2,}|-{2,}| -+ |.")
_MATTERS = frozenset(" '.-")


@cache
def script_of(character: str) -> Script:
    """Script of one character.

    Raises:
        LanguageError: a letter, letter-like mark or digit of a script that is neither Han nor Latin.
    """
    if character.isascii():
        return Script.LATIN if character.isalpha() else Script.DIGIT if character.isdigit() else Script.MARK
    name = unicodedata.name(character, "")
    if name.startswith(("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "CJK RADICAL", "KANGXI")):
        return Script.HAN
    if character in "〇〡〢〣〤〥〦〧〨〩":
        return Script.HAN
    if name.startswith("LATIN") or 0x0300 <= ord(character) <= 0x036F:
        return Script.LATIN
    if unicodedata.category(character)[0] in "LM" or unicodedata.category(character) == "Nd":
        raise LanguageError(
            f"{character!r} ({name.lower() or f'U+{ord(character):04X}'}) is of a script that is not spoken here",
            hint="the front end speaks Mandarin and English: leave the row out, or write it in one of them",
        )
    return Script.MARK


def split_runs(text: str) -> tuple[Run, ...]:
    """Runs in order; nothing is left out, joined they are `text`. Raises LanguageError."""
    scripts = [script_of(character) for character in text]
    shape = "".join(
        character if character in _MATTERS else script[0] for character, script in zip(text, scripts, strict=True)
    )
    return tuple(
        Run(script=scripts[match.start()], text=text[match.start() : match.end()]) for match in _RUN.finditer(shape)
    )


# A number with its sign, currency and unit: what must be read in one language.
_UNIT = r"\s?(?:km/h|m/s|kg|mg|km2|km|cm2|cm|mm|ml|m2|m3|m|g|°C|°F|am|pm)(?![A-Za-z0-9])"
_NUMBER = re.compile(
    rf"(?:(?<![A-Za-z0-9])[-+])?(?:(?:(?<![A-Za-z0-9])[A-Z]{{1,2}})?[$€£¥])?\d+(?:[.,:/~-]\d+)*(?:[%‰]|{_UNIT})?",
    flags=re.ASCII,
)
_CODE_BEFORE = re.compile(r"[A-Za-z0-9._+-]*$")
_CODE_AFTER = re.compile(r"^[A-Za-z0-9._+-]*")


def number_language(text: str, start: int, end: int) -> Language:
    """Language of the number at `text[start:end]`: that of its neighbours.

    Latin letters written onto the number (`MP3`, `16GB`) are a code that is looked past; where Han and English stand
    on either side the number is Mandarin, as in speech; a code with no neighbours is English.
    """
    left = _CODE_BEFORE.sub("", text[:start])
    right = _CODE_AFTER.sub("", text[end:])
    attached = text[len(left) : start] + text[end : len(text) - len(right)]
    beside = {_first_language(left[::-1]), _first_language(right)} - {None}
    if "zh" in beside:
        return "zh"
    english = beside or any(character.isalpha() for character in attached) or text[start:end].endswith(("am", "pm"))
    return "en" if english else NUMBER_ALONE


def _first_language(text: str) -> Language | None:
    for character in text:
        script = script_of(character)
        if script in (Script.HAN, Script.LATIN):
            return "zh" if script is Script.HAN else "en"
    return None


def language_stretches(text: str, language: Language | None) -> tuple[tuple[Language, str], ...]:
    """`text` cut where the language changes; `language`, if given, is that of every number. Raises LanguageError.

    Marks and spaces belong to what stands before them, at the start to what follows.
    """
    languages: list[Language | None] = [_first_language(character) for character in text]
    for match in _NUMBER.finditer(text):
        spoken = language or number_language(text, *match.span())
        languages[match.start() : match.end()] = [spoken] * (match.end() - match.start())
    first = next((found for found in languages if found), language or NUMBER_ALONE)
    filled: list[Language] = []
    for found in languages:
        filled.append(found or (filled[-1] if filled else first))
    groups = itertools.groupby(zip(filled, text, strict=True), key=lambda pair: pair[0])
    return tuple((spoken, "".join(character for _, character in pairs)) for spoken, pairs in groups)
