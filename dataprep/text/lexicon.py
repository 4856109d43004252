"""The pronouncing dictionary: CMUdict as it stands beside this file, read once."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

LEXICON_FILE = "cmudict.dict.gz"


def parse_lexicon(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Word (lower case) to the phones of its first entry. `word(2)` marks further readings, `#` a remark."""
    lexicon: dict[str, tuple[str, ...]] = {}
    for line in lines:
        word, *phones = line.split("#", 1)[0].split()
        if not word.endswith(")"):
            lexicon.setdefault(word, tuple(phones))
    return lexicon


@cache
def lexicon() -> dict[str, tuple[str, ...]]:
    """CMUdict: some 126,000 words, for reading only."""
    packed = (files("dataprep.text") / "data" / LEXICON_FILE).read_bytes()
    return parse_lexicon(gzip.decompress(packed).decode("utf-8").splitlines())
