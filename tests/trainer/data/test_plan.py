import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import UsageError
from trainer.data.plan import PlanSettings, count_groups, iter_groups, mix64, overlong_rows, plan_epoch
from trainer.data.summary import summarize

LENGTHS = st.lists(st.integers(1, 300), max_size=120)
GOLDEN = [462, 170, 413, 121, 291, 388, 412, 436]


@st.composite
def plan_settings_of(draw):
    classes = draw(st.sampled_from([1, 1, 2, 3]))
    return PlanSettings(
        max_frames=draw(st.integers(50, 2000)),
        seed=draw(st.integers(0, 2**40)),
        ranks=classes * draw(st.integers(1, 5)),
        jitter=draw(st.sampled_from([None, 0.0, 0.03, 0.5])),
        max_batch_size=draw(st.integers(1, 40)),
        max_symbols=draw(st.one_of(st.none(), st.integers(20, 500))),
        quadratic=draw(st.sampled_from([0.0, 0.001, 0.1])),
        length_classes=classes,
        window=draw(st.one_of(st.none(), st.integers(1, 50))),
    )


SETTINGS = plan_settings_of()


def blocks_of(num_rows, num_blocks, seed=0):
    """Where blocks of uneven sizes start, and the end."""
    edges = np.random.default_rng(seed).integers(0, num_rows + 1, max(num_blocks - 1, 0))
    return np.sort(np.concatenate([[0], edges, [num_rows]])).astype(np.int64)


def cost_of(batch, num_frames, plan_settings):
    longest = int(num_frames[batch].max())
    return len(batch) * (longest + plan_settings.quadratic * longest**2)


def lengths(num_rows, seed=0, shortest=50, longest=2500):
    random = np.random.default_rng(seed)
    frames = np.clip(random.lognormal(np.log(430), 0.65, num_rows), shortest, longest).astype(np.int64)
    return frames, frames // 7 + 1


def batches(plan):
    return [plan.order[start:stop] for start, stop in zip(plan.batch_offsets, plan.batch_offsets[1:], strict=False)]


@given(
    frames=LENGTHS, plan_settings=SETTINGS, epoch=st.integers(0, 1000), symbol_share=st.integers(1, 9),
    num_blocks=st.one_of(st.none(), st.integers(1, 9)),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_each_utterance_comes_once_within_the_limits_in_full_groups(
    frames, plan_settings, epoch, symbol_share, num_blocks
):
    num_frames = np.array(frames, dtype=np.int64)
    num_symbols = num_frames // symbol_share + 1
    blocks = None if num_blocks is None else blocks_of(len(frames), num_blocks, epoch)
    plan = plan_epoch(num_frames, num_symbols, plan_settings, epoch, blocks)

    assert plan.order.dtype == np.uint32
    assert plan.batch_offsets.dtype == plan.group_offsets.dtype == np.int64
    assert sorted(plan.order.tolist()) == list(range(len(frames)))
    assert plan.batch_offsets[0] == plan.group_offsets[0] == 0
    assert plan.batch_offsets[-1] == len(frames)
    assert plan.group_offsets[-1] == len(plan.batch_offsets) - 1
    assert (np.diff(plan.batch_offsets) > 0).all()

    sizes = np.diff(plan.group_offsets)
    smaller = np.flatnonzero(sizes != plan_settings.ranks)
    assert len(smaller) <= 1
    for group in smaller:  # fewer micro-batches than slots only where there are fewer utterances than slots
        first, last = plan.group_offsets[group], plan.group_offsets[group + 1]
        assert sizes[group] < plan_settings.ranks
        assert plan.batch_offsets[last] - plan.batch_offsets[first] == sizes[group]

    overlong = set(overlong_rows(num_frames, num_symbols, plan_settings).tolist())
    for batch in batches(plan):
        if set(batch.tolist()) & overlong:
            assert len(batch) == 1
            continue
        assert len(batch) <= plan_settings.max_batch_size
        assert cost_of(batch, num_frames, plan_settings) <= plan_settings.max_frames * (1 + 1e-9)
        if plan_settings.max_symbols is not None:
            assert len(batch) * num_symbols[batch].max() <= plan_settings.max_symbols

    groups = list(iter_groups(num_frames, num_symbols, plan_settings, epoch, blocks))
    assert count_groups(num_frames, num_symbols, plan_settings, epoch, blocks) == plan.num_groups == len(groups)
    assert [group.order.tolist() for group in groups] == [plan.group(at).order.tolist() for at in range(len(groups))]
    assert [len(group.batch_offsets) - 1 for group in groups] == sizes.tolist()


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("jitter", [None, 0.0, 0.3])
def test_no_budget_is_lost_to_the_jitter(ranks, jitter):
    plan_settings = PlanSettings(max_frames=1000, ranks=ranks, jitter=jitter)
    plan = plan_epoch(np.full(60 * ranks, 100), np.ones(60 * ranks), plan_settings, 0)
    assert np.diff(plan.batch_offsets).tolist() == [10] * 6 * ranks


def test_windows_hold_whole_blocks_and_hand_on_less_than_a_group():
    frames, symbols = lengths(6000)
    blocks = np.arange(0, 6001, 100)
    plan_settings = PlanSettings(max_frames=9000, ranks=2, window=1000)
    plan = plan_epoch(frames, symbols, plan_settings, 3, blocks)
    block_of = plan.order // 100
    first_seen = [int(np.flatnonzero(block_of == block)[0]) for block in range(60)]
    # six windows of ten blocks: when a later window begins, all but a group's worth of the earlier is done
    by_window = np.argsort(first_seen).reshape(6, 10)
    for window in by_window:
        places = np.flatnonzero(np.isin(block_of, window))
        assert len(np.unique(np.concatenate([plan.order[places]]))) == 1000
        span = np.sort(places)
        assert span[800] - span[0] < 1000 + 600  # a group of 2 x 9000 frames holds up to 600 of the shortest
    assert plan.order.tolist() != plan_epoch(frames, symbols, plan_settings, 4, blocks).order.tolist()


def test_each_part_of_a_group_has_another_length_class():
    frames, symbols = lengths(20000)
    plan_settings = PlanSettings(max_frames=20000, ranks=8, length_classes=4)
    plan = plan_epoch(frames, symbols, plan_settings, 0)
    longest = np.maximum.reduceat(frames[plan.order], plan.batch_offsets[:-1])
    budgets = np.add.reduceat(frames[plan.order], plan.batch_offsets[plan.group_offsets[:-1]])
    full = np.flatnonzero(budgets > budgets.min())  # but for the last, which takes what is left
    by_class = np.array([longest[plan.group_offsets[group] :][:8].reshape(4, 2).mean(1) for group in full])
    assert (np.diff(by_class, axis=1) < 0).all()  # from long to short within each step
    assert (by_class.min(0)[:-1] >= by_class.max(0)[1:]).all()  # and the classes do not overlap
    summary = summarize(plan, frames, symbols, plan_settings)
    assert summary.expected_wait < 0.01


@pytest.mark.parametrize("ranks", [1, 3])
def test_limits_to_the_frame(ranks):
    at = plan_epoch(np.full(4 * ranks, 50), np.ones(4 * ranks), PlanSettings(max_frames=100, ranks=ranks), 0)
    above = plan_epoch(np.full(4 * ranks, 51), np.ones(4 * ranks), PlanSettings(max_frames=101, ranks=ranks), 0)
    assert [len(batch) for batch in batches(at)] == [2] * 2 * ranks
    assert [len(batch) for batch in batches(above)] == [1] * 4 * ranks


def test_utterances_at_and_above_the_budget():
    frames, symbols = np.array([100, 101, 30, 30, 30]), np.ones(5, np.int64)
    own = PlanSettings(max_frames=100)
    assert overlong_rows(frames, symbols, own).tolist() == [1]
    assert [1] in [batch.tolist() for batch in batches(plan_epoch(frames, symbols, own, 0))]
    dropped = plan_epoch(frames, symbols, PlanSettings(max_frames=100, overlong="drop"), 0)
    assert sorted(dropped.order.tolist()) == [0, 2, 3, 4]
    with pytest.raises(UsageError, match="row 1 has 101 frames"):
        plan_epoch(frames, symbols, PlanSettings(max_frames=100, overlong="error"), 0)


@pytest.mark.parametrize("ranks", [1, 4])
def test_nothing_and_one(ranks):
    nothing = plan_epoch(np.zeros(0, np.int64), np.zeros(0, np.int64), PlanSettings(max_frames=100, ranks=ranks), 0)
    assert (nothing.num_groups, len(nothing.order), nothing.batch_offsets.tolist()) == (0, 0, [0])
    one = plan_epoch(np.array([7]), np.array([1]), PlanSettings(max_frames=100, ranks=ranks), 0)
    assert (one.num_groups, one.order.tolist(), one.batch_offsets.tolist()) == (1, [0], [0, 1])


def test_batches_are_composed_anew_each_epoch_and_by_each_seed():
    frames, symbols = lengths(3000)
    plans = {
        (seed, epoch): plan_epoch(frames, symbols, PlanSettings(max_frames=20000, seed=seed, jitter=0.03), epoch)
        for seed, epoch in [(0, 0), (0, 1), (1, 0), (1, 1)]
    }
    composed = {name: {frozenset(batch.tolist()) for batch in batches(plan)} for name, plan in plans.items()}
    for one in composed:
        for other in composed:
            assert one == other or len(composed[one] & composed[other]) < 0.05 * len(composed[one])
    # seed and epoch are mixed, not added
    assert plans[0, 1].order.tolist() != plans[1, 0].order.tolist()


def test_equal_lengths_without_jitter_are_still_shuffled():
    plan_settings = PlanSettings(max_frames=1000, jitter=0.0)
    first, second = (plan_epoch(np.full(200, 100), np.full(200, 9), plan_settings, epoch) for epoch in (0, 1))
    assert {frozenset(batch.tolist()) for batch in batches(first)}.isdisjoint(
        frozenset(batch.tolist()) for batch in batches(second)
    )


def test_the_same_plan_everywhere():
    frames = 50 + np.arange(500) * 37 % 900
    symbols = frames // 7
    plan = plan_epoch(frames, symbols, PlanSettings(max_frames=9000, ranks=4, seed=7), 3)
    again = plan_epoch(
        frames.astype(np.uint32), symbols.astype(np.uint16), PlanSettings(max_frames=9000, ranks=4, seed=7), 3
    )
    assert plan.order.tolist() == again.order.tolist()
    assert plan.order[:8].tolist() == GOLDEN


def test_mix64_is_splitmix64():
    # first outputs of SplitMix64 seeded with 1234567, as published with its reference implementation
    state = np.uint64(1234567)
    wanted = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert mix64(np.arange(3, dtype=np.uint64), state).tolist() == wanted


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_ranks_hardly_wait_and_little_is_padding(ranks):
    frames, symbols = lengths(20000)
    plan_settings = PlanSettings(max_frames=20000, ranks=ranks)
    summary = summarize(plan_epoch(frames, symbols, plan_settings, 0), frames, symbols, plan_settings)
    assert summary.utterances == 20000
    assert summary.micro_batches == summary.steps * ranks
    assert summary.padding_share < 0.03
    assert summary.expected_wait < 0.01
    assert summary.max_frames <= 20000


def test_summary_by_hand():
    frames, symbols = np.array([10, 10, 8, 4]), np.array([3, 2, 1, 1])
    plan_settings = PlanSettings(max_frames=20, ranks=2, jitter=0.0)
    summary = summarize(plan_epoch(frames, symbols, plan_settings, 0), frames, symbols, plan_settings)
    # dealt: micro-batches {10, 8} and {10, 4}, both of 20 padded frames, of which 32 are real
    assert summary.padding_share == pytest.approx(1 - 32 / 40)
    assert summary.expected_wait == 0
    assert (summary.steps, summary.micro_batches, summary.max_frames, summary.max_symbols) == (1, 2, 20, 6)
    assert (summary.max_batch_size, summary.overlong) == (2, 0)


def test_the_expected_wait_goes_by_the_cost():
    frames, symbols = np.array([10, 4]), np.array([1, 1])
    for quadratic, fixed, wanted in ((0.0, 0.0, 1 - 7 / 10), (0.1, 0.0, 1 - (20 + 5.6) / 40), (0.0, 10.0, 1 - 17 / 20)):
        plan_settings = PlanSettings(max_frames=20, ranks=2, quadratic=quadratic, fixed=fixed, max_batch_size=1)
        summary = summarize(plan_epoch(frames, symbols, plan_settings, 0), frames, symbols, plan_settings)
        assert summary.expected_wait == pytest.approx(wanted)


def test_settings_say_all_that_is_wrong_and_have_an_identity():
    with pytest.raises(UsageError, match=r"max_frames = 0 .*; ranks = -1 .*; jitter = 1.5"):
        PlanSettings(max_frames=0, ranks=-1, jitter=1.5)
    assert PlanSettings(max_frames=5).digest() == PlanSettings(max_frames=5).digest()
    assert PlanSettings(max_frames=5).digest() != PlanSettings(max_frames=5, seed=1).digest()
