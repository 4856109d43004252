"""Word boundaries in Han, which pinyin does not need but sandhi, neutral tones and reports do."""

from __future__ import annotations

import logging
import os
from functools import cache
from pathlib import Path
from typing import Protocol


class _Tokenizer(Protocol):
    def lcut(self, sentence: str) -> list[str]: ...


def split_words(run: str) -> tuple[str, ...]:
    """Words of a run of Han, in order; joined they are `run`."""
    return tuple(_tokenizer().lcut(run))


def cache_folder() -> Path:
    """Where the tokenizer keeps its prefix table: a folder of this user alone, as another user's cannot be trusted."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "voxloom"


@cache
def _tokenizer() -> _Tokenizer:
    """A tokenizer of our own: words that others in the process add to jieba's global one change nothing here."""
    import jieba

    jieba.setLogLevel(logging.WARNING)
    folder = cache_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    tokenizer = jieba.Tokenizer()
    tokenizer.tmp_dir = str(folder)
    own: _Tokenizer = tokenizer
    return own
