"""Joins the stages: clean and write out, cut into runs, read each run, put pauses where the marks are."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dataprep.text.english import Origin, Word, is_shouted, read_words
from dataprep.text.foreign import require_english
from dataprep.text.mandarin import read_han, split_syllable
from dataprep.text.normalizer import normalize_with_warnings
from dataprep.text.segment import Run, Script, split_runs
from dataprep.text.symbols import PAUSES, SYMBOLS
from schemas.errors import TextError

FRONTEND_VERSION = "1"
"""Goes up whenever the same text gives other symbols."""

SpokenLanguage = Literal["zh", "en", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phonemes:
    """A text turned into symbols.

    Attributes:
        symbols: phones, toned finals and pauses, in order.
        ids: their numbers in `SYMBOLS`.
        normalized_text: the text as it is spoken.
        language: what was spoken.
        warnings: kinds of things worth knowing, each once: `guessed_word`, `digits_one_by_one`, `not_normalized`,
            `unspoken_symbol`.
    """

    symbols: tuple[str, ...]
    ids: tuple[int, ...]
    normalized_text: str
    language: SpokenLanguage
    warnings: tuple[str, ...]


_PAUSE_OF = {
    ",": ",", "、": ",", ";": ",", ":": ",", "•": ",", "､": ",", ".": ".", "。": ".", "｡": ".",
    "?": "?", "!": "!", "…": "…", "..": "…", "—": "—", "–": "—", "--": "—",
}  # fmt: skip
_WEAKEST_FIRST = ",—….!?"
_SILENT = frozenset(" \"'“”„«»‹›()[]{}（）【】《》〈〉「」『』〔〕〖〗-_/\\·・~|¿¡")

_PASSABLE = frozenset(("So", "Sk", "Cf", "Po", "Ps", "Pe", "Pi", "Pf", "Pd", "Pc", "Zs"))
"""Unicode categories of what is not read aloud: pictures, modifiers, punctuation, spaces."""


def phonemize(text: str, language: str = "auto") -> Phonemes:
    """Turns Mandarin, English or mixed text into symbols.

    Args:
        text: any text; marks become pauses, brackets and quotes are silent.
        language: `zh` or `en` to read every number in that language, `auto` to read each as its neighbours are.

    Raises:
        LanguageError: the text, or part of it, is of another language.
        TextError: nothing in it can be pronounced, or a character has no reading.
        UsageError: `language` is none of these.
    """
    normalized = normalize_with_warnings(text, language)
    runs = split_runs(normalized.text)
    amid_han = any(run.script is Script.HAN for run in runs)
    symbols, words, unspoken = _read(runs, amid_han=amid_han)
    require_english(words, amid_han=amid_han)
    if not amid_han and not words:
        raise TextError(f"nothing pronounceable in {text!r}", hint="give the row a text with words, or leave it out")
    warnings = list(normalized.warnings)
    warnings += ["unspoken_symbol"] * bool(unspoken)
    warnings += ["guessed_word"] * any(word.origin is Origin.GUESSED for word in words)
    return Phonemes(
        symbols=tuple(symbols),
        ids=tuple(SYMBOLS.encode(symbols)),
        normalized_text=normalized.text,
        language="mixed" if amid_han and words else "zh" if amid_han else "en",
        warnings=tuple(warnings),
    )


def _read(runs: Sequence[Run], *, amid_han: bool) -> tuple[list[str], list[Word], list[str]]:
    """Symbols of all runs, the English words among them, and the marks that were passed over. Raises TextError."""
    latin = [run.text for run in runs if run.script is Script.LATIN]
    initials = amid_han or not is_shouted(latin)
    symbols: list[str] = []
    words: list[Word] = []
    unspoken: list[str] = []
    for script, texts in _pieces(runs):
        if script is Script.HAN:
            symbols += [symbol for syllable in read_han(texts[0]) for symbol in split_syllable(syllable)]
        elif script is Script.LATIN:
            read = read_words(texts, capitals_are_initials=initials, amid_han=amid_han)
            words += read
            symbols += [phone for word in read for phone in word.phones]
        elif pause := _pause_of(texts[0]):
            _add_pause(symbols, pause)
        elif texts[0] not in _SILENT:
            _require_passable(texts[0])
            unspoken.append(texts[0])
    return symbols, words, unspoken


def _pieces(runs: Sequence[Run]) -> Iterator[tuple[Script, tuple[str, ...]]]:
    """Han runs, marks, and English phrases: words with only spaces and hyphens between them are read together."""
    phrase: list[str] = []
    for run in runs:
        if run.script is Script.LATIN:
            phrase.append(run.text)
            continue
        if phrase and run.text in (" ", "-"):
            continue
        if phrase:
            yield Script.LATIN, tuple(phrase)
            phrase = []
        yield run.script, (run.text,)
    if phrase:
        yield Script.LATIN, tuple(phrase)


def _pause_of(mark: str) -> str | None:
    """The pause symbol of a mark; None where it has none. ` - `, `--` and `...` are marks of several characters."""
    if mark.strip() == "-":
        return None if mark == "-" else "—"
    return _PAUSE_OF.get(mark.strip()[:2])


def _add_pause(symbols: list[str], pause: str) -> None:
    """Never at the start, and of several in a row the strongest stays."""
    if symbols and symbols[-1] in PAUSES:
        symbols[-1] = max(symbols[-1], pause, key=_WEAKEST_FIRST.index)
    elif symbols:
        symbols.append(pause)


def _require_passable(mark: str) -> None:
    """Refuses signs that would have to be spoken (`±`, `²`); pictures and rare punctuation may be passed over.

    Raises:
        TextError: `mark` is such a sign, or stands for characters that were lost when the text was decoded.
    """
    if mark == "\N{REPLACEMENT CHARACTER}" or unicodedata.category(mark) not in _PASSABLE:
        raise TextError(
            f"the sign {mark!r} ({unicodedata.name(mark, 'no name').lower()}) has no spoken form here",
            hint="write it out as it is spoken, or leave the row out",
        )
