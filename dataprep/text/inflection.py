"""Says words that are not in the lexicon but are made of words that are: endings, prefixes, compounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Phones = tuple[str, ...]
Lexicon = Mapping[str, Phones]

_SIBILANTS = frozenset(("S", "Z", "SH", "ZH", "CH", "JH"))
_VOICELESS = frozenset(("P", "T", "K", "F", "TH", "S", "SH", "CH"))
_VOWEL_LETTERS = "aeiou"
MIN_PART = 4
"""Letters of each part of a compound: with three, too many foreign words fall apart into English ones."""


def plural(base: Phones) -> Phones:
    """With the ending of cats, dogs or horses, by the last sound."""
    if base[-1] in _SIBILANTS:
        return (*base, "IH0", "Z")
    return (*base, "S" if base[-1] in _VOICELESS else "Z")


def past(base: Phones) -> Phones:
    """With the ending of walked, played or wanted, by the last sound."""
    if base[-1] in ("T", "D"):
        return (*base, "IH0", "D")
    return (*base, "T" if base[-1] in _VOICELESS else "D")


def _adding(*ending: str) -> Callable[[Phones], Phones]:
    return lambda base: (*base, *ending)


def _plain_stems(stem: str) -> tuple[str, ...]:
    return (stem,)


def _stems_before_vowel(stem: str) -> tuple[str, ...]:
    """walk(ing), bak(ing) = bake, runn(ing) = run, tri(ed) = try."""
    stems = [stem, stem + "e"]
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in _VOWEL_LETTERS:
        stems.append(stem[:-1])
    if stem.endswith("i"):
        stems.append(stem[:-1] + "y")
    return tuple(stems)


def _stems_before_es(stem: str) -> tuple[str, ...]:
    """box(es), and tri(es) = try."""
    return (stem[:-1] + "y", stem) if stem.endswith("i") else (stem, stem + "e")


_ENDINGS: tuple[tuple[str, Callable[[str], tuple[str, ...]], Callable[[Phones], Phones]], ...] = (
    ("'s", _plain_stems, plural),
    ("'ll", _plain_stems, _adding("AH0", "L")),
    ("'d", _plain_stems, past),
    ("'ve", _plain_stems, _adding("AH0", "V")),
    ("'re", _plain_stems, _adding("ER0")),
    ("'st", lambda stem: (stem, stem + "e"), _adding("S", "T")),
    ("es", _stems_before_es, plural),
    ("s", _plain_stems, plural),
    ("ed", _stems_before_vowel, past),
    ("ing", _stems_before_vowel, _adding("IH0", "NG")),
    ("er", _stems_before_vowel, _adding("ER0")),
    ("ers", _stems_before_vowel, _adding("ER0", "Z")),
    ("est", _stems_before_vowel, _adding("AH0", "S", "T")),
    ("ally", lambda stem: (stem,) if stem.endswith("ic") else (), _adding("L", "IY0")),
    ("ly", _plain_stems, _adding("L", "IY0")),
    ("ness", lambda stem: (stem, stem[:-1] + "y") if stem.endswith("i") else (stem,), _adding("N", "AH0", "S")),
    ("less", _plain_stems, _adding("L", "AH0", "S")),
    ("ful", _plain_stems, _adding("F", "AH0", "L")),
    ("able", _stems_before_vowel, _adding("AH0", "B", "AH0", "L")),
)
_PREFIXES: tuple[tuple[str, Phones], ...] = (
    ("un", ("AH0", "N")), ("re", ("R", "IY0")), ("non", ("N", "AA2", "N")), ("mis", ("M", "IH0", "S")),
    ("pre", ("P", "R", "IY0")), ("over", ("OW2", "V", "ER0")), ("under", ("AH2", "N", "D", "ER0")),
    ("inter", ("IH2", "N", "T", "ER0")), ("anti", ("AE2", "N", "T", "IY0")), ("micro", ("M", "AY2", "K", "R", "OW0")),
)  # fmt: skip


def derived(word: str, lexicon: Lexicon) -> Phones | None:
    """Phones of `word` (lower case) by one ending, one prefix, or a compound of two words; None where none fits."""
    return _with_ending(word, lexicon) or _with_prefix(word, lexicon) or _compound(word, lexicon)


def _with_ending(word: str, lexicon: Lexicon) -> Phones | None:
    for ending, stems, say in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < (2 if "'" in ending else 3):
            continue
        for base in stems(stem):
            found = lexicon.get(base) or _compound(base, lexicon)
            if found:
                return say(found)
    return None


def _with_prefix(word: str, lexicon: Lexicon) -> Phones | None:
    for prefix, phones in _PREFIXES:
        rest = word.removeprefix(prefix)
        if rest != word and len(rest) >= MIN_PART and (found := lexicon.get(rest) or _with_ending(rest, lexicon)):
            return (*phones, *found)
    return None


def _compound(word: str, lexicon: Lexicon) -> Phones | None:
    """Two words written together; the longer first part wins, and the second word's stress becomes secondary."""
    for cut in range(len(word) - MIN_PART, MIN_PART - 1, -1):
        first, second = lexicon.get(word[:cut]), lexicon.get(word[cut:])
        if first and second:
            return (*first, *(phone.replace("1", "2") for phone in second))
    return None
