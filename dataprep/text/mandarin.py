"""Han to initials and toned finals: dictionary tones, no sandhi, pypinyin's longest match over the whole run."""

from __future__ import annotations

import re
from functools import cache

from dataprep.text.symbols import INITIALS
from schemas.errors import TextError

_TONED = re.compile(r"([a-zêv]+)([1-5])")
_SYLLABLE_ALONE = {"m": "m", "n": "n", "ng": "ng"}
_WITHOUT_INITIAL = {"hm": ("h", "m"), "hng": ("h", "ng"), "yo": ("", "io"), "ê": ("", "eh"), "wong": ("", "ong")}


def read_han(run: str) -> tuple[str, ...]:
    """Syllables of a run of Han, one a character, as `hao3`: ü is v, the neutral tone 5.

    Raises:
        TextError: a character has no reading; the message names it.
    """
    from pypinyin import Style, lazy_pinyin

    known = _single_readings()
    for character in run:
        if ord(character) not in known:
            raise TextError(
                f"no reading is known for {character!r} (U+{ord(character):04X})",
                hint="replace the character with one that is said the same, or leave the row out",
            )
    return tuple(lazy_pinyin(run, style=Style.TONE3, neutral_tone_with_five=True, v_to_u=False))


@cache
def split_syllable(syllable: str) -> tuple[str, ...]:
    """Symbols of one syllable: its initial, if any, and its toned final.

    >>> split_syllable("hao3"), split_syllable("wo3"), split_syllable("xue2"), split_syllable("lv4")
    (('h', 'ao3'), ('uo3',), ('x', 've2'), ('l', 'v4'))

    Raises:
        TextError: not a pinyin syllable with a tone.
    """
    match = _TONED.fullmatch(syllable)
    if match is None:
        raise TextError(f"{syllable!r} is not a pinyin syllable with a tone", hint="write it as hao3, lv4 or de5")
    letters, tone = match[1], match[2]
    initial, final = _initial_and_final(letters)
    return (initial, final + tone) if initial else (final + tone,)


def _initial_and_final(letters: str) -> tuple[str, str]:
    """Undoes pinyin's spelling rules: y and w for a missing initial, u for ü, and the shortened iu, ui, un."""
    if letters in _WITHOUT_INITIAL:
        return _WITHOUT_INITIAL[letters]
    if letters in _SYLLABLE_ALONE:
        return "", _SYLLABLE_ALONE[letters]
    if letters[0] in "yw":
        return "", _after_glide(letters)
    initial = next((known for known in _long_first() if letters.startswith(known)), "")
    final = letters[len(initial) :]
    if initial in ("j", "q", "x") and final.startswith("u"):
        final = "v" + final[1:]
    if initial:
        final = {"iu": "iou", "ui": "uei", "un": "uen"}.get(final, final)
    return initial, final


def _after_glide(letters: str) -> str:
    """Final of a syllable spelled with y or w.

    yu is ü; elsewhere y stands for i (or before it), w for u.
    """
    rest = letters[1:]
    if letters.startswith("yu"):
        return "v" + rest[1:]
    glide = "i" if letters[0] == "y" else "u"
    return rest if rest.startswith(glide) else glide + rest


@cache
def _long_first() -> tuple[str, ...]:
    return tuple(sorted(INITIALS, key=len, reverse=True))


@cache
def _single_readings() -> dict[int, str]:
    from pypinyin.pinyin_dict import pinyin_dict

    readings: dict[int, str] = pinyin_dict
    return readings
