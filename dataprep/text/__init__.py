"""Mandarin, English and mixed text to symbols.

In flow order: `cleaning`, `segment`, `normalizer`, then `mandarin` and `english` (with `lexicon`, `inflection`,
`letter_to_sound`, `foreign`), joined by `phonemizer` over the inventory in `symbols`. A name is imported when it is
first asked for, and dictionaries are read when they are first needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataprep.text.normalizer import normalize
    from dataprep.text.phonemizer import FRONTEND_VERSION, Phonemes, phonemize
    from dataprep.text.symbols import SYMBOLS
    from dataprep.text.words import split_words

__all__ = ["FRONTEND_VERSION", "SYMBOLS", "Phonemes", "normalize", "phonemize", "split_words"]

_HOME = {
    "FRONTEND_VERSION": "phonemizer",
    "Phonemes": "phonemizer",
    "SYMBOLS": "symbols",
    "normalize": "normalizer",
    "phonemize": "phonemizer",
    "split_words": "words",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
