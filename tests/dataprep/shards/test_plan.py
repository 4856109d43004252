from hypothesis import given
from hypothesis import strategies as st

from dataprep.shards.plan import plan_shards


@given(st.lists(st.integers(1, 1000), max_size=200), st.integers(1, 3000))
def test_covers_everything_once_in_order_within_the_limit(sizes, limit):
    shards = plan_shards(sizes, limit)
    assert [place for shard in shards for place in shard] == list(range(len(sizes)))
    for shard in shards:
        assert len(shard) > 0
        assert len(shard) == 1 or sum(sizes[place] for place in shard) <= limit


def test_shares_evenly_rather_than_leaving_a_crumb():
    assert [len(shard) for shard in plan_shards([1] * 11, 10)] == [6, 5]


def test_one_shard_where_it_fits():
    assert plan_shards([5, 5], 10) == [range(2)]
    assert plan_shards([], 10) == []
