"""Whatever happens to a shard, an utterance is read as it was or is named; a fault of the machine is neither."""

import errno
import os
import resource

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.engine import Workers
from dataprep.shards import reader
from dataprep.shards.atomic import file_sha256
from dataprep.shards.index import map_index, number_column, write_index
from dataprep.shards.reader import ShardSet
from dataprep.validate.shards import validate_shards
from schemas.errors import FormatError, MachineError
from schemas.shards import INDEX_SCHEMA
from tests.helpers.shard_sets import SPEC, made_frames, make_shard_set

COUNT = 10
KINDS = ["webdataset", "parquet", "webdataset-none", "parquet-none"]


@pytest.fixture(scope="module", params=KINDS)
def whole(request, tmp_path_factory):
    """A folder, the path and the bytes of its one shard, and its utterances."""
    container, _, dtype = request.param.partition("-")
    folder = make_shard_set(
        tmp_path_factory.mktemp("damage") / request.param, train=made_frames(COUNT), container=container,
        mel_dtype=dtype or "float32", sound=bool(dtype),
    )  # fmt: skip
    shards = ShardSet(folder)
    path = folder / shards.manifest.shards[0].name
    return folder, path, path.read_bytes(), shards.read_batch(np.arange(COUNT))


def read_damaged(whole, content):
    """Which utterances could not be read; the others are as they were."""
    folder, path, _, expected = whole
    path.write_bytes(content)
    shards = ShardSet(folder)
    found = shards.read_batch(np.arange(COUNT))
    shards.close()
    for row, (sample, before) in enumerate(zip(found, expected, strict=True)):
        if isinstance(sample, FormatError):
            assert f"{path.name}: train-{row:04d}." in str(sample)
        else:
            assert np.array_equal(sample.mel, before.mel)
            assert np.array_equal(sample.phoneme_ids, before.phoneme_ids)
    return [row for row, sample in enumerate(found) if isinstance(sample, FormatError)]


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_any_flipped_byte(whole, data):
    content = bytearray(whole[2])
    near_the_end = st.integers(max(0, len(content) - 1500), len(content) - 1)  # what Parquet says of its columns
    place = data.draw(st.one_of(st.integers(0, len(content) - 1), near_the_end))
    content[place] ^= data.draw(st.integers(1, 255))
    bad = read_damaged(whole, bytes(content))
    if whole[1].suffix == ".tar":
        assert len(bad) <= 1


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_early_end(whole, data):
    length = data.draw(st.integers(0, len(whole[2])))
    bad = read_damaged(whole, whole[2][:length])
    if whole[1].suffix == ".tar":
        assert bad == list(range(COUNT - len(bad), COUNT))


def test_columns_of_another_name(tmp_path):
    folder = make_shard_set(tmp_path, train=made_frames(3), container="parquet")
    path = folder / "train-000000.parquet"
    path.write_bytes(path.read_bytes().replace(b"\x03mel", b"\x03mil"))
    errors = ShardSet(folder).read_batch(np.arange(3))
    assert all("the shard has no such column" in str(error) for error in errors)


@pytest.mark.parametrize("container", ["webdataset", "parquet"])
def test_no_more_files_may_be_open_is_no_fault_of_an_utterance(tmp_path, container):
    folder = make_shard_set(tmp_path, train=made_frames(8), shard_utterances=2, container=container)
    shards = ShardSet(folder)
    shards.read_batch(np.arange(2))  # imports what reading needs
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(MachineError, match="Too many open files"):
            shards.read_batch(np.arange(8))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not any(isinstance(sample, FormatError) for sample in shards.read_batch(np.arange(8)))


def test_a_shard_that_may_not_be_read_is_no_fault_of_an_utterance(tmp_path, monkeypatch):
    shards = ShardSet(make_shard_set(tmp_path, train=made_frames(2)))

    def refuse(path, *_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(MachineError, match=r"train-000000\.tar: the shard cannot be read: Permission denied"):
        shards.read_batch(np.arange(2))


def test_a_recording_of_other_length_than_the_index_says(tmp_path):
    folder = make_shard_set(tmp_path, train=[20, 30, 40], mel_dtype="none", sound=True)
    manifest, table = ShardSet(folder).manifest, map_index(folder / "index.arrow")
    frames = number_column(table, "frames").copy()
    frames[1] = 25
    place = INDEX_SCHEMA.get_field_index("frames")
    changed = table.set_column(place, INDEX_SCHEMA.field("frames"), pa.chunked_array([pa.array(frames)]))
    index = write_index(folder / "index.arrow", changed)
    (folder / "shards.json").write_bytes(manifest.model_copy(update={"index": index}).pretty_json())
    shards = ShardSet(folder)
    out = np.zeros((3, SPEC.num_mels, 40), np.float32)
    for found in (shards.read_batch(np.arange(3)), shards.read_padded(np.arange(3), list(out))):
        assert [isinstance(item, FormatError) for item in found] == [False, True, False]
        assert "the recording has 30 frames, the index says 25" in str(found[1])


def test_an_index_of_several_record_batches(tmp_path):
    folder = make_shard_set(tmp_path, train=made_frames(12))
    one = ShardSet(folder)
    expected, keys = one.read_batch(np.arange(12)), one.keys(np.array([11, 0, 7]))
    path = folder / "index.arrow"
    content = path.with_suffix(".new")
    with pa.OSFile(str(content), "wb") as file, pa.ipc.new_file(file, INDEX_SCHEMA) as writer:
        writer.write_table(one.table, max_chunksize=5)
    content.rename(path)
    index = one.manifest.index.model_copy(update={"bytes": path.stat().st_size, "sha256": file_sha256(path)})
    (folder / "shards.json").write_bytes(one.manifest.model_copy(update={"index": index}).pretty_json())
    several = ShardSet(folder)
    assert several.table.column("key").num_chunks == 3
    assert several.keys(np.array([11, 0, 7])) == keys
    assert several.keys(np.array([], np.int64)) == []
    found = several.read_batch(np.arange(12))
    assert all(np.array_equal(mine.mel, other.mel) for mine, other in zip(found, expected, strict=True))


def test_a_large_index_is_hashed_by_validate_and_not_when_opened(tmp_path, monkeypatch):
    folder = make_shard_set(tmp_path, train=made_frames(4), sound=True)
    path = folder / "index.arrow"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"train-0002", b"train-0009", 1))
    with pytest.raises(FormatError, match="missing or damaged"):
        ShardSet(folder)
    monkeypatch.setattr(reader, "_HASHED_BYTES", 0)
    assert len(ShardSet(folder)) == 4
    assert "index.arrow" in [finding.file for finding in validate_shards(folder, Workers(number=1)).findings]
    path.write_bytes(content[:-8])
    with pytest.raises(FormatError, match="missing or damaged"):
        ShardSet(folder)
