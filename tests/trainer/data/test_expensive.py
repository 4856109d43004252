import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.expensive import expensive_batches
from trainer.data.plan import PlanSettings, iter_windows, plan_epoch

MEASURES = {
    "padded frames": lambda frames, _: len(frames) * max(frames),
    "padded symbols": lambda frames, symbols: len(frames) * max(symbols),
    "utterances": lambda frames, _: len(frames),
    "quadratic cost": lambda frames, _: len(frames) * max(frames) ** 2,
    "longest utterance": lambda frames, _: max(frames),
}


@given(
    frames=st.lists(st.integers(1, 300), min_size=1, max_size=60), seed=st.integers(0, 9),
    window=st.none() | st.integers(1, 20), max_frames=st.integers(50, 900),
)  # fmt: skip
def test_none_is_more_expensive(frames, seed, window, max_frames):
    frames = np.array(frames)
    symbols = np.random.default_rng(seed).integers(1, 50, len(frames))
    settings = PlanSettings(max_frames=max_frames, seed=seed, ranks=2, window=window)
    blocks = np.unique([*range(0, len(frames), 7), len(frames)]) if window else None
    found = expensive_batches(iter_windows(frames, symbols, settings, 0, blocks), frames, symbols)
    plan = plan_epoch(frames, symbols, settings, 0, blocks)
    batches = [plan.order[a:b] for a, b in zip(plan.batch_offsets[:-1], plan.batch_offsets[1:], strict=True)]
    assert sorted(name for item in found for name in item.measures) == sorted(MEASURES)
    for item in found:
        assert any(np.array_equal(item.places, batch) for batch in batches)
        for name in item.measures:
            cost = MEASURES[name]
            worst = max(cost(frames[batch], symbols[batch]) for batch in batches)
            assert cost(frames[item.places], symbols[item.places]) == worst
    assert len({tuple(item.places) for item in found}) == len(found)


def test_nothing_is_not_expensive():
    settings = PlanSettings(max_frames=10)
    empty = np.empty(0, np.int64)
    assert expensive_batches([plan_epoch(empty, empty, settings, 0)], empty, empty) == []
