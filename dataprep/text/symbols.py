"""The fixed inventory of symbols, never derived from a corpus: data sets of one version mix, and checkpoints continue.

Mandarin symbols are lower case (initials, and finals with their tone), English ones upper case (ARPAbet), so that no
name stands for two sounds. A new version may only append.
"""

from __future__ import annotations

from schemas.symbols import SymbolTable


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PADDING = "_"
"""Id 0: fills up batches, and nothing else."""
INTERLEAVED_BLANK = "|"
"""Reserved for models that put a blank between symbols; the front end never emits it."""
WORDLESS_PAUSE = "sil"
"""Reserved for silences found in a recording where the text has no mark; the front end never emits it."""
PAUSES: tuple[str, ...] = (",", ".", "?", "!", "…", "—")

INITIALS: tuple[str, ...] = _names("b p m f d t n l g k h j q x zh ch sh r z c s")

# ü is v, also after j, q, x and y. Syllables spelled with y or w have no initial: yi = i, wo = uo, yu = v, yue = ve.
# `i` covers the vowels of xi, zi and zhi, which their initials tell apart. `er` is also 儿; io is 哟 (yo), eh is ê.
# m, n and ng are syllables of their own: 呣 = m2, 嗯 = n2, 噷 (hm) = h m5.
FINALS: tuple[str, ...] = _names(
    "a ai an ang ao e ei en eng er i ia ian iang iao ie in ing io iong iou o ong ou "
    "u ua uai uan uang uei uen ueng uo v van ve vn eh m n ng"
)
TONES: tuple[str, ...] = ("1", "2", "3", "4", "5")
"""The four tones, and 5 for the neutral one."""

CONSONANTS: tuple[str, ...] = _names("B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH")
VOWELS: tuple[str, ...] = _names("AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW")
STRESSES: tuple[str, ...] = ("0", "1", "2")
"""Unstressed, main stress, secondary stress."""

MANDARIN: tuple[str, ...] = (*INITIALS, *(final + tone for final in FINALS for tone in TONES))
ENGLISH: tuple[str, ...] = (*CONSONANTS, *(vowel + stress for vowel in VOWELS for stress in STRESSES))

SYMBOLS = SymbolTable(version=1, symbols=(PADDING, INTERLEAVED_BLANK, WORDLESS_PAUSE, *PAUSES, *MANDARIN, *ENGLISH))
