"""The audit holds for runs that were stopped and resumed, and finds what was lost or doubled."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.audit import AuditOrigin, AuditRun, AuditStretch
from schemas.errors import FormatError, IdentityError, UsageError
from tests.helpers.runs import Saver, fit
from tests.helpers.shard_sets import made_frames, make_shard_set
from tests.trainer.test_quarantine import flip
from trainer.audit import Audit
from trainer.commands.audit import audit, audit_json, audit_text
from trainer.data.module import ShardDataModule
from trainer.data.stretches import read_stretch, write_stretch
from trainer.quarantine import Quarantine

TRAIN = 13


def header(**fields):
    defaults = {
        "index_sha256": "0" * 64, "plan_sha256": "1" * 64, "epoch": 0, "first_group": 0, "end_group": 1, "rank": 0,
        "world_size": 1, "num_places": 0, "left_out": (), "repeated": (), "unreadable": (),
    }  # fmt: skip
    return AuditStretch(**{**defaults, **fields})


@given(data=st.data(), computed=st.lists(st.booleans(), max_size=200))
@settings(max_examples=50, deadline=None)
def test_a_stretch_comes_back_as_it_was_written(data, computed, tmp_path_factory):
    places = st.lists(st.integers(0, len(computed) - 1), max_size=5) if computed else st.just([])
    stretch = header(
        num_places=len(computed), repeated=tuple(data.draw(places)), unreadable=tuple(data.draw(places)),
        epoch=data.draw(st.integers(0, 10**6)), end_group=data.draw(st.integers(0, 10**9)),
    )  # fmt: skip
    path = write_stretch(tmp_path_factory.mktemp("bits"), stretch, np.array(computed, bool))
    found, bits = read_stretch(path)
    assert found == stretch
    assert bits.tolist() == computed
    path.write_bytes(path.read_bytes()[: data.draw(st.integers(0, path.stat().st_size - 1))])
    with pytest.raises(FormatError):
        read_stretch(path)


def test_places_that_are_none_are_refused(tmp_path):
    for wrong in ({"repeated": (3,)}, {"unreadable": (-1,)}):
        path = write_stretch(tmp_path, header(num_places=3, **wrong), np.ones(3, bool))
        with pytest.raises(FormatError, match="none of the 3"):
            read_stretch(path)


def test_ten_million_places_take_little_room(tmp_path):
    dense = np.random.default_rng(0).random(10**7) < 0.5
    sparse = np.random.default_rng(0).random(10**7) < 0.001
    assert write_stretch(tmp_path, header(num_places=10**7), dense).stat().st_size < 1.3e6
    assert write_stretch(tmp_path, header(num_places=10**7), sparse).stat().st_size < 1.3e5


@pytest.fixture
def shards(tmp_path):
    return make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), validation=made_frames(3, 1))


def run_in(folder, shards, hooks=None, **flags):
    """Trains with an audit and checkpoints from every hook, or from some, in a folder like that of a command."""
    (folder / "checkpoints").mkdir(parents=True)
    saver = Saver(folder / "checkpoints")
    for name in ("on_train_epoch_start", "on_train_batch_end", "on_validation_end", "on_train_epoch_end"):
        if hooks is not None and name not in hooks:
            setattr(saver, name, lambda *_: None)
    fit(shards, callbacks=[Audit(folder), Quarantine(), saver], **flags)
    return saver


def test_a_run_of_its_own(shards, tmp_path):
    run_in(tmp_path / "run", shards, max_epochs=2)
    first, second = audit([tmp_path / "run"])
    for verdict in (first, second):
        assert (verdict.planned, verdict.once, verdict.is_whole, verdict.is_proven) == (TRAIN, TRAIN, True, True)
    assert "proven: each utterance exactly once" in audit_text([first, second])
    assert '"proven": true' in audit_json([first])


def test_from_every_checkpoint_on_other_accumulations(shards, tmp_path):
    saver = run_in(tmp_path / "first", shards, max_epochs=2, accumulate_grad_batches=2)
    for number, (path, _) in enumerate(saver.saved):
        folder = tmp_path / f"rest-{number}"
        run_in(folder, shards, max_epochs=3, ckpt_path=path)
        verdicts = audit([folder])
        assert [verdict.is_proven and verdict.is_whole for verdict in verdicts] == [True] * 3, path.name
        assert [verdict.once for verdict in verdicts] == [TRAIN] * 3


def test_an_unfinished_epoch_is_proven_as_far_as_it_went(shards, tmp_path):
    run_in(tmp_path / "run", shards, max_steps=2)
    (verdict,) = audit([tmp_path / "run"])
    assert verdict.steps == 2
    assert verdict.is_proven
    assert not verdict.is_whole
    assert 0 < verdict.once == verdict.planned < TRAIN


def test_from_checkpoints_that_are_saved_within_a_validation_only(shards, tmp_path):
    hooks = ["on_validation_end"]
    saver = run_in(tmp_path / "first", shards, hooks, max_epochs=1, val_check_interval=2)
    for number, (path, _) in enumerate(saver.saved):
        folder = tmp_path / f"rest-{number}"
        run_in(folder, shards, hooks, max_epochs=2, ckpt_path=path)
        verdicts = audit([folder])
        assert [(verdict.once, verdict.is_proven) for verdict in verdicts] == [(TRAIN, True)] * 2, path.name
    assert [verdict.discarded for verdict in verdicts] == [0, 0]


def test_a_chain_of_three_runs_and_what_they_discarded(shards, tmp_path):
    saver = run_in(tmp_path / "first", shards, max_epochs=2)
    saver = run_in(tmp_path / "second", shards, max_epochs=2, ckpt_path=saver.saved[2][0])
    run_in(tmp_path / "third", shards, max_steps=5, ckpt_path=saver.saved[1][0])
    first, second = audit([tmp_path / "third"])
    assert (first.is_proven, first.is_whole, first.steps, first.runs) == (True, True, 5, 3)
    assert first.discarded > 0
    # the second epoch, of which no step counts, is told for what was thrown away
    assert (second.is_proven, second.planned, second.stretches) == (True, 0, 0)
    assert second.discarded > 0


def files(folder, epoch):
    return sorted((folder / "audit").glob(f"epoch-{epoch:05d}-*.bits"))


@pytest.mark.parametrize("lost", [slice(1, 2), slice(-1, None), slice(0, 1), slice(None)])
@pytest.mark.parametrize("epoch", [0, 1])
def test_what_was_lost_is_named(shards, tmp_path, lost, epoch):
    run_in(tmp_path / "run", shards, max_epochs=2)
    keys = set()
    for path in files(tmp_path / "run", epoch)[lost]:
        keys |= {f"train-{place:04d}" for place in np.flatnonzero(read_stretch(path)[1])}
        path.unlink()
    verdicts = audit([tmp_path / "run"])
    assert [verdict.is_proven for verdict in verdicts] == [at != epoch for at in (0, 1)]
    assert set(verdicts[epoch].missing) == keys
    assert f"epoch {epoch}, never: train-" in audit_text(verdicts)


def test_what_was_doubled_is_named(shards, tmp_path):
    run_in(tmp_path / "run", shards, max_epochs=2)
    stretch, computed = read_stretch(files(tmp_path / "run", 0)[0])
    write_stretch(tmp_path / "run" / "audit", stretch.model_copy(update={"rank": 1}), computed)
    first, second = audit([tmp_path / "run"])
    assert len(first.repeated) == computed.sum()
    assert second.is_proven
    assert "NOT exactly once in epoch 0" in audit_text([first, second])


def test_what_one_rank_computed_twice_is_named(shards, tmp_path):
    class Twice(Audit):
        def on_train_batch_end(self, *args):
            super().on_train_batch_end(*args)
            if args[-1] == 1:
                super().on_train_batch_end(*args)

    (tmp_path / "run").mkdir()
    fit(shards, callbacks=[Twice(tmp_path / "run")], max_epochs=1)
    (verdict,) = audit([tmp_path / "run"])
    assert verdict.repeated
    assert not verdict.is_proven


def test_what_came_before_its_turn_is_named(shards, tmp_path):
    run_in(tmp_path / "run", shards, max_steps=2)
    stretch, computed = read_stretch(files(tmp_path / "run", 0)[0])
    write_stretch(tmp_path / "run" / "audit", stretch.model_copy(update={"rank": 1}), ~computed)
    (verdict,) = audit([tmp_path / "run"])
    assert verdict.early
    assert not verdict.is_proven


def test_a_stretch_that_no_checkpoint_names_does_not_count(shards, tmp_path):
    """As where a run is killed after one rank has written its stretch, and before another has."""
    run_in(tmp_path / "run", shards, max_steps=2)
    stretch, computed = read_stretch(files(tmp_path / "run", 0)[-1])
    later = stretch.model_copy(update={"first_group": 2, "end_group": 3})
    write_stretch(tmp_path / "run" / "audit", later, computed)
    (verdict,) = audit([tmp_path / "run"])
    assert (verdict.is_proven, verdict.steps, verdict.discarded) == (True, 2, 1)


def test_runs_and_shards_that_were_moved(shards, tmp_path):
    saver = run_in(tmp_path / "first", shards, max_epochs=1)
    run_in(tmp_path / "second", shards, max_epochs=1, ckpt_path=saver.saved[2][0])
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("first", "second", "shards"):
        (tmp_path / name).rename(moved / name)
    with pytest.raises(UsageError, match="was not audited"):
        audit([moved / "second"])
    (verdict,) = audit([moved / "first", moved / "second"], [str(moved / "shards")])
    assert (verdict.is_proven, verdict.once) == (True, TRAIN)
    with pytest.raises(UsageError, match=r"first does not go back to .*second"):
        audit([moved / "second", moved / "first"], [str(moved / "shards")])
    with pytest.raises(FormatError, match="no such file"):
        audit([moved / "first"])


def test_data_that_was_reset_begins_anew(shards, tmp_path):
    saver = run_in(tmp_path / "first", shards, max_epochs=2)
    path = saver.saved[2][0]
    data = ShardDataModule(str(shards), max_frames=100, num_workers=0, reset_data=True)
    saver = run_in(tmp_path / "second", shards, data=data, max_epochs=2, ckpt_path=path)
    (verdict,) = audit([tmp_path / "second"])
    assert (verdict.epoch, verdict.once, verdict.is_proven, verdict.runs) == (1, TRAIN, True, 1)
    rest = ShardDataModule(str(shards), max_frames=100, num_workers=0)
    run_in(tmp_path / "third", shards, data=rest, max_epochs=3, ckpt_path=saver.saved[1][0])
    verdicts = audit([tmp_path / "third"])
    assert [(one.epoch, one.once, one.is_proven, one.runs) for one in verdicts] == [
        (1, TRAIN, True, 2),
        (2, TRAIN, True, 1),
    ]


def test_several_sets_in_unequal_shares(shards, tmp_path):
    other = make_shard_set(tmp_path / "other", train=made_frames(10, 5), seed=3)

    def mix():
        both = [str(shards), str(other)]
        return ShardDataModule(both, weights=[1.0, 1.5], max_frames=150, num_workers=0)

    saver = run_in(tmp_path / "first", shards, data=mix(), max_epochs=2)
    run_in(tmp_path / "second", shards, data=mix(), max_epochs=2, ckpt_path=saver.saved[3][0])
    verdicts = audit([tmp_path / "second"])
    assert [(one.once, one.is_proven, one.is_whole) for one in verdicts] == [(TRAIN + 15, True, True)] * 2


def test_what_could_not_be_read_is_told_apart(shards, tmp_path):
    key = flip(shards, 3)
    run_in(tmp_path / "run", shards, max_epochs=2)
    first, second = audit([tmp_path / "run"])
    assert (first.once, first.unreadable, first.is_proven) == (TRAIN - 1, 1, True)
    assert (second.planned, second.once, second.unreadable) == (TRAIN - 1, TRAIN - 1, 0), key


def test_two_ranks(shards, tmp_path):
    subprocess.run(
        [sys.executable, "-m", "tests.helpers.ranks", str(shards), str(tmp_path), "2"],
        check=True, timeout=120, cwd=Path(__file__).parents[2], env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    verdicts = audit([tmp_path])
    assert [(verdict.once, verdict.is_proven, verdict.world_sizes) for verdict in verdicts] == [(TRAIN, True, (2,))] * 2


def test_refusals(shards, tmp_path):
    with pytest.raises(UsageError, match="was not audited"):
        audit([tmp_path])
    run_in(tmp_path / "run", shards, max_steps=1)
    other = make_shard_set(tmp_path / "other", train=made_frames(5, 9))
    with pytest.raises(IdentityError, match="trained on the index"):
        audit([tmp_path / "run"], [str(other)])
    stretch, computed = read_stretch(files(tmp_path / "run", 0)[0])
    path = write_stretch(
        tmp_path / "run" / "audit", stretch.model_copy(update={"rank": 3, "index_sha256": "0"}), computed
    )
    with pytest.raises(IdentityError, match="of another run"):
        audit([tmp_path / "run"])
    path.unlink()
    files(tmp_path / "run", 0)[0].rename(tmp_path / "run" / "audit" / "epoch-00000-renamed.bits")
    with pytest.raises(IdentityError, match="of this run"):
        audit([tmp_path / "run"])
    run = AuditRun.read(tmp_path / "run" / "audit" / "run.json")
    circle = run.model_copy(update={"origin": AuditOrigin(run=str(tmp_path / "run"), epoch=0, groups_done=0)})
    (tmp_path / "run" / "audit" / "run.json").write_bytes(circle.pretty_json())
    with pytest.raises(FormatError, match="goes on from itself"):
        audit([tmp_path / "run"])
