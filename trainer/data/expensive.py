"""The most expensive micro-batches of an epoch, each in its own way: what to try before training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.keys import Lengths
from trainer.data.plan import EpochPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Expensive:
    """A micro-batch that is the first in something."""

    measures: tuple[str, ...]
    """In what."""
    places: NDArray[np.uint32]
    """Its utterances, as places in what the plan was made from `[B]`."""


def expensive_batches(plans: Iterable[EpochPlan], num_frames: Lengths, num_symbols: Lengths) -> list[Expensive]:
    """The largest micro-batches by padded frames, padded symbols, utterances, quadratic cost and longest utterance.

    Each is listed once, whatever it is first in; of equals, the earlier is taken. Depends on the plan alone.

    Args:
        plans: the windows of an epoch.
        num_frames: frames of each utterance that the plan was made from `[n]`.
        num_symbols: its symbols `[n]`.
    """
    best: dict[str, tuple[int, tuple[int, int], NDArray[np.uint32]]] = {}
    for number, plan in enumerate(plans):
        if len(plan.order) == 0:
            continue  # a window that was left out
        for name, costs in _costs(plan, np.asarray(num_frames), np.asarray(num_symbols)).items():
            batch = int(np.argmax(costs))
            if name not in best or costs[batch] > best[name][0]:
                first, last = plan.batch_offsets[batch : batch + 2]
                best[name] = (int(costs[batch]), (number, batch), plan.order[first:last])
    found: dict[tuple[int, int], Expensive] = {}
    for name, (_, place, order) in best.items():
        measures = found[place].measures if place in found else ()
        found[place] = Expensive(measures=(*measures, name), places=order)
    return list(found.values())


def _costs(
    plan: EpochPlan, num_frames: NDArray[np.integer], num_symbols: NDArray[np.integer]
) -> dict[str, NDArray[np.int64]]:
    """Costs of the micro-batches by what they are measured in, int64 `[M]` each."""
    starts, sizes = plan.batch_offsets[:-1], np.diff(plan.batch_offsets)
    starts = np.minimum(starts, len(plan.order) - 1)  # an empty one at the end would start beyond; it costs nothing
    frames = np.maximum.reduceat(num_frames[plan.order].astype(np.int64), starts)
    symbols = np.maximum.reduceat(num_symbols[plan.order].astype(np.int64), starts)
    return {
        "padded frames": sizes * frames,
        "padded symbols": sizes * symbols,
        "utterances": sizes,
        "quadratic cost": sizes * frames**2,
        "longest utterance": np.where(sizes > 0, frames, 0),
    }
