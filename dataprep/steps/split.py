"""Which split an utterance belongs to: arithmetic on a hash of its name, so that adding others never moves it."""

from __future__ import annotations

import hashlib

from schemas.utterance import SPLITS, Split


def choose_split(name: str, shares: tuple[float, float, float]) -> Split:
    """Split of an utterance by the hash of `name` (its id, or its speaker) and the shares of train, validation, test.

    The hash is SHA-256 of a fixed prefix and the name, read as a number in [0, 1).
    """
    digest = hashlib.sha256(b"voxloom-split:" + name.encode()).digest()
    place = int.from_bytes(digest[:7]) / 256**7
    edge = 0.0
    for split, share in zip(SPLITS, shares, strict=True):
        edge += share
        if place < edge:
            return split
    return max(zip(shares, SPLITS, strict=True))[1]
