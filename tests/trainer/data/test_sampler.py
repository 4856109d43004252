import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.data.plan import PlanSettings, plan_epoch
from trainer.data.sampler import RankSampler, accumulations, grouped_for_validation
from trainer.data.selection import Selection


def selection_of(frames):
    num_frames = np.array(frames, dtype=np.int64)
    rows = 1000 + 2 * np.arange(len(frames))  # rows of the index are not places in the selection
    return Selection(rows=rows, num_frames=num_frames, num_symbols=num_frames // 5 + 1, excluded=())


def requests(selection, plan, world_size, group_size, **rest):
    """Requests of each rank."""
    return [
        list(RankSampler(plan, selection, rank=rank, world_size=world_size, group_size=group_size, **rest))
        for rank in range(world_size)
    ]


@given(
    frames=st.lists(st.integers(1, 200), min_size=1, max_size=60),
    world_size=st.integers(1, 5),
    group_size=st.integers(1, 7),
)
@settings(max_examples=100, deadline=None)
def test_ranks_take_equal_steps_and_weights_cover_each_utterance_once(frames, world_size, group_size):
    selection = selection_of(frames)
    plan = plan_epoch(selection.num_frames, selection.num_symbols, PlanSettings(max_frames=400, ranks=group_size), 0)
    by_rank = requests(selection, plan, world_size, group_size)
    num_accumulations = accumulations(group_size, world_size)
    assert {len(rank) for rank in by_rank} == {plan.num_groups * num_accumulations}
    weighted = [row for rank in by_rank for item in rank for row in item.rows[item.weights == 1]]
    assert sorted(weighted) == selection.rows.tolist()
    places = {row: place for place, row in enumerate(selection.rows.tolist())}
    for group in range(plan.num_groups):
        start = group * num_accumulations
        items = [item for rank in by_rank for item in rank[start : start + num_accumulations]]
        kept = [places[row] for item in items for row in item.rows[item.weights == 1].tolist()]
        assert {item.num_slots for item in items} == {world_size * num_accumulations}
        assert {item.group_frames for item in items} == {int(selection.num_frames[kept].sum())}
        assert {item.group_symbols for item in items} == {int(selection.num_symbols[kept].sum())}
        assert all(len(item.rows) > 0 for item in items)


def test_the_step_does_not_depend_on_the_number_of_ranks():
    selection = selection_of(np.random.default_rng(0).integers(10, 90, 70))
    plan = plan_epoch(selection.num_frames, selection.num_symbols, PlanSettings(max_frames=200, ranks=4), 5)

    def steps(world_size):
        by_rank = requests(selection, plan, world_size, 4)
        each = accumulations(4, world_size)
        return [
            sorted(
                row
                for rank in by_rank
                for item in rank[group * each : (group + 1) * each]
                for row in item.rows[item.weights == 1].tolist()
            )
            for group in range(plan.num_groups)
        ]

    assert steps(1) == steps(2) == steps(3) == steps(4) == steps(5)


def test_resuming_leaves_out_groups_but_not_from_the_length():
    selection = selection_of([20] * 30)
    plan = plan_epoch(selection.num_frames, selection.num_symbols, PlanSettings(max_frames=60, ranks=2), 0)
    whole = requests(selection, plan, 1, 2)[0]
    sampler = RankSampler(plan, selection, rank=0, world_size=1, group_size=2, groups_done=3)
    assert len(sampler) == len(whole) == 10
    assert [item.rows.tolist() for item in sampler] == [item.rows.tolist() for item in whole[6:]]
    done = RankSampler(plan, selection, rank=0, world_size=1, group_size=2, groups_done=plan.num_groups)
    assert (list(done), len(done)) == ([], 10)


def test_validation_batches_are_the_same_for_any_number_of_ranks():
    selection = selection_of([20, 30, 40, 50, 60])
    plan = plan_epoch(selection.num_frames, selection.num_symbols, PlanSettings(max_frames=60, jitter=0.0), 0)
    seen = []
    for world_size in (1, 2, 3, 8):
        grouped = grouped_for_validation(plan, world_size)
        by_rank = requests(selection, grouped, world_size, world_size)
        assert len({len(rank) for rank in by_rank}) == 1
        kept = [item.rows.tolist() for step in zip(*by_rank, strict=True) for item in step if item.weights[0]]
        seen.append(kept)
    assert seen[0] == seen[1] == seen[2] == seen[3]
