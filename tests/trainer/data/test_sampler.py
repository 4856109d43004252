import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.data.epochs import block_offsets
from trainer.data.plan import PlanSettings, plan_epoch
from trainer.data.planned import WholeEpoch, WindowedEpoch
from trainer.data.sampler import RankSampler, accumulations, grouped_for_validation
from trainer.data.selection import Selection
from trainer.data.windows import EpochInput


def selection_of(frames):
    num_frames = np.array(frames, dtype=np.int64)
    rows = 1000 + 2 * np.arange(len(frames), dtype=np.uint32)  # rows of the index are not places in the selection
    return Selection(first_row=0, kept=rows, num_frames=num_frames, num_symbols=num_frames // 5 + 1)


def planned_of(selection, plan_settings, epoch):
    frames, symbols = selection.num_frames, selection.num_symbols
    if plan_settings.window is None:
        return WholeEpoch(plan_epoch(frames, symbols, plan_settings, epoch))
    blocks = block_offsets(np.arange(len(frames)) // 7)
    given = EpochInput(
        num_frames=frames, num_symbols=symbols, settings=plan_settings, epoch=epoch, block_offsets=blocks
    )
    return WindowedEpoch(given, np.arange(len(blocks) - 1))


def requests(selection, planned, world_size, group_size, **rest):
    """Requests of each rank."""
    return [
        list(RankSampler(planned, selection, rank=rank, world_size=world_size, group_size=group_size, **rest))
        for rank in range(world_size)
    ]


def steps_of(by_rank, each):
    """Rows of each optimizer step over all ranks, which took `each` micro-batches for it."""
    return [
        sorted(row for rank in by_rank for item in rank[start : start + each] for row in item.rows.tolist())
        for start in range(0, len(by_rank[0]), each)
    ]


@given(
    frames=st.lists(st.integers(1, 200), min_size=1, max_size=60),
    world_size=st.integers(1, 5),
    group_size=st.integers(1, 7),
    window=st.one_of(st.none(), st.integers(1, 40)),
)
@settings(max_examples=100, deadline=None)
def test_ranks_take_equal_steps_and_cover_each_utterance_once(frames, world_size, group_size, window):
    selection = selection_of(frames)
    planned = planned_of(selection, PlanSettings(max_frames=400, ranks=group_size, window=window), 0)
    by_rank = requests(selection, planned, world_size, group_size)
    num_accumulations = accumulations(group_size, world_size)
    assert {len(rank) for rank in by_rank} == {planned.num_groups * num_accumulations}
    asked = [row for rank in by_rank for item in rank for row in item.rows]
    assert sorted(asked) == selection.rows.tolist()
    for group in range(planned.num_groups):
        start = group * num_accumulations
        items = [item for rank in by_rank for item in rank[start : start + num_accumulations]]
        places = [place for item in items for place in item.places.tolist()]
        assert [row for item in items for row in item.rows] == selection.rows_at(np.array(places)).tolist()
        assert {item.num_slots for item in items} == {world_size * num_accumulations}
        assert {item.group_frames for item in items} == {int(selection.num_frames[places].sum())}
        assert {item.group_symbols for item in items} == {int(selection.num_symbols[places].sum())}
        assert {item.group for item in items} == {group}
        assert all(len(item.rows) == len(item.weights) == item.weights.sum() for item in items)


@given(
    num_rows=st.integers(1, 80),
    group_size=st.integers(1, 7),
    before=st.integers(1, 5),
    after=st.integers(1, 5),
    killed_at=st.floats(0, 1),
    budget=st.integers(60, 600),
    window=st.one_of(st.none(), st.integers(1, 40)),
    length_classes=st.sampled_from([1, 2]),
    epoch=st.integers(0, 99),
)
@settings(max_examples=200, deadline=None)
def test_killed_and_resumed_on_other_ranks_is_never_stopped(
    num_rows, group_size, before, after, killed_at, budget, window, length_classes, epoch
):
    group_size *= length_classes
    selection = selection_of(np.random.default_rng(num_rows).integers(10, 90, num_rows))
    plan_settings = PlanSettings(max_frames=budget, ranks=group_size, window=window, length_classes=length_classes)
    planned = planned_of(selection, plan_settings, epoch)
    whole = steps_of(requests(selection, planned, 1, group_size), group_size)
    groups_done = int(killed_at * planned.num_groups)
    first = steps_of(requests(selection, planned, before, group_size), accumulations(group_size, before))
    rest = steps_of(
        requests(selection, planned_of(selection, plan_settings, epoch), after, group_size, groups_done=groups_done),
        accumulations(group_size, after),
    )
    assert first[:groups_done] + rest == whole


def test_resuming_leaves_out_groups_but_not_from_the_length():
    selection = selection_of([20] * 30)
    planned = planned_of(selection, PlanSettings(max_frames=60, ranks=2), 0)
    whole = requests(selection, planned, 1, 2)[0]
    sampler = RankSampler(planned, selection, rank=0, world_size=1, group_size=2, groups_done=3)
    assert len(sampler) == len(whole) == 10
    assert [item.rows.tolist() for item in sampler] == [item.rows.tolist() for item in whole[6:]]
    done = RankSampler(planned, selection, rank=0, world_size=1, group_size=2, groups_done=planned.num_groups)
    assert (list(done), len(done)) == ([], 10)


def test_the_shards_of_a_window_and_the_next_are_told_before_the_window():
    selection = selection_of(np.random.default_rng(0).integers(10, 90, 210))
    planned = planned_of(selection, PlanSettings(max_frames=200, window=70), 0)  # three windows of ten blocks
    told = []
    sampler = RankSampler(planned, selection, rank=0, world_size=1, group_size=1, on_window=told.append)
    seen = set()
    for item in sampler:
        seen |= set((item.places // 7).tolist())
        assert seen <= {block for blocks in told for block in blocks.tolist()}
    assert [len(blocks) for blocks in told] == [20, 20, 10]
    assert seen == set(range(30))


def test_validation_batches_are_the_same_for_any_number_of_ranks():
    selection = selection_of([20, 30, 40, 50, 60])
    plan = plan_epoch(selection.num_frames, selection.num_symbols, PlanSettings(max_frames=60, jitter=0.0), 0)
    seen = []
    for world_size in (1, 2, 3, 8):
        grouped = WholeEpoch(grouped_for_validation(plan, world_size))
        by_rank = requests(selection, grouped, world_size, world_size)
        assert len({len(rank) for rank in by_rank}) == 1
        kept = [item.rows.tolist() for step in zip(*by_rank, strict=True) for item in step if len(item.rows)]
        seen.append(kept)
    assert seen[0] == seen[1] == seen[2] == seen[3]
