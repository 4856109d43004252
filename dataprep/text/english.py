"""English words to ARPAbet: the lexicon, then letters by name, then rules, and a guess for what remains."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dataprep.text.inflection import derived
from dataprep.text.lexicon import lexicon
from schemas.errors import LanguageError

Phones = tuple[str, ...]


class Origin(StrEnum):
    """Where the phones of a word come from, from the surest to the least sure."""

    LEXICON = "lexicon"
    SPELLED = "spelled"
    DERIVED = "derived"
    GUESSED = "guessed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word as written, its phones (stressed ARPAbet) and where they come from."""

    text: str
    phones: Phones
    origin: Origin


_LIGATURES = str.maketrans({"æ": "ae", "œ": "oe", "Æ": "Ae", "Œ": "Oe"})
_DOTTED = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]\.?")
_SPELLED_PLURAL = re.compile(r"([A-Z]{2,})('?s)")
_CAMEL = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z']+|[A-Z]")
_ALWAYS_SPELLED = frozenset(("AM", "PM", "US", "UK", "EU", "UN", "AI", "ID", "TV", "PC", "OK", "VR", "AR", "IP"))
"""Written in capitals amid small letters these are initials, though the lexicon has some of them as words."""
MAX_INITIALS = 5
"""Longer words in capitals are read as words where they have a vowel."""


def read_words(words: Sequence[str], *, capitals_are_initials: bool, amid_han: bool) -> tuple[Word, ...]:
    """Phones of neighbouring English words.

    Args:
        words: letters with inner apostrophes, dotted initials (`U.S.`) and accents as written; no spaces.
        capitals_are_initials: words in capitals stand amid small letters, so that they mean something.
        amid_han: the text has Han in it, where two capitals (`IT`) are initials.

    Raises:
        LanguageError: a word has letters that English has not, and its plain form is not in the lexicon.
    """
    return tuple(
        Word(text=word, phones=("AH0",), origin=Origin.LEXICON)
        if word in ("a", "A") and place + 1 < len(words) and len(words[place + 1]) > 1
        else read_word(word, capitals_are_initials=capitals_are_initials, amid_han=amid_han)
        for place, word in enumerate(words)
    )


def read_word(word: str, *, capitals_are_initials: bool = True, amid_han: bool = False) -> Word:
    """Phones of one word. Raises LanguageError as `read_words`."""
    plain = plain_letters(word)
    initials = capitals_are_initials and plain.isupper() and len(plain) > 1
    if len(plain) == 1 or (initials and (plain in _ALWAYS_SPELLED or (amid_han and len(plain) == 2))):
        return Word(text=word, phones=spelled(plain), origin=Origin.SPELLED)
    if found := lexicon().get(plain.lower()):
        return Word(text=word, phones=found, origin=Origin.LEXICON)
    ways: tuple[tuple[Origin, Callable[[], Phones | None]], ...] = (
        (Origin.SPELLED, lambda: _as_initials(plain, initials=initials)),
        (Origin.DERIVED, lambda: derived(plain.lower(), lexicon())),
        (Origin.DERIVED, lambda: _as_parts(plain)),
    )
    for origin, way in ways:
        if phones := way():
            return Word(text=word, phones=phones, origin=origin)
    return Word(text=word, phones=guessed(plain), origin=Origin.GUESSED)


def plain_letters(word: str) -> str:
    """`word` without accents: `café` is `cafe`.

    Raises:
        LanguageError: it has other letters than English and its plain form is not in the lexicon.
    """
    if word.isascii():
        return word
    split = unicodedata.normalize("NFD", word.translate(_LIGATURES))
    plain = "".join(letter for letter in split if not unicodedata.combining(letter))
    stems = (plain.lower(), plain.lower().removesuffix("s").removesuffix("'"))
    if plain.isascii() and any(stem in lexicon() for stem in stems):
        return plain
    strange = next(letter for letter in unicodedata.normalize("NFC", word) if not letter.isascii())
    raise LanguageError(
        f"the word {word!r} has the letter {strange!r}, which English has not, and is no loan word in the lexicon",
        hint="the front end speaks Mandarin and English: leave the row out, or write the word in plain letters",
    )


def spelled(letters: str) -> Phones:
    """The names of the letters, one after another; apostrophes and dots are silent."""
    names = (lexicon()[letter.lower()] if letter.lower() != "a" else ("EY1",) for letter in letters if letter.isalpha())
    return tuple(phone for name in names for phone in name)


def guessed(plain: str) -> Phones:
    """A guess from the letters alone."""
    from dataprep.text.letter_to_sound import letter_to_sound

    letters = "".join(letter for letter in plain.lower() if letter.isalpha())
    return letter_to_sound().guess(letters) or spelled(letters)


def _as_initials(plain: str, *, initials: bool) -> Phones | None:
    """U.S., GPT, GPUs, and words without a vowel."""
    if match := _SPELLED_PLURAL.fullmatch(plain):
        return (*spelled(match[1]), "Z")
    letters = plain.replace(".", "").replace("'", "").lower()
    if _DOTTED.fullmatch(plain) or not set(letters) & set("aeiouy") or (initials and len(letters) <= MAX_INITIALS):
        return spelled(plain)
    return None


def _as_parts(plain: str) -> Phones | None:
    """iPhone, ChatGPT, YouTube: what capitals divide is read part by part, if every part is known."""
    parts = _CAMEL.findall(plain)
    if len(parts) < 2 or "".join(parts) != plain:
        return None
    read = [read_word(part) for part in parts]
    known = all(part.origin is not Origin.GUESSED for part in read)
    return tuple(phone for part in read for phone in part.phones) if known else None


def is_shouted(words: Sequence[str]) -> bool:
    """All capitals throughout, and at least two of the words are ordinary ones."""
    known = sum(len(word) > 1 and word.lower() in lexicon() for word in words)
    return known >= 2 and not any(letter.islower() for word in words for letter in word)
