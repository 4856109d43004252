"""What a resumed run says of its step groups, where the number of ranks does not suit them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.data.sampler import accumulations


def told_step_groups(checkpoint: Mapping[str, Any], ranks: int, asked_accumulations: int) -> str:
    """How the step groups of a checkpoint are computed here; nothing where it is as was asked for.

    >>> told_step_groups({"ShardDataModule": {"plan_settings": {"ranks": 2}}}, 3, 1)
    'step groups of 2 micro-batches on 3 ranks: 1 each, 1 of 3 slots empty'
    >>> told_step_groups({"ShardDataModule": {"plan_settings": {"ranks": 6}}}, 3, 2)
    ''
    """
    size = checkpoint.get("ShardDataModule", {}).get("plan_settings", {}).get("ranks")
    if not isinstance(size, int) or size == ranks * asked_accumulations:
        return ""
    each = accumulations(size, ranks)
    empty = ranks * each - size
    slots = f", {empty} of {ranks * each} slots empty" if empty else ""
    return f"step groups of {size} micro-batches on {ranks} rank{'s' * (ranks > 1)}: {each} each{slots}"
