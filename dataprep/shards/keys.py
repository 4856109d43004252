"""An utterance's id as a WebDataset key: ASCII, bounded, unique, and without a dot, where a tar member's key ends."""

from __future__ import annotations

import hashlib
import re

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_LENGTH = 80
"""USTAR names hold 100 bytes; the longest member suffix is `.mel.npy`."""


def sample_key(utterance_id: str) -> str:
    """Key of an utterance: the id itself where it is safe, else a readable form of it with 12 hex digits of its hash.

    >>> sample_key("LJ001-0001")
    'LJ001-0001'
    >>> sample_key("spk 1/a.b").startswith("spk_1_a_b-")
    True
    """
    readable = _UNSAFE.sub("_", utterance_id).strip("_")
    if readable == utterance_id and 0 < len(utterance_id) <= _MAX_LENGTH:
        return utterance_id
    digest = hashlib.sha256(utterance_id.encode()).hexdigest()[:12]
    return f"{readable[: _MAX_LENGTH - 13]}-{digest}"
