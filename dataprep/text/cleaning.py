"""Makes characters uniform before anything is read: one width, one kind of each mark, nothing invisible."""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u20e3\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]")
_SAME = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "′": "'", "`": "'", "‐": "-", "‑": "-", "−": "-", "⁄": "/", "‒": "–", "―": "—"}
)
_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_SUPERSCRIPT = re.compile(r"(?<=\d)[⁰¹²³⁴-⁹]+")


def clean(text: str) -> str:
    """`text` in Unicode form NFKC (full width to half, ① to 1, ㎡ to m2), invisible characters gone, spaces single.

    A power after a digit keeps its form: `10²` must not become 102, and what cannot be read is reported later; `3½`
    becomes `3 1/2`.
    """
    text = _FRACTION.sub(" ", _INVISIBLE.sub("", text))
    powers = _SUPERSCRIPT.findall(text)
    pieces = [unicodedata.normalize("NFKC", piece) for piece in _SUPERSCRIPT.split(text)]
    joined = pieces[0] + "".join(power + piece for power, piece in zip(powers, pieces[1:], strict=True))
    visible = "".join(" " if unicodedata.category(character) == "Cc" else character for character in joined)
    return " ".join(visible.translate(_SAME).split())
