"""What decides a plan beside the lengths and the epoch."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Literal, get_args

from schemas.base import canonical_json
from schemas.errors import UsageError

Overlong = Literal["own-batch", "error", "drop"]

DEFAULT_MAX_FRAMES = 16000
"""Padded frames of a micro-batch where no configuration says: three minutes at 22,050 Hz and a hop of 256 samples."""

_ALGORITHM = 2  # part of the digest: another way of cutting is another plan
_WHOLE = {
    "max_frames": 1, "ranks": 1, "max_batch_size": 1, "max_symbols": 1, "seed": 0, "length_classes": 1, "window": 1,
}  # fmt: skip
_REAL = {"jitter": 1.0, "quadratic": 2.0**31, "fixed": 2.0**31}
_MAY_BE_NONE = ("max_symbols", "window", "jitter")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """Everything but the lengths and the epoch that decides a plan.

    Computing B utterances of which the longest has L frames costs `fixed + B (L + quadratic L^2)`, in frames; a
    micro-batch is filled until all of it but `fixed` reaches `max_frames`.

    Raises:
        UsageError: a value outside its range; the message names all of them.
    """

    max_frames: int
    """Budget of a micro-batch in padded frames, utterances times frames of the longest, with their quadratic cost."""
    seed: int = 0
    """Seed of the order."""
    ranks: int = 1
    """Micro-batches of a step group: ranks times accumulations."""
    jitter: float | None = None
    """Largest relative change of a cost before sorting, so that batches are made anew; costs 0.9 of it in padding.
    Where None: 0.01, and for an epoch of under 100 steps one over their number, at most 0.05."""
    max_batch_size: int = 512
    """Most utterances of a micro-batch."""
    max_symbols: int | None = None
    """Most padded symbols of a micro-batch; no limit where None."""
    overlong: Overlong = "own-batch"
    """What becomes of an utterance that is over a limit by itself."""
    quadratic: float = 0.0
    """Cost of a frame for each frame of its utterance, as attention has it: 1 / 1000 doubles it at 1000 frames."""
    fixed: float = 0.0
    """Cost of a micro-batch whatever is in it, in frames; counts in the expected wait alone."""
    length_classes: int = 1
    """Length classes of a step group: each takes an equal share of `ranks`, and with it some of the accumulations."""
    window: int | None = None
    """Utterances that are sorted together, at least, in whole blocks such as shards; all of them where None."""

    def __post_init__(self) -> None:
        wrong = [
            f"{name} = {value!r} must be a whole number, at least {least} and below 2^63"
            for name, least in _WHOLE.items()
            if not _is_whole(value := getattr(self, name), least) and not (name in _MAY_BE_NONE and value is None)
        ]
        for name, end in _REAL.items():
            value = getattr(self, name)  # a configuration in YAML may say anything
            if value is None and name in _MAY_BE_NONE:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < end:
                wrong.append(f"{name} = {value!r} must be from 0 to below {end:.0f}")
        if self.overlong not in get_args(Overlong):
            wrong.append(f"overlong = {self.overlong!r} must be one of {', '.join(get_args(Overlong))}")
        if not wrong and self.ranks % self.length_classes:
            raise UsageError(
                f"plan: ranks = {self.ranks} must be a multiple of length_classes = {self.length_classes}",
                hint=f"take {self.length_classes} or a multiple of it: --ranks of `trainer plan`, --data.group_size of "
                "`trainer fit`",
            )
        if wrong:
            raise UsageError("plan: " + "; ".join(wrong), hint="change the value")

    def to_dict(self) -> dict[str, int | float | str | None]:
        """The settings by name, as a checkpoint stores them."""
        return dataclasses.asdict(self)

    def digest(self) -> str:
        """SHA-256 (hex) over the settings and the way of cutting: a plan's identity but for its data and epoch."""
        return hashlib.sha256(canonical_json({"algorithm": _ALGORITHM, **self.to_dict()})).hexdigest()


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63
