"""Shards in a real S3 server: the same utterances, a bounded cache, and a server that dies and returns."""

import multiprocessing
import os
import shutil
import signal
import threading
import time
import warnings

import numpy as np
import pytest
import pytorch_lightning as pl

from dataprep.shards.atomic import file_sha256
from dataprep.shards.cache import CacheSettings
from dataprep.shards.reader import LoadedSample, ShardSet
from dataprep.shards.storage import open_storage
from schemas.dataset import FileInfo
from schemas.errors import FormatError, MachineError, UsageError
from tests.helpers.corpora import tool
from tests.helpers.runs import fit
from tests.helpers.s3 import S3Server, needs_rclone
from tests.helpers.shard_sets import made_frames, make_shard_set
from tests.trainer.test_quarantine import flip
from trainer.data.module import ShardDataModule

pytestmark = [needs_rclone, pytest.mark.filterwarnings("ignore:.*(out of reach|is back|part by part)")]
TRAIN, EACH = 24, 4


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("s3")
    (root / "bucket").mkdir()
    server = S3Server(root)
    yield server
    server.kill()


@pytest.fixture
def url(server, monkeypatch, request):
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    folder = server.root / "bucket" / request.node.name.split("[")[0]
    shutil.rmtree(folder, ignore_errors=True)
    make_shard_set(folder, train=made_frames(TRAIN), validation=made_frames(3, 1), shard_utterances=EACH)
    return f"s3://bucket/{folder.name}"


def folder_of(server, url):
    return server.root / url.removeprefix("s3://")


def cache(tmp_path, **more):
    return CacheSettings(**{"folder": tmp_path / "cache", "retry_seconds": 60.0, **more})


def read_all(shards):
    return shards.read_batch(np.arange(len(shards)))


def settle(shards):
    """Waits until nothing is fetched in the background."""
    deadline = time.monotonic() + 60
    while not shards.storage.is_idle():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def mels(shards):
    loaded = read_all(shards)
    assert all(isinstance(sample, LoadedSample) for sample in loaded), loaded
    return [np.array(sample.mel) for sample in loaded]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_same_utterances(server, url, tmp_path):
    near, far = ShardSet(folder_of(server, url)), ShardSet(url, cache(tmp_path))
    assert same(mels(near), mels(far))
    assert far.index_sha256 == near.index_sha256
    assert far.location == url
    settle(far)
    assert all(far.storage.has(info) for info in far.manifest.shards), "the cache holds all, so all are fetched"
    far.close()
    assert same(mels(near), mels(far))


def test_a_small_cache_stays_within_its_limit(server, url, tmp_path):
    near = ShardSet(folder_of(server, url))
    shard_bytes = max(info.bytes for info in near.manifest.shards)
    limit = near.manifest.index.bytes + 2 * shard_bytes
    far = ShardSet(url, cache(tmp_path, max_bytes=limit))
    far.storage.want(far.manifest.shards[:2])
    for row in np.random.default_rng(0).permutation(len(near)).tolist():
        assert same(mels_of(near, row), mels_of(far, row))
        held = sum(path.stat().st_size for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock")
        assert held <= limit
    with pytest.raises(UsageError, match="the cache may hold 1,000"):
        ShardSet(url, cache(tmp_path, folder=tmp_path / "tiny", max_bytes=1000))


def mels_of(shards, row):
    return [np.array(sample.mel) for sample in shards.read_batch(np.array([row]))]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_make_connections_of_their_own(server, url, tmp_path, method):
    far = ShardSet(url, cache(tmp_path))
    here = mels(far)
    settle(far)
    shutil.rmtree(tmp_path / "cache")
    with multiprocessing.get_context(method).Pool(2) as pool:
        there = pool.map_async(mels, [far, far]).get(timeout=60)
    assert all(same(here, found) for found in there)


def test_a_server_that_dies_and_returns(server, url, tmp_path):
    near, far = ShardSet(folder_of(server, url)), ShardSet(url, cache(tmp_path))
    server.kill()
    threading.Timer(8.0, server.start).start()
    with pytest.warns(UserWarning, match="is back after"):
        found = mels(far)
    assert same(mels(near), found)


def test_a_server_that_stays_away_is_an_error_in_time(server, url, tmp_path):
    far = ShardSet(url, cache(tmp_path, retry_seconds=2.0))
    server.kill()
    try:
        began = time.monotonic()
        with pytest.raises(MachineError, match="out of reach for") as caught:
            mels(far)
        assert time.monotonic() - began < 60
        assert "the same command goes on" in caught.value.hint
    finally:
        server.start()


def fetch(location, info, settings):
    open_storage(location, settings).local_file(info)


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A server from which 24 MB take three seconds, the description of the one file there, and its bucket."""
    (tmp_path / "slow" / "bucket").mkdir(parents=True)
    path = tmp_path / "slow" / "bucket" / "large.tar"
    path.write_bytes(np.random.default_rng(0).bytes(24 * 2**20))
    slow = S3Server(tmp_path / "slow", bytes_per_second=8 * 2**20)
    for name, value in slow.environment.items():
        monkeypatch.setenv(name, value)
    yield slow, FileInfo(name="large.tar", bytes=path.stat().st_size, sha256=file_sha256(path)), "s3://bucket"
    slow.kill()


def test_a_server_that_dies_in_the_middle_of_a_file(large, tmp_path):
    slow, info, location = large
    storage = open_storage(location, cache(tmp_path))

    def restart():
        time.sleep(1.5)  # a half of the file is out
        slow.kill()
        time.sleep(2.0)
        slow.start()

    thread = threading.Thread(target=restart)
    thread.start()
    with pytest.warns(UserWarning, match="is back after"):
        path = storage.local_file(info)
    thread.join(60)
    assert file_sha256(path) == info.sha256


def test_a_killed_process_leaves_a_usable_cache(large, tmp_path):
    _, info, location = large
    settings = cache(tmp_path, max_bytes=info.bytes + 1000)
    process = multiprocessing.get_context("spawn").Process(target=fetch, args=(location, info, settings))
    process.start()
    deadline = time.monotonic() + 60
    while not list((tmp_path / "cache").glob("*.part")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert file_sha256(open_storage(location, settings).local_file(info)) == info.sha256
    assert [path.suffix for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock"] == [".tar"]


def test_damage_on_the_server_is_named(server, url, tmp_path):
    folder = folder_of(server, url)
    flip(folder, 5)
    (folder / "train-000003.tar").unlink()
    far = ShardSet(url, cache(tmp_path))
    loaded = far.read_batch(np.arange(TRAIN))
    wrong = {row: str(sample) for row, sample in enumerate(loaded) if isinstance(sample, FormatError)}
    # what is read by ranges is compared with the checksum of each member, a whole file with its hash
    assert sorted(wrong) == [5, 12, 13, 14, 15]
    assert "train-000001.tar: train-0005" in wrong[5]
    assert "train-000003.tar: train-0012" in wrong[12]
    assert "no such object" in wrong[12]
    settle(far)
    assert sorted(row for row, sample in enumerate(read_all(far)) if isinstance(sample, FormatError)) == sorted(wrong)
    for shard, words in ((1, "SHA-256"), (3, "no such object")):
        with pytest.raises(FormatError, match=words) as caught:
            far.storage.local_file(far.manifest.shards[shard])
        assert caught.value.path == f"{url}/train-00000{shard}.tar"


def test_no_shard_set_and_no_access(server, url, tmp_path, monkeypatch):
    with pytest.raises(FormatError, match="no such object"):
        ShardSet(url + "-not", cache(tmp_path))
    with pytest.raises(UsageError, match=r"no such bucket \(asked http://127.0.0.1:"):
        ShardSet("s3://no-bucket/shards", cache(tmp_path))
    with pytest.raises(UsageError, match="the request is refused"):
        ShardSet("s3://not a bucket/shards", cache(tmp_path))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret-of-this-test")
    with pytest.raises(UsageError, match="access is denied"):
        ShardSet(url, cache(tmp_path))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_training_in_windows_is_training_from_the_folder(server, url, tmp_path, num_workers):
    near = folder_of(server, url)
    limit = sum(path.stat().st_size for path in near.iterdir()) / 2e9

    def data(location, **more):
        return ShardDataModule(str(location), max_frames=150, window=8, num_workers=num_workers, **more)

    whole = fit(None, data=data(near), max_epochs=2)
    far = data(url, cache_folder=str(tmp_path / "cache"), cache_gigabytes=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        assert fit(None, data=far, max_epochs=2).steps == whole.steps


class Kill(pl.Callback):
    """Kills the server after a step, and has it return some time later."""

    def __init__(self, server, back_after):
        self.server, self.back_after = server, back_after

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == 1 and self.server.process.poll() is None:
            self.server.kill()
            if self.back_after is not None:
                threading.Timer(self.back_after, self.server.start).start()


@pytest.mark.parametrize("num_workers", [0, 1])
def test_training_goes_on_when_the_server_returns_and_ends_when_it_does_not(server, url, tmp_path, num_workers):
    near = folder_of(server, url)
    shard = max(path.stat().st_size for path in near.iterdir() if path.suffix == ".tar")

    def data(location, **more):
        # room for the index and one shard: others are read by ranges, again and again
        limit = ((near / "index.arrow").stat().st_size + 1.5 * shard) / 1e9
        cached = {"cache_folder": str(tmp_path / str(more)), "cache_gigabytes": limit, **more}
        return ShardDataModule(str(location), max_frames=100, window=8, num_workers=num_workers, **cached)

    whole = fit(None, data=data(near), max_epochs=1)
    again = fit(None, data=data(url, retry_seconds=60.0), max_epochs=1, callbacks=[Kill(server, 4.0)])
    assert again.steps == whole.steps
    try:
        with pytest.raises(MachineError, match="out of reach"):
            fit(None, data=data(url, retry_seconds=2.0), max_epochs=2, callbacks=[Kill(server, None)])
    finally:
        server.start()


def test_the_commands_take_a_url(server, url, tmp_path):
    shown = tool("trainer", "plan", url, cwd=tmp_path)
    assert "optimizer steps" in shown.stdout
