import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.shards.reader import ShardSet
from schemas.errors import IdentityError, UsageError
from schemas.features import MelStatistics
from schemas.symbols import SymbolTable
from tests.helpers.runs import Saver, fit
from tests.helpers.shard_sets import SPEC, SYMBOLS, made_frames, make_shard_set
from trainer.data.collection import ShardMix, pooled_statistics
from trainer.data.epochs import Epochs
from trainer.data.keys import CHUNK, mix64
from trainer.data.mix import _HIGH, _ranked, mixed_places, repeats_of
from trainer.data.module import ShardDataModule
from trainer.data.plan import PlanSettings

SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=4)


@given(sizes=SIZES, data=st.data(), seed=st.integers(0, 99), epoch=st.integers(0, 50))
@settings(max_examples=100, deadline=None)
def test_each_comes_as_often_as_it_should(sizes, data, seed, epoch):
    repeats = data.draw(st.lists(st.floats(0, 4), min_size=len(sizes), max_size=len(sizes)))
    places = mixed_places(sizes, repeats, seed, epoch)
    assert (np.diff(places.astype(np.int64)) >= 0).all()
    counts = np.bincount(places, minlength=sum(sizes))
    first = 0
    for size, times in zip(sizes, repeats, strict=True):
        of_set = counts[first : first + size]
        assert all(int(times) <= count <= int(times) + 2 * (times % 1 > 0) for count in of_set)
        assert abs(of_set.sum() - times * size) <= 1 + 1e-6
        first += size
    assert places.tolist() == mixed_places(sizes, repeats, seed, epoch).tolist()


@given(size=st.integers(1, 60), times=st.floats(0, 3), seed=st.integers(0, 99), epochs=st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_over_the_epochs_none_falls_behind(size, times, seed, epochs):
    counts = np.zeros(size, np.int64)
    for epoch in range(epochs):
        counts += np.bincount(mixed_places([size], [times], seed, epoch), minlength=size)
        total = int(counts.sum())
        assert abs(total - times * size * (epoch + 1)) <= 0.5 + 1e-6  # no drift
        assert {total // size, -(-total // size)} >= set(counts.tolist())


@given(size=st.integers(1, 60), parts=st.integers(1, 7), seed=st.integers(0, 99), start=st.integers(0, 5))
@settings(max_examples=100, deadline=None)
def test_parts_of_consecutive_epochs_are_the_set(size, parts, seed, start):
    epochs = range(start * parts, (start + 1) * parts)
    taken = np.concatenate([mixed_places([size], [1 / parts], seed, epoch) for epoch in epochs])
    assert sorted(taken.tolist()) == list(range(size))


def test_a_part_is_random_and_another_in_each_cycle():
    size = 3 * CHUNK + 5
    whole = [mixed_places([size], [0.5], 1, epoch) for epoch in range(4)]
    assert abs(np.corrcoef(np.isin(np.arange(size), whole[0]), np.isin(np.arange(size), whole[2]))[0, 1]) < 0.02
    assert abs(whole[0].mean() / size - 0.5) < 0.01
    other = mixed_places([size, size], [0.5, 0.5], 1, 0)
    assert np.isin(other[other >= size] - size, whole[0]).mean() < 0.52  # each set has an order of its own


def test_edges_in_the_order_are_those_of_a_sort():
    keys = (mix64(np.arange(1000, dtype=np.uint64), np.uint64(5)) & _HIGH) | np.arange(1000, dtype=np.uint64)
    for first, stop in ((0, 1000), (0, 1), (999, 1000), (17, 400), (5, 5)):
        assert np.flatnonzero(_ranked(1000, np.uint64(5), first, stop)).tolist() == sorted(np.argsort(keys)[first:stop])


def test_repeats_by_hand():
    assert repeats_of([3.0, 1.0]) == (1.0, 1.0)
    assert repeats_of([3.0, 1.0], weights=[0.5, 2]) == (0.5, 2.0)
    assert repeats_of([0.1, 0.2, 1.7], temperature=1) == (1.0, 1.0, 1.0)
    assert repeats_of([0.0, 2.0], temperature=5) == (0.0, 1.0)
    # T = 2: shares sqrt(9) : sqrt(1) = 3 : 1 of 10 hours
    assert repeats_of([9.0, 1.0], temperature=2.0) == pytest.approx((7.5 / 9, 2.5))
    for wrong in ({"weights": [1.0]}, {"weights": [0.0, 0.0]}, {"weights": [1.0, -1.0]}, {"temperature": 0.5}):
        with pytest.raises(UsageError):
            repeats_of([9.0, 1.0], **wrong)
    with pytest.raises(UsageError, match="exclude each other"):
        repeats_of([9.0, 1.0], weights=[1, 1], temperature=2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mix")
    return [
        make_shard_set(folder / "a", train=made_frames(12), validation=made_frames(3, 1)),
        make_shard_set(folder / "b", train=made_frames(8, 5), validation=made_frames(2, 6), seed=3),
    ]


def test_rows_of_all_sets_are_read_in_the_order_asked_for(folders):
    a, b = (ShardSet(folder) for folder in folders)
    mix = ShardMix([a, b])
    assert len(mix) == 25
    assert mix.rows_of("train").tolist() == [*range(12), *range(15, 23)]
    rows = np.array([16, 0, 22, 5])
    lengths = mix.frames_of(rows)
    out = np.zeros((4, SPEC.num_mels, lengths.max()), np.float32)
    ids = mix.read_padded(rows, list(out))
    for place, row in enumerate(rows.tolist()):
        one, within = (a, row) if row < 15 else (b, row - 15)
        assert np.array_equal(out[place, :, : lengths[place]], one.read_mel(within))
        assert ids[place].tolist() == list(one.read_info(within).phoneme_ids)
        assert mix.key(row) == one.key(within)
        assert mix.manifest.speakers[int(mix.speakers_of(rows)[place])] == one.read_info(within).speaker
        assert mix.columns.frames[row] == one.columns.frames[within]
    assert mix.index_sha256 not in (a.index_sha256, b.index_sha256)
    assert ShardMix([a]).index_sha256 == a.index_sha256


def test_pooled_statistics_are_those_of_all_frames(folders):
    random = np.random.default_rng(0)
    frames = [random.normal(place, 1 + place, (count, 2)) for place, count in enumerate((30, 50))]
    manifests = []
    for folder, values in zip(folders, frames, strict=True):
        manifest = ShardSet(folder).manifest
        shard = manifest.shards[0].model_copy(update={"frames": len(values)})
        statistics = MelStatistics(mean=tuple(values.mean(0)), std=tuple(values.std(0)))
        manifests.append(manifest.model_copy(update={"shards": (shard,), "mel_statistics": statistics}))
    pooled, everything = pooled_statistics(manifests), np.concatenate(frames)
    assert pooled.mean == pytest.approx(everything.mean(0))
    assert pooled.std == pytest.approx(everything.std(0))


def test_sets_that_do_not_go_together_are_refused(folders, tmp_path):
    other = make_shard_set(tmp_path, train=[20], symbols=SymbolTable(version=1, symbols=(*SYMBOLS.symbols, "z")))
    with pytest.raises(IdentityError, match="symbol"):
        ShardMix([ShardSet(folders[0]), ShardSet(other)])


def test_a_refusal_names_both_and_what_differs(folders):
    a, b = (ShardSet(folder) for folder in folders)
    spec = b.manifest.feature_spec.model_copy(update={"sample_rate": 16000, "fmax_hz": 7600.0})
    b.manifest = b.manifest.model_copy(update={"feature_spec": spec})
    wanted = f"{folders[0]} and {folders[1]} do not go together: sample_rate 8000 and 16000, fmax_hz 4000.0 and 7600.0"
    with pytest.raises(IdentityError, match="do not go") as caught:
        ShardMix([a, b])
    assert caught.value.message == wanted
    assert "make one of them again" in caught.value.hint
    b.manifest = a.manifest.model_copy(update={"text_frontend": "other"})
    with pytest.raises(IdentityError, match="text_frontend 'made' and 'other'"):
        ShardMix([a, b])


def test_a_copy_reads_the_same(folders):
    mix = ShardMix([ShardSet(folder) for folder in folders])
    assert mix.columns.frames is mix.columns.frames  # put together once
    copy = pickle.loads(pickle.dumps(mix))
    assert "columns" not in vars(copy)  # 25 bytes an utterance
    assert copy.index_sha256 == mix.index_sha256
    assert copy.columns.frames.tolist() == mix.columns.frames.tolist()
    assert copy.shared_speakers() == ("ann", "bob")
    assert ShardMix([ShardSet(folders[0])]).shared_speakers() == ()


def test_columns_of_one_set_are_its_own(folders):
    one = ShardSet(folders[0])
    assert np.shares_memory(ShardMix([one]).columns.frames, one.columns.frames)


def test_realised_hours(folders):
    mix = ShardMix([ShardSet(folder) for folder in folders])
    epochs = Epochs(mix, PlanSettings(max_frames=150), weights=[0.5, 2])
    a, b = epochs.realised(0)
    assert (a.utterances, b.utterances, a.repeats, b.repeats) == (6, 16, 0.5, 2.0)
    assert b.hours == pytest.approx(2 * sum(made_frames(8, 5)) * 64 / 8000 / 3600)


def test_weights_that_leave_nothing_are_refused(folders):
    mix = ShardMix([ShardSet(folder) for folder in folders])
    for weights in ([0.08, 0.12], [0, 0.1]):  # of 12 and 8
        with pytest.raises(UsageError, match="may hold nothing"):
            Epochs(mix, PlanSettings(max_frames=150), weights=weights)
    some = Epochs(mix, PlanSettings(max_frames=150), weights=[0.09, 0.01])
    assert all(len(some.selection(epoch)) for epoch in range(50))


@given(hours=st.lists(st.floats(0.01, 1e5), min_size=1, max_size=5), temperature=st.floats(1, 1e6))
@settings(max_examples=100, deadline=None)
def test_temperature_keeps_hours_and_evens_them_out(hours, temperature):
    realised = np.multiply(repeats_of(hours, temperature=temperature), hours)
    assert realised.sum() == pytest.approx(sum(hours), rel=1e-7)
    by_power = np.exp(np.log(hours) / temperature)
    assert realised / realised.sum() == pytest.approx(by_power / by_power.sum(), rel=1e-6)


def test_a_mixed_run_takes_each_set_as_often_and_resumes(folders, tmp_path):
    def data(**more):
        mixed = {"weights": [0.5, 2.0], **more}
        return ShardDataModule([str(folder) for folder in folders], max_frames=150, num_workers=0, **mixed)

    saver = Saver(tmp_path)
    whole = fit(None, data=data(), max_epochs=2, callbacks=[saver])
    for epoch in (0, 1):
        assert sum(len(step.keys) for step in whole.steps if step.epoch == epoch) == 6 + 16
    path, steps = next((path, steps) for path, steps in saver.saved if steps == 2)
    rest = fit(None, data=data(), max_epochs=2, ckpt_path=path)
    assert rest.steps == whole.steps[steps:]
    with pytest.raises(IdentityError, match=r"take the shard sets 0.5, 2 times, these 1, 1"):
        fit(None, data=data(weights=None), max_epochs=2, ckpt_path=path)
