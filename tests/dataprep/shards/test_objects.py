"""Shard sets by URL, without a server: any store that fsspec knows, and stores that do not answer."""

import os
import socket
import sys
import threading
import time
from pathlib import Path

import fsspec
import numpy as np
import pytest

from dataprep.shards.cache import CacheSettings
from dataprep.shards.objects import ObjectStorage
from dataprep.shards.reader import ShardSet
from dataprep.shards.storage import ByteRange, FolderStorage, open_storage
from schemas.errors import FormatError, MachineError, UsageError
from tests.helpers.shard_sets import made_frames, make_shard_set

pytestmark = pytest.mark.filterwarnings("ignore:.*(out of reach|is back|part by part)")


@pytest.fixture(params=["file", "memory"])
def url(request, tmp_path):
    folder = make_shard_set(
        tmp_path / "shards", train=made_frames(12), validation=made_frames(3, 1), shard_utterances=4
    )
    if request.param == "file":
        return f"file://{folder}"
    memory = fsspec.filesystem("memory")
    for path in folder.iterdir():
        memory.pipe(f"/{tmp_path.name}/{path.name}", path.read_bytes())
    return f"memory://{tmp_path.name}"


def cache(tmp_path, **more):
    return CacheSettings(**{"folder": tmp_path / "cache", "retry_seconds": 5.0, **more})


def settle(shards):
    deadline = time.monotonic() + 30
    while not shards.storage.is_idle():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("container", ["webdataset", "parquet"])
@pytest.mark.parametrize("fits", [True, False])
def test_the_same_utterances_by_ranges_and_from_copies(tmp_path, container, fits):
    folder = make_shard_set(tmp_path / "shards", train=made_frames(12), shard_utterances=4, container=container)
    near = ShardSet(folder)
    sizes = [info.bytes for info in (near.manifest.index, *near.manifest.shards)]
    far = ShardSet(f"file://{folder}", cache(tmp_path, max_bytes=sum(sizes) - (not fits)))
    rows = np.array([3, 11, 0, 7, 7])
    for _ in range(2):
        for one, other in zip(near.read_batch(rows), far.read_batch(rows), strict=True):
            np.testing.assert_array_equal(one.mel, other.mel)
            np.testing.assert_array_equal(one.phoneme_ids, other.phoneme_ids)
        settle(far)
        if container == "webdataset":
            assert [far.storage.has(info) for info in far.manifest.shards] == [fits] * 3


def test_what_is_wanted_is_fetched_in_that_order_as_far_as_it_fits(url, tmp_path):
    sizes = {info.name: info.bytes for info in ShardSet(url, cache(tmp_path)).manifest.shards}
    few = cache(tmp_path, folder=tmp_path / "few", max_bytes=int(2.5 * max(sizes.values())))
    far = ShardSet(url, few)
    infos = far.manifest.shards
    far.storage.want([infos[2], infos[0], infos[1]])
    settle(far)
    assert [far.storage.has(info) for info in infos[:3]] == [True, False, True]
    far.storage.want([])
    settle(far)


def test_ranges_of_what_is_there_and_what_is_not(url, tmp_path):
    storage = open_storage(url, cache(tmp_path))
    assert isinstance(storage, ObjectStorage)
    info = ShardSet(url, cache(tmp_path)).manifest.shards[0]
    gone = info.model_copy(update={"name": "train-000099.tar"})
    whole = storage.local_file(info).read_bytes()
    asked = [ByteRange(info, 5, 10), ByteRange(gone, 0, 10), ByteRange(info, info.bytes - 3, 100)]
    first, none, last = storage.read_ranges(asked)
    assert (first, last) == (whole[5:15], whole[-3:])
    assert isinstance(none, FormatError)
    assert "no such object" in str(none)
    assert storage.read_ranges([]) == []
    with pytest.raises(FormatError, match=r"train-000099.tar: no such object"):
        storage.local_file(gone.model_copy(update={"sha256": "0" * 64}))
    with pytest.raises(FormatError, match=r"bytes, the manifest says 1$"):
        storage.local_file(info.model_copy(update={"bytes": 1}))
    with pytest.raises(FormatError, match="no such object"):
        ShardSet(url + "/not", cache(tmp_path))


def test_a_manifest_that_is_not_ours_is_named_by_its_url(tmp_path):
    fsspec.filesystem("memory").pipe(f"/{tmp_path.name}/shards.json", b"[]")
    with pytest.raises(FormatError) as caught:
        ShardSet(f"memory://{tmp_path.name}", cache(tmp_path))
    assert caught.value.path == f"memory://{tmp_path.name}/shards.json"


def test_a_folder_is_no_url(tmp_path):
    assert isinstance(open_storage(tmp_path), FolderStorage)
    assert isinstance(open_storage(str(tmp_path)), FolderStorage)


def test_a_cache_that_cannot_be_written_is_no_fault_of_the_store(url, tmp_path):
    (tmp_path / "taken").write_text("a file")
    began = time.monotonic()
    with pytest.raises(MachineError, match="the cache cannot be written") as caught:
        ShardSet(url, cache(tmp_path, folder=tmp_path / "taken", retry_seconds=60.0))
    assert "--data.cache_folder" in caught.value.hint
    assert time.monotonic() - began < 30


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_no_fault_of_the_store(url, tmp_path, monkeypatch):
    from dataprep.shards.remote import RemoteFiles

    def download(self, info, handle, asked_at):
        os.write(os.open("/dev/full", os.O_WRONLY), b"x")

    far = ShardSet(url, cache(tmp_path))
    monkeypatch.setattr(RemoteFiles, "download", download)
    with pytest.raises(MachineError, match="the cache cannot be written: No space left"):
        far.storage.local_file(far.manifest.shards[0])


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="nosuch:// is no kind of store"):
        open_storage("nosuch://bucket/shards", cache(tmp_path)).read_file("shards.json")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)  # what was imported before
    with pytest.raises(UsageError, match="s3:// cannot be read") as caught:
        ShardSet("s3://bucket/shards", cache(tmp_path))
    assert caught.value.hint == 'pip install "voxloom[s3]"'


def test_a_server_that_takes_connections_and_never_answers(tmp_path, monkeypatch):
    pytest.importorskip("s3fs")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "some-key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "some-secret")
        began = time.monotonic()
        found = []

        def ask():
            try:
                ShardSet("s3://bucket/shards", cache(tmp_path, retry_seconds=3.0))
            except MachineError as error:
                found.append(error)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        assert "out of reach" in str(found[0])
        assert time.monotonic() - began < 30
