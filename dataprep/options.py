"""Kinds of options: what is typed, checked and turned into what is meant. Imports nothing heavy."""

from __future__ import annotations

import math
from pathlib import Path

import click


class Place(click.ParamType[Path]):
    """A path; an empty one, as an unset shell variable leaves it, is refused."""

    name = "PATH"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Checks that it is a path, and not empty."""
        if not str(value).strip():
            self.fail("is empty; an unset shell variable?", param, ctx)
        if "://" in str(value):
            self.fail(
                f"{value} is a URL, and this command works on folders; `trainer plan` and `trainer fit` read URLs",
                param,
                ctx,
            )
        return Path(str(value))


class Shares(click.ParamType[tuple[float, float, float]]):
    """Three shares, `0.9,0.05,0.05`."""

    name = "A,B,C"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float, float]:
        """Checks number and sum."""
        try:
            train, validation, test = (float(share) for share in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not three numbers with commas, such as 0.8,0.1,0.1", param, ctx)
        if not min(train, validation, test) >= 0 or not abs(train + validation + test - 1) <= 1e-6:
            self.fail(f"{value!r} must be three shares from 0 to 1 that add up to 1", param, ctx)
        return train, validation, test


class Numbers(click.ParamType[tuple[float, ...]]):
    """Numbers from 0 on, `1,0.5`."""

    name = "N,N,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Checks each."""
        try:
            numbers = tuple(float(number) for number in str(value).strip("[]").split(","))
        except ValueError:
            self.fail(f"{value!r} is not numbers with commas, such as 1,0.5", param, ctx)
        if not all(0 <= number < math.inf for number in numbers):
            self.fail(f"{value!r} must be numbers from 0 on", param, ctx)
        return numbers


class Size(click.ParamType[int]):
    """A number of bytes, `256M`."""

    name = "BYTES"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Reads K, M and G as powers of 1024."""
        text = str(value).upper().removesuffix("B").removesuffix("I")
        factor = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
        try:
            size = int(float(text.rstrip("KMG")) * factor)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a size, such as 268435456, 256M or 1G", param, ctx)
        if size < 1:
            self.fail(f"{value!r} is not above zero", param, ctx)
        return size
