from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dataprep.sources import SourceRow
from dataprep.tasks.slices import MAX_BYTES, MAX_ROWS, cut_slices


def row(utterance_id, num_bytes=1000):
    return SourceRow(
        id=utterance_id, path=utterance_id, file=Path(utterance_id), text="", speaker="", line=0, num_bytes=num_bytes
    )


def ids_of(slices):
    return [tuple(row.id for row in rows) for rows in slices]


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=600), st.integers(0, MAX_BYTES))
def test_every_row_once_in_order_within_the_caps(numbers, num_bytes):
    rows = [row(f"{number:07d}", num_bytes) for number in sorted(numbers)]
    slices = cut_slices(rows)
    assert [one for some in slices for one in some] == rows
    for some in slices:
        assert 0 < len(some) <= MAX_ROWS
        assert len(some) == 1 or sum(one.num_bytes for one in some) <= MAX_BYTES


@given(st.integers(0, 10**6))
def test_one_more_row_touches_at_most_two_slices(number):
    rows = [row(f"{2 * place:07d}") for place in range(3000)]
    more = sorted([*rows, row(f"{number * 2 % 6001 + 1:07d}")], key=lambda one: one.id)
    before, after = set(ids_of(cut_slices(rows))), set(ids_of(cut_slices(more)))
    assert len(before - after) <= 2
