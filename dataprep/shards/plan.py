"""Which utterance goes to which shard: a pure function of sizes."""

from __future__ import annotations

from collections.abc import Sequence


def plan_shards(sizes_bytes: Sequence[int], shard_size_bytes: int) -> list[range]:
    """Cuts a sequence into shards of about equal size, none over `shard_size_bytes` unless one utterance alone is.

    The number of shards is the least that holds the total; each then gets its even share, so that the last is not a
    crumb. Depends on nothing but its arguments.

    Args:
        sizes_bytes: what each utterance takes in a shard, in order.
        shard_size_bytes: the largest shard wanted, over zero.

    Returns:
        Ranges of places in `sizes_bytes`, none empty, that cover it in order.
    """
    total = sum(sizes_bytes)
    if not sizes_bytes:
        return []
    wanted = -(-total // shard_size_bytes)
    share = min(shard_size_bytes, -(-total // wanted))
    shards: list[range] = []
    first, filled = 0, 0
    for place, size in enumerate(sizes_bytes):
        if (place > first and filled + size > shard_size_bytes) or filled >= share:
            shards.append(range(first, place))
            first, filled = place, 0
        filled += size
    shards.append(range(first, len(sizes_bytes)))
    return shards
