"""Where the real recordings lie that some tests need: beside the checkout, never in it."""

import csv
from functools import cache
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the recordings beside the checkout are not there")


@cache
def catalog() -> dict[str, dict[str, str]]:
    """Facts about each file by its path below `DATA`, from ffprobe and libsndfile; empty where there are none."""
    path = DATA / "catalog.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


def files_below(folder: str) -> list[Path]:
    """The files of a folder below `DATA`, sorted; empty where it is not there."""
    place = DATA / folder
    return sorted(path for path in place.iterdir() if path.is_file()) if place.is_dir() else []
