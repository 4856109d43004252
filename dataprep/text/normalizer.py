"""Writes out what is not spelled as it is spoken: numbers, dates, money, units, signs.

Each stretch of one language goes to `wetext` with that language named; it guesses wrongly on mixed text (`GPT-4o` would
be read with a minus). Stretches with nothing to write out never go there: it is the slowest stage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol, get_args

from dataprep.text.cleaning import clean
from dataprep.text.segment import Language, language_stretches
from schemas.errors import UsageError

LanguageOption = Literal["auto", "zh", "en"]

_TITLES = r"\b(?:Mr|Mrs|Ms|Dr|Hon|Mt|Rev|Gen|Col|Lt|Sgt|Capt|Gov|Jr|Ltd)\."
_TO_WRITE_OUT: dict[Language, re.Pattern[str]] = {
    "zh": re.compile(r"\d", re.ASCII),
    "en": re.compile(rf"\d|[$€£¥%&@#+*=]|{_TITLES}|\w\.[a-z]{{2,}}", re.ASCII),
}
_DIGITS: dict[Language, str] = {
    "zh": "零 一 二 三 四 五 六 七 八 九",
    "en": "zero one two three four five six seven eight nine",
}
_SIGNS: dict[Language, dict[str, str]] = {
    "zh": {"&": "和", "+": "加", "=": "等于", "%": "百分号", "@": "艾特", "#": "井号", "*": "星号", "°": "度",
           "×": "乘", "÷": "除以", "$": "美元", "€": "欧元", "£": "英镑", "¥": "元", "‰": "千分号"},
    "en": {"&": "and", "+": "plus", "=": "equals", "%": "percent", "@": "at", "#": "hash", "*": "star", "°": "degrees",
           "×": "times", "÷": "divided by", "$": "dollars", "€": "euros", "£": "pounds", "¥": "yuan", "‰": "per mille"},
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalized:
    """Text as it is spoken, and the kinds of warning met on the way."""

    text: str
    warnings: tuple[str, ...]


class _Normalizer(Protocol):
    def normalize(self, text: str) -> str: ...


def normalize(text: str, language: str = "auto") -> str:
    """`text` as it is spoken, with marks kept. See `normalize_with_warnings`."""
    return normalize_with_warnings(text, language).text


def normalize_with_warnings(text: str, language: str = "auto") -> Normalized:
    """Cleans `text` and writes out numbers and signs.

    Args:
        text: any text.
        language: `zh` or `en` to read every number in that language; `auto` reads each as its neighbours are.

    Raises:
        LanguageError: a character of a script that is not spoken here.
        UsageError: `language` is none of these.
    """
    if language not in get_args(LanguageOption):
        raise UsageError(f"language {language!r} is not one of auto, zh, en", hint="use auto for mixed text")
    given: Language | None = "zh" if language == "zh" else "en" if language == "en" else None
    warnings: list[str] = []
    pieces = [_written_out(piece, spoken, warnings) for spoken, piece in language_stretches(clean(text), given)]
    return Normalized(text=" ".join("".join(pieces).split()), warnings=tuple(dict.fromkeys(warnings)))


def _written_out(piece: str, language: Language, warnings: list[str]) -> str:
    """One stretch as it is spoken. `wetext` drops outer spaces, so they are put back."""
    if _TO_WRITE_OUT[language].search(piece):
        head, tail = piece[: len(piece) - len(piece.lstrip())], piece[len(piece.rstrip()) :]
        piece = head + _by_rules(_prepared(piece.strip(), language), language, warnings) + tail
    return _leftovers(piece, language, warnings)


def _prepared(piece: str, language: Language) -> str:
    """Takes out what `wetext` misreads: 12.9 as a date, v1.2.3, 10–20, C#, 1990s as seconds."""
    piece = re.sub(r"(?<=\d)–(?=\d)", "-", piece)
    if language == "en":
        piece = re.sub(r"\b([CF])#", r"\1 sharp", piece)
        return re.sub(r"\b(1[1-9]|20)([1-9]0)s\b", r"\1 '\2s", piece)
    piece = re.sub(r"([$€£¥])(\d+(?:\.\d+)?[千万亿]+)元?", r"\2\1", piece)
    piece = re.sub(r"(?<![\d.])(\d{1,3})\.(\d{1,3})(?=\.\d{1,3}(?![\d.]))", r"\1点\2", piece)
    piece = re.sub(r"(?<=点)(\d{1,3})\.(\d)", r"\1点\2", piece)
    return re.sub(r"(?<![\d.$€£¥])(\d{1,2})\.(\d{1,2})(?=[^\d.,%‰:/日号A-Za-z°-])", _decimal, piece)


def _decimal(match: re.Match[str]) -> str:
    digits = _DIGITS["zh"].split()
    return f"{match[1]}点{''.join(digits[int(digit)] for digit in match[2])}"


def _by_rules(piece: str, language: Language, warnings: list[str]) -> str:
    """What `wetext` makes of the stretch. It asserts on some input (`[5]`, `#1`): then signs are spoken first, and
    if that does not help the text stays and its digits are read one by one.
    """
    for attempt in (piece, _speak_signs(re.sub(r"[][{}<>|\\]", " ", piece), language)):
        try:
            return re.sub(r'\\(["\\])', r"\1", _rules(language).normalize(attempt))
        except (AssertionError, RuntimeError, ValueError, IndexError):
            continue
    warnings.append("not_normalized")
    return piece


def _leftovers(piece: str, language: Language, warnings: list[str]) -> str:
    """Speaks signs and digits that are still there."""
    piece = _speak_signs(piece, language)
    if re.search(r"[0-9]", piece):
        warnings.append("digits_one_by_one")
        digits = _DIGITS[language].split()
        gap = "" if language == "zh" else " "
        piece = re.sub(r"[0-9]", lambda match: gap + digits[int(match[0])] + gap, piece)
    return piece


def _speak_signs(piece: str, language: Language) -> str:
    gap = "" if language == "zh" else " "
    return "".join(gap + _SIGNS[language][sign] + gap if sign in _SIGNS[language] else sign for sign in piece)


@cache
def _rules(language: Language) -> _Normalizer:
    """The rules of one language, loaded once: 0.2 s."""
    import wetext

    normalizer: _Normalizer = wetext.Normalizer(lang=language, operator="tn")
    return normalizer
