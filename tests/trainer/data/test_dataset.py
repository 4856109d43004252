import numpy as np
import pytest
import torch

from dataprep.shards.reader import ShardSet
from schemas.errors import UsageError
from tests.helpers.runs import fit
from tests.helpers.shard_sets import made_frames, make_shard_set
from trainer.data.collection import ShardMix
from trainer.data.dataset import ShardDataset
from trainer.data.loader import EpochLoader
from trainer.data.module import ShardDataModule
from trainer.data.plan import PlanSettings, plan_epoch
from trainer.data.planned import WholeEpoch
from trainer.data.sampler import BatchRequest, RankSampler
from trainer.data.selection import select


def opened(folder):
    return ShardMix([ShardSet(folder)])


def request(*rows):
    return BatchRequest(
        rows=np.array(rows), weights=np.ones(len(rows), np.float32), group_frames=9, group_symbols=5, num_slots=2
    )


def test_a_batch_is_what_the_shards_hold_padded_with_zeros(tmp_path):
    shards = opened(make_shard_set(tmp_path, train=[12, 20, 16], symbol_counts=[3, 2, 5]))
    batch = ShardDataset(shards).read(request(1, 2))
    assert batch.keys == ("train-0001", "train-0002")
    assert batch.mels.shape == (2, 8, 20)
    assert (batch.mel_lengths.tolist(), batch.symbol_lengths.tolist()) == ([20, 16], [2, 5])
    for place, row in enumerate((1, 2)):
        length = int(batch.mel_lengths[place])
        assert np.array_equal(batch.mels[place, :, :length].numpy(), shards.sets[0].read_mel(row))
        assert not batch.mels[place, :, length:].any()
        info = shards.sets[0].read_info(row)
        assert batch.symbol_ids[place, : len(info.phoneme_ids)].tolist() == list(info.phoneme_ids)
        assert shards.manifest.speakers[int(batch.speakers[place])] == info.speaker
    assert batch.symbol_ids[0, 2:].tolist() == [0, 0, 0]
    assert (batch.group_frames, batch.group_symbols, batch.num_slots) == (9.0, 5.0, 2)


@pytest.fixture(params=["fork", "spawn"])
def _start_method(request):
    usual = torch.multiprocessing.get_start_method()
    torch.multiprocessing.set_start_method(request.param, force=True)
    yield
    torch.multiprocessing.set_start_method(usual, force=True)


@pytest.mark.usefixtures("_start_method")
def test_the_order_does_not_depend_on_the_number_of_workers(tmp_path):
    shards = opened(make_shard_set(tmp_path, train=made_frames(12)))
    selection = select(shards, "train")
    plan = plan_epoch(selection.num_frames, selection.num_symbols, PlanSettings(max_frames=150), 0)

    def batches(num_workers):
        sampler = RankSampler(WholeEpoch(plan), selection, rank=0, world_size=1, group_size=1)
        return list(EpochLoader(ShardDataset(shards), sampler, num_workers=num_workers, pin_memory=False))

    here, there = batches(0), batches(2)
    assert [batch.keys for batch in here] == [batch.keys for batch in there]
    assert all(torch.equal(one.mels, other.mels) for one, other in zip(here, there, strict=True))


def test_what_cannot_be_aligned_is_left_out_and_named(tmp_path):
    # 2 x 5 + 1 = 11 frames are the least for 5 symbols
    folder = make_shard_set(tmp_path, train=[11, 10, 30, 30], symbol_counts=[5, 5, 0, 3])
    selection = select(ShardSet(folder), "train")
    assert selection.rows.tolist() == [0, 3]
    assert selection.excluded == ("train-0001", "train-0002")
    with pytest.warns(UserWarning, match="2 utterances of the train split left out.*train-0001, train-0002"):
        recorded = fit(folder, max_epochs=1)
    assert sorted(key for step in recorded.steps for key in step.keys) == ["train-0000", "train-0003"]


def test_nothing_to_train_on_and_unsuitable_groups_are_refused(tmp_path):
    empty = make_shard_set(tmp_path / "empty", train=[10], symbol_counts=[0])
    with pytest.raises(UsageError, match="no utterance that can be trained on"):
        fit(empty, max_steps=1)
    shards = make_shard_set(tmp_path / "shards", train=made_frames(4))
    with pytest.raises(UsageError, match="own plan"):
        fit(shards, max_steps=1, reload_dataloaders_every_n_epochs=0)
    grouped = ShardDataModule(str(shards), group_size=3)
    with pytest.raises(UsageError, match="takes 3 accumulations, accumulate_grad_batches is 2") as caught:
        fit(shards, data=grouped, max_steps=1, accumulate_grad_batches=2)
    assert caught.value.hint == "--trainer.accumulate_grad_batches 3"


def test_every_epoch_has_each_utterance_once_in_new_batches(tmp_path):
    shards = make_shard_set(tmp_path, train=made_frames(40))
    steps = fit(shards, max_epochs=3, num_workers=1).steps
    epochs = [[step.keys for step in steps if step.epoch == epoch] for epoch in range(3)]
    for batches in epochs:
        assert sorted(key for keys in batches for key in keys) == [f"train-{place:04d}" for place in range(40)]
    assert len({frozenset(map(frozenset, batches)) for batches in epochs}) == 3
