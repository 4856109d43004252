"""A batch read at once is what its members are one by one, whatever the order, the container and the damage."""

import itertools
import multiprocessing
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.audio import decode_flac
from dataprep.features.mel import log_mel
from dataprep.shards import files
from dataprep.shards.members import MAX_GAP_BYTES, spans
from dataprep.shards.reader import LoadedSample, ShardSet
from schemas.errors import FormatError
from tests.helpers.shard_sets import SPEC, made_frames, make_shard_set

TRAIN = 40
KINDS = ["webdataset", "parquet", "webdataset-float16", "webdataset-none", "parquet-none"]


@pytest.fixture(scope="module", params=KINDS)
def shards(request, tmp_path_factory):
    container, _, dtype = request.param.partition("-")
    folder = tmp_path_factory.mktemp("reader") / request.param
    make_shard_set(
        folder, train=made_frames(TRAIN), container=container, mel_dtype=dtype or "float32", shard_utterances=9,
        sound=True,
    )  # fmt: skip
    return ShardSet(folder)


def same(sample, shards, row):
    assert sample.phoneme_ids.tolist() == list(shards.read_info(row).phoneme_ids)
    assert np.array_equal(sample.mel, shards.read_mel(row))
    return True


@given(rows=st.lists(st.integers(0, TRAIN - 1), max_size=30))
@settings(max_examples=30, deadline=None)
def test_a_batch_is_its_members_one_by_one(shards, rows):
    loaded = shards.read_batch(np.array(rows, dtype=np.int64))
    assert len(loaded) == len(rows)
    assert all(same(sample, shards, row) for sample, row in zip(loaded, rows, strict=True))


@given(rows=st.lists(st.integers(0, TRAIN - 1), min_size=1, max_size=30), spare=st.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_a_padded_batch_is_its_mels_with_zeros(shards, rows, spare):
    lengths = [shards.value("frames", row) for row in rows]
    out = np.full((len(rows), SPEC.num_mels, max(lengths) + spare), np.nan, np.float32)
    ids = shards.read_padded(np.array(rows, dtype=np.int64), list(out))
    for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        assert np.array_equal(out[place, :, :length], shards.read_mel(row))
        assert not out[place, :, length:].any()
        assert ids[place].tolist() == list(shards.read_info(row).phoneme_ids)


def test_only_what_is_asked_for(shards):
    heard = shards.read_batch(np.arange(3), mel=False, audio=True)
    assert all(sample.mel is None for sample in heard)
    for row, sample in enumerate(heard):
        assert np.array_equal(sample.samples, shards.read_audio(row))
    assert all(sample.samples is None for sample in shards.read_batch(np.arange(3)))


def test_a_mel_that_is_not_stored_is_that_of_the_recording(shards):
    if shards.manifest.mel_dtype == "none":
        for row in range(5):
            recording = decode_flac(shards.read_member("flac", row)).samples
            assert np.array_equal(shards.read_mel(row), log_mel(recording, SPEC))
            assert shards.read_mel(row).shape == (SPEC.num_mels, shards.value("frames", row))


@given(
    layout=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 200), st.integers(1, 90)), min_size=1, max_size=40),
    gaps=st.integers(1, 4),
    longest=st.sampled_from([100, 100_000, 2**24]),
)
def test_spans_hold_each_member_once_and_no_wide_gap(layout, gaps, longest):
    ends = {}
    members = []
    for shard, gap, size in layout:
        offset = ends.get(shard, 0) + gap * MAX_GAP_BYTES // (50 * gaps)
        members.append((shard, offset, size))
        ends[shard] = offset + size
    ordered = sorted(members)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dataprep.shards.members.MAX_SPAN_BYTES", longest)
        edges = spans(*np.array(ordered).T)
    groups = [ordered[start:stop] for start, stop in itertools.pairwise(edges)]
    assert all(groups)
    assert [item for group in groups for item in group] == ordered
    for group in groups:
        assert len({shard for shard, _, _ in group}) == 1
        assert sum(group[-1][1:]) - group[0][1] <= longest + group[0][2]
        for one, other in itertools.pairwise(group):
            assert 0 <= other[1] - sum(one[1:]) <= MAX_GAP_BYTES
    for one, other in itertools.pairwise(groups):
        near = one[-1][0] == other[0][0] and other[0][1] - sum(one[-1][1:]) <= MAX_GAP_BYTES
        assert not near or longest < 2**24  # no two reads where one would do


def test_neighbours_are_one_read(tmp_path, monkeypatch):
    shards = ShardSet(make_shard_set(tmp_path, train=made_frames(10)))
    reads = []
    usual = os.preadv
    monkeypatch.setattr(os, "preadv", lambda *what: reads.append(what) or usual(*what))
    assert all(isinstance(sample, LoadedSample) for sample in shards.read_batch(np.arange(9, -1, -1)))
    assert len(reads) == 1


@given(rows=st.lists(st.integers(0, TRAIN - 1), max_size=40), audio=st.booleans())
@settings(max_examples=30, deadline=None)
def test_no_byte_is_read_twice(shards, rows, audio):
    reads = []

    def noted(file, buffers, offset):
        count = usual(file, buffers, offset)
        reads.append((Path(f"/proc/self/fd/{file}").readlink(), offset, offset + count))
        return count

    usual = os.preadv
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "preadv", noted)
        shards.read_batch(np.array(rows, dtype=np.int64), audio=audio)
    for (name, _, end), (other, start, _) in itertools.pairwise(sorted(reads)):
        assert name != other or end <= start


def test_a_bounded_number_of_files_is_open(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_OPEN_FILES", 3)
    shards = ShardSet(make_shard_set(tmp_path, train=made_frames(20), shard_utterances=2))
    before = len(list(Path("/proc/self/fd").iterdir()))
    shards.read_batch(np.arange(20))
    assert len(list(Path("/proc/self/fd").iterdir())) - before <= 3
    shards.close()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def mels(shards, rows):
    return [np.array(sample.mel) for sample in shards.read_batch(rows)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_open_files_of_their_own(tmp_path, method):
    shards = ShardSet(make_shard_set(tmp_path, train=made_frames(12), shard_utterances=3))
    rows = np.arange(12)
    here = mels(shards, rows)  # opens the files before the fork
    with multiprocessing.get_context(method).Pool(2) as pool:
        there = pool.starmap(mels, [(shards, rows)] * 4)
    for found in there:
        assert all(np.array_equal(one, other) for one, other in zip(here, found, strict=True))
    assert pickle.loads(pickle.dumps(shards)).index_sha256 == shards.index_sha256


@pytest.mark.parametrize("container", ["webdataset", "parquet"])
def test_what_is_damaged_is_named_and_the_rest_is_read(tmp_path, container):
    folder = make_shard_set(tmp_path, train=made_frames(12), shard_utterances=4, container=container)
    shards = ShardSet(folder)
    names = [info.name for info in shards.manifest.shards]
    (folder / names[2]).unlink()
    content = bytearray((folder / names[1]).read_bytes())
    mel = np.ascontiguousarray(shards.read_mel(5)).tobytes()
    content[content.index(mel) + len(mel) // 2] ^= 1
    (folder / names[1]).write_bytes(content)
    loaded = ShardSet(folder).read_batch(np.arange(12))
    errors = {row: str(sample) for row, sample in enumerate(loaded) if isinstance(sample, FormatError)}
    assert sorted(errors) == [5, 8, 9, 10, 11]
    assert f"{names[1]}: train-0005.mel differs from its checksum" in errors[5]
    assert f"{names[2]}: train-0008.json cannot be read: No such file or directory" in errors[8]


def test_a_tar_that_ends_early_keeps_what_is_before_its_end(tmp_path):
    folder = make_shard_set(tmp_path, train=made_frames(6))
    shards = ShardSet(folder)
    os.truncate(folder / "train-000000.tar", shards.value("mel_offset", 4) + 5)
    loaded = shards.read_batch(np.arange(6))
    assert [isinstance(sample, FormatError) for sample in loaded] == [False] * 4 + [True] * 2
    assert "train-0004.mel cannot be read: the shard ends before it" in str(loaded[4])
