import numpy as np

from trainer.data.plan import EpochPlan, PlanSettings, plan_epoch
from trainer.data.shapes import batch_shapes, largest_batches, length_classes

FRAMES, SYMBOLS = np.array([10, 25, 40, 5]), np.array([3, 9, 2, 1])
PLAN = EpochPlan(
    order=np.array([2, 1, 0, 3], np.uint32), batch_offsets=np.array([0, 2, 3, 4]), group_offsets=np.array([0, 3])
)


def test_shapes_by_hand():
    shapes = batch_shapes(PLAN, FRAMES, SYMBOLS)
    assert shapes.sizes.tolist() == [2, 1, 1]
    assert shapes.longest_frames.tolist() == [40, 10, 5]
    assert shapes.padded_frames.tolist() == [80, 10, 5]
    assert shapes.padded_symbols.tolist() == [18, 3, 1]
    assert shapes.real_frames.tolist() == [65, 10, 5]


def test_the_largest_by_hand():
    shapes = batch_shapes(PLAN, FRAMES, SYMBOLS)
    first, second = largest_batches(PLAN, shapes.padded_frames, FRAMES, 2)
    assert (first.utterances, first.longest, first.padded, first.place) == (2, 40, 80, 2)
    assert (second.utterances, second.longest, second.padded, second.place) == (1, 10, 10, 0)
    assert largest_batches(PLAN, shapes.padded_symbols, SYMBOLS, 1)[0].place == 1


def test_classes_by_hand():
    # ten frames a second: 1, 2.5, 4 and 0.5 seconds
    classes = length_classes(PLAN, batch_shapes(PLAN, FRAMES, SYMBOLS), FRAMES, 10.0)
    assert [(one.above_seconds, one.below_seconds, one.utterances, one.micro_batches) for one in classes] == [
        (0.0, 1.0, 1, 1), (1.0, 2.0, 1, 1), (2.0, 4.0, 1, 0), (4.0, 6.0, 1, 1),
    ]  # fmt: skip
    assert [(one.least_frames, one.most_frames) for one in classes] == [(0, 9), (10, 19), (20, 39), (40, 59)]
    assert [one.frames_share for one in classes] == [5 / 80, 10 / 80, 25 / 80, 40 / 80]


def test_classes_hold_everything():
    frames = np.random.default_rng(0).integers(1, 4000, 1000)
    plan = plan_epoch(frames, frames // 7 + 1, PlanSettings(max_frames=9000), 0)
    classes = length_classes(plan, batch_shapes(plan, frames, frames), frames, 86.13)
    assert sum(one.utterances for one in classes) == 1000
    for one in classes:  # at 86.13 frames a second, 87 frames are the first that last a second or longer
        most = one.most_frames or frames.max()
        assert one.utterances == ((one.least_frames <= frames) & (frames <= most)).sum()
        assert one.least_frames / 86.13 >= one.above_seconds > (one.least_frames - 1) / 86.13
    assert sum(one.micro_batches for one in classes) == len(plan.batch_offsets) - 1
    assert abs(sum(one.frames_share for one in classes) - 1) < 1e-9


def test_an_empty_plan_has_no_shapes():
    empty = np.zeros(0, np.int64)
    plan = plan_epoch(empty, empty, PlanSettings(max_frames=10), 0)
    assert len(batch_shapes(plan, empty, empty).sizes) == 0
    assert largest_batches(plan, empty, empty, 3) == []
    assert length_classes(plan, batch_shapes(plan, empty, empty), empty, 86.13) == []


def test_what_is_dropped_is_in_no_class():
    frames = np.array([10, 1000, 20])
    plan = plan_epoch(frames, frames, PlanSettings(max_frames=50, overlong="drop"), 0)
    (only,) = length_classes(plan, batch_shapes(plan, frames, frames), frames, 100.0)
    assert (only.utterances, only.frames_share) == (2, 1.0)


def test_empty_micro_batches_are_none():
    for seed in range(20):  # the last group is spread over fewer
        frames = np.random.default_rng(seed).integers(5, 60, seed)
        plan = plan_epoch(frames, frames, PlanSettings(max_frames=60, ranks=8), 0)
        assert (np.diff(plan.batch_offsets) > 0).all()
