"""The audit holds for runs that were stopped and resumed, and finds what was lost or doubled."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.audit import AuditStretch
from schemas.errors import FormatError, IdentityError, UsageError
from tests.helpers.runs import Saver, fit
from tests.helpers.shard_sets import made_frames, make_shard_set
from tests.trainer.test_quarantine import flip
from trainer.audit import Audit, read_stretch, write_stretch
from trainer.commands.audit import audit, audit_json, audit_text
from trainer.quarantine import Quarantine

TRAIN = 13


def header(**fields):
    defaults = {
        "epoch": 0, "first_group": 0, "end_group": 1, "rank": 0, "world_size": 1, "num_places": 0, "left_out": (),
        "repeated": (), "unreadable": (),
    }  # fmt: skip
    return AuditStretch(**{**defaults, **fields})


@given(computed=st.lists(st.booleans(), max_size=200), repeated=st.lists(st.integers(0, 199), max_size=5))
@settings(max_examples=50, deadline=None)
def test_a_stretch_comes_back_as_it_was_written(computed, repeated, tmp_path_factory):
    stretch = header(num_places=len(computed), repeated=tuple(repeated))
    path = write_stretch(tmp_path_factory.mktemp("bits"), stretch, computed)
    found, bits = read_stretch(path)
    assert found == stretch
    assert bits.tolist() == computed
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError):
        read_stretch(path)


def test_ten_million_places_take_little_room(tmp_path):
    dense = np.random.default_rng(0).random(10**7) < 0.5
    sparse = np.random.default_rng(0).random(10**7) < 0.001
    assert write_stretch(tmp_path, header(num_places=10**7), dense).stat().st_size < 1.3e6
    assert write_stretch(tmp_path, header(num_places=10**7), sparse).stat().st_size < 1.3e5


@pytest.fixture
def shards(tmp_path):
    return make_shard_set(tmp_path / "shards", train=made_frames(TRAIN), validation=made_frames(3, 1))


def run_in(folder, shards, **flags):
    """Trains with an audit and checkpoints from every hook, in a folder like that of a command."""
    (folder / "checkpoints").mkdir(parents=True)
    saver = Saver(folder / "checkpoints")
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
    for number, (path, _) in enumerate(saver.saved[:-1]):
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


def test_what_was_lost_or_doubled_is_named(shards, tmp_path):
    run_in(tmp_path / "run", shards, max_epochs=1)
    files = sorted((tmp_path / "run" / "audit").glob("*.bits"))
    kept = files[1].read_bytes()
    files[1].unlink()
    (verdict,) = audit([tmp_path / "run"])
    assert not verdict.is_proven
    assert verdict.missing
    assert "never: train-" in audit_text([verdict])
    files[1].write_bytes(kept)
    _, computed = read_stretch(files[0])
    write_stretch(tmp_path / "run" / "audit", header(first_group=9, end_group=10, num_places=TRAIN), computed)
    (verdict,) = audit([tmp_path / "run"])
    assert len(verdict.repeated) == computed.sum()
    assert "NOT exactly once in epoch 0" in audit_text([verdict])


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
