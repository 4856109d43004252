import io
import os
import tarfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.shards.atomic import atomic_file, sweep, write_atomic
from dataprep.shards.keys import sample_key
from dataprep.shards.npy import NPY_HEADER_BYTES, encode_npy, view_mel
from dataprep.shards.tar import TarWriter
from schemas.errors import FormatError, UsageError


class StoppedError(Exception):
    """Something went wrong in the middle of a write."""


def stop_in_the_middle(path):
    with atomic_file(path) as handle:
        handle.write(b"half")
        raise StoppedError


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.json"
    write_atomic(path, b"old")
    with pytest.raises(StoppedError):
        stop_in_the_middle(path)
    assert path.read_bytes() == b"old"
    assert [item.name for item in tmp_path.iterdir()] == ["a.json"]


def test_sweep_removes_what_a_dead_writer_left_and_nothing_else(tmp_path):
    (tmp_path / ".a.json.dead.tmp").touch()
    (tmp_path / "kept.tmp").touch()
    with atomic_file(tmp_path / "b.json") as handle:
        handle.write(b"being written")
        sweep(tmp_path)
        assert len(list(tmp_path.glob(".b.json.*"))) == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == ["b.json", "kept.tmp"]


def test_a_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    write_atomic(tmp_path / "ours", b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


@settings(max_examples=50)
@given(st.lists(st.tuples(st.from_regex(r"[a-z0-9_-]{1,80}", fullmatch=True), st.binary(max_size=2000)), max_size=8))
def test_tar_is_read_by_the_standard_library_at_our_offsets(members):
    buffer = io.BytesIO()
    writer = TarWriter(buffer)
    offsets = [writer.add(name, content) for name, content in members]
    writer.finish()
    with tarfile.open(fileobj=io.BytesIO(buffer.getvalue()), mode="r:") as tar:
        found = [(m.name, m.offset_data, tar.extractfile(m).read(), m.mtime, m.uid, m.mode) for m in tar]
    assert found == [(name, at, content, 0, 0, 0o644) for (name, content), at in zip(members, offsets, strict=True)]


def test_tar_refuses_what_ustar_cannot_say():
    writer = TarWriter(io.BytesIO())
    with pytest.raises(FormatError):
        writer.add("x" * 101, b"")
    with pytest.raises(FormatError):
        writer.add("名", b"")


@given(st.integers(1, 128), st.integers(1, 5000), st.sampled_from(["float32", "float16"]))
@settings(max_examples=30, deadline=None)
def test_mel_bytes_are_a_npy_file_and_come_back(num_mels, num_frames, dtype):
    mel = np.random.default_rng(0).normal(-5, 2, (num_mels, num_frames)).astype(np.float32)
    content = encode_npy(mel, dtype)
    stored = np.load(io.BytesIO(content), allow_pickle=False)
    assert stored.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(stored, mel.astype(dtype))
    ours = view_mel(content, num_mels, num_frames, dtype, header_bytes=NPY_HEADER_BYTES)
    np.testing.assert_array_equal(ours, stored.astype(np.float32))
    with pytest.raises(FormatError, match="bytes"):
        view_mel(content[:-1], num_mels, num_frames, dtype, header_bytes=NPY_HEADER_BYTES)


@given(st.lists(st.text(max_size=120), unique=True, max_size=50))
def test_keys_are_plain_bounded_and_unique(ids):
    keys = [sample_key(utterance_id) for utterance_id in ids]
    assert len(set(keys)) == len(ids)
    for key in keys:
        assert key.isascii()
        assert "." not in key
        assert "/" not in key
        assert 0 < len(key) <= 80


def test_what_is_no_regular_file_is_refused_and_a_link_is_followed(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="regular file"):
        write_atomic(tmp_path / "pipe", b"")
    with pytest.raises(UsageError, match="regular file"):
        write_atomic(tmp_path, b"")
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()
