"""A micro-batch that does not fit is computed in halves, and nothing else is different."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_lightning.plugins import MixedPrecision

from schemas.errors import TrainingError
from tests.helpers.batches import collate, make_utterances
from tests.helpers.runs import Saver, fit, small_module
from tests.helpers.scarce import STILL, Gradients, Scarce, data
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.memory import Budget, is_out_of_memory, padded_frames, split


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return make_shard_set(tmp_path_factory.mktemp("memory") / "shards", train=made_frames(14), validation=[20, 30, 25])


@pytest.fixture(scope="module")
def whole(shards):
    gradients = Gradients()
    module = Scarce(10**9)
    recorded = fit(shards, module=module, callbacks=[gradients], data=data(shards), max_epochs=1)
    return recorded, gradients.steps, module


@given(count=st.integers(1, 12), seed=st.integers(0, 99), limit=st.none() | st.integers(1, 400))
def test_parts_hold_every_utterance_in_order_padded_to_their_own_longest(count, seed, limit):
    batch = collate(make_utterances(count, seed), extra_frames=0)
    parts = split(batch, limit)
    assert tuple(key for part in parts for key in part.keys) == batch.keys
    first = 0
    for part in parts:
        size = len(part.keys)
        assert limit is None or size == 1 or padded_frames(part) <= limit
        assert part.mels.shape[2] == int(part.mel_lengths.max())
        assert part.symbol_ids.shape[1] == int(part.symbol_lengths.max())
        rows = slice(first, first + size)
        assert torch.equal(part.mels, batch.mels[rows, :, : part.mels.shape[2]])
        assert torch.equal(part.symbol_ids, batch.symbol_ids[rows, : part.symbol_ids.shape[1]])
        for name in ("mel_lengths", "symbol_lengths", "speakers", "weights"):
            assert torch.equal(getattr(part, name), getattr(batch, name)[rows])
        assert (part.group_frames, part.num_slots) == (batch.group_frames, batch.num_slots)
        first += size


@given(count=st.integers(1, 12), seed=st.integers(0, 99), fitting=st.integers(1, 400))
def test_the_limit_is_what_was_learnt(count, seed, fitting):
    batch = collate(make_utterances(count, seed))
    budget = Budget()
    tried = []

    def compute(part, first):
        tried.append(padded_frames(part))
        if tried[-1] > fitting:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes.")
        return first

    found = list(budget.computed(batch, compute))
    assert budget.limit == min((size - 1 for size in tried if size > fitting), default=None)
    keys = tuple(key for part, _ in found for key in part.keys)
    assert keys == batch.keys[: len(keys)]
    if keys != batch.keys:
        assert budget.news[-1].is_single
    assert [first for _, first in found] == [sum(len(p.keys) for p, _ in found[:place]) for place in range(len(found))]


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (torch.OutOfMemoryError("x"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: not enough memory: you tried"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (MemoryError(), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_what_says_that_memory_ran_out(error, wanted):
    assert is_out_of_memory(error) == wanted


def test_another_error_is_not_swallowed():
    def compute(part, first):
        raise RuntimeError("shape")

    with pytest.raises(RuntimeError, match="shape"):
        list(Budget().computed(collate(make_utterances(2)), compute))


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_gradients_are_those_of_enough_memory(shards, whole, where):
    gradients, module = Gradients(), Scarce(70, where=where)
    with pytest.warns(UserWarning, match=r"memory ran out on rank 0 with \d+ padded frames.*train-00"):
        recorded = fit(shards, module=module, callbacks=[gradients], data=data(shards), max_epochs=1)
    assert [step.keys for step in recorded.steps] == [step.keys for step in whole[0].steps]
    assert module.budget.limit == min(module.failed) - 1
    assert len(module.failed) < len(module.computed) / 2  # it is learnt, not tried again and again
    for mine, wanted in zip(gradients.steps, whole[1], strict=True):
        for name in wanted:
            torch.testing.assert_close(mine[name], wanted[name], rtol=2e-3, atol=1e-5)
    assert recorded.validations == pytest.approx(whole[0].validations, rel=1e-3)
    assert recorded.steps[0].loss == pytest.approx(whole[0].steps[0].loss, rel=1e-5)


@pytest.mark.filterwarnings("ignore:memory ran out")
def test_an_utterance_that_does_not_fit_alone_ends_the_run(shards):
    with pytest.raises(TrainingError, match=r"single utterance: train-00\d\d has \d+ frames") as caught:
        fit(shards, module=Scarce(25), data=data(shards), max_epochs=1)
    assert "--data.overlong drop" in caught.value.hint


@pytest.mark.filterwarnings("ignore:memory ran out")
def test_so_does_one_in_validation(tmp_path):
    folder = make_shard_set(tmp_path / "shards", train=[20] * 6, validation=[20, 60])
    with pytest.raises(TrainingError, match="validation-0001 has 60 frames"):
        fit(folder, module=Scarce(50), data=data(folder), max_epochs=1)


@pytest.mark.filterwarnings("ignore:memory ran out")
def test_a_resumed_run_knows_the_limit_and_goes_on_bit_for_bit(shards, tmp_path):
    saver = Saver(tmp_path)
    whole = fit(shards, module=Scarce(70), callbacks=[saver], data=data(shards), max_epochs=2)
    path = next(path for path, steps in saver.saved if steps == 3 and "batch" in path.name)
    stored = torch.load(path, weights_only=True)["max_frames_at_once"]
    module = Scarce(70)
    rest = fit(shards, module=module, data=data(shards), ckpt_path=path, max_epochs=2)
    assert module.budget.limit is not None
    assert module.budget.limit <= stored
    assert rest.steps == whole.steps[3:]


@pytest.mark.parametrize("precision", ["16-mixed", "bf16-mixed"])
def test_mixed_precision(shards, precision):
    gradients = {}
    for fitting in (10**9, 70):
        kept = Gradients()
        plugin = MixedPrecision(precision, "cpu", torch.amp.GradScaler("cpu", 256.0) if "b" not in precision else None)
        with pytest.warns() if fitting == 70 else pytest.MonkeyPatch.context():
            fit(shards, module=Scarce(fitting), callbacks=[kept], data=data(shards), plugins=[plugin], max_steps=1)
        gradients[fitting] = kept.steps[0]
    plain = Gradients()
    fit(shards, module=small_module(model=STILL), callbacks=[plain], data=data(shards), max_steps=1)
    for name, wanted in plain.steps[0].items():
        size = float(wanted.norm()) + 1e-3
        for mine in gradients.values():
            assert float((mine[name] - wanted).norm()) < 0.05 * size, name
