"""Tells that Latin words are not English: by how many had to be guessed, and by little words of other languages."""

from __future__ import annotations

from collections.abc import Sequence

from dataprep.text.english import Origin, Word
from schemas.errors import LanguageError

MAX_GUESSED_SHARE = 0.5
MIN_WORDS = 2
MIN_WORDS_AMID_HAN = 4
"""Amid Han, two or three unknown Latin words are a product's name rather than another language."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Articles, prepositions and the like of other languages. The first are neither English words nor usual in names; the
# second also stand in names (La Jolla, Van Gogh), so they count only beside a word that had to be guessed.
_FOREIGN = _set("avec dans dei dello det een gli het ikke ist nicht niet não questa questo une und")
_FOREIGN_IN_NAMES = _set(
    "la le les el en un de du des il lo da das die ha ce se si non ne per o e y al di los las del der den van est et "
    "que para som au una por qui sur nous vous della che og av uma aux ou nel alla esta este"
)
_ARTICLES = _set("una un el los las il")
"""At the head of a text with no further capital these are articles and not part of a name: `El sol.`, `El Paso`."""
_ENGLISH = _set(
    "the of and to in is that it was for on are as with his they at be this from have or by one had not but what all "
    "were we when your can said there use an each which she do how their if will up other about out many then them "
    "these so some her would make like him into has two more you i my me no yes a"
)


def require_english(words: Sequence[Word], *, amid_han: bool) -> None:
    """Refuses the Latin words of an utterance when they are of another language.

    Raises:
        LanguageError: of two words or more (four amid Han), more than half had to be guessed, initials aside; or more
            little words of other languages stand among them than English ones.
    """
    if len(words) < (MIN_WORDS_AMID_HAN if amid_han else MIN_WORDS):
        return
    guesses = [word.text for word in words if word.origin is Origin.GUESSED]
    if len(guesses) > MAX_GUESSED_SHARE * len(words):
        raise _refusal(f"{len(guesses)} of {len(words)} words are not English: {', '.join(guesses[:5])}")
    little = {word.text.lower() for word in words}
    telling = little & (_FOREIGN | _FOREIGN_IN_NAMES if guesses else _FOREIGN)
    if words[0].text.istitle() and all(word.text.islower() for word in words[1:]):
        telling |= {words[0].text.lower()} & _ARTICLES
    if telling and len(little & _ENGLISH) < len(telling):
        raise _refusal(f"the words {', '.join(sorted(telling))} are of another language")


def _refusal(found: str) -> LanguageError:
    return LanguageError(
        found, hint="the front end speaks Mandarin and English: leave the row out, or check the spelling"
    )
