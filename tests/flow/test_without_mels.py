"""Shards without mels: smaller, and the same to all who read them as shards with mels of the same recordings."""

import numpy as np
import pytest

from dataprep.shards.reader import ShardSet
from tests.flow.test_stock_readers import read_by
from tests.helpers.corpora import make_corpus, tool

COUNT = 12

READ_TAR = """
import glob, io, soundfile, webdataset
number = 0
for sample in webdataset.WebDataset(sorted(glob.glob("bare/*.tar")), shardshuffle=False, empty_check=False):
    assert sorted(key for key in sample if not key.startswith("__")) == ["flac", "json"], list(sample)
    assert len(soundfile.read(io.BytesIO(sample["flac"]))[0])
    number += 1
print(number)
"""

READ_PARQUET = """
import glob, pandas
tables = [pandas.read_parquet(name) for name in glob.glob("bare/*.parquet")]
assert all(len(mel) == 0 for table in tables for mel in table["mel"])
print(sum(map(len, tables)))
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = make_corpus(tmp_path_factory.mktemp("corpus"), COUNT)
    tool("dataprep", "ingest", "wavs", cwd=folder)
    return folder


@pytest.mark.parametrize(("container", "script"), [("webdataset", READ_TAR), ("parquet", READ_PARQUET)])
def test_all_commands_and_readers_take_them(corpus, container, script):
    for out, dtype in (("full", "float32"), ("bare", "none")):
        tool("dataprep", "shard", "--format", container, "--mel-dtype", dtype, "--out", out, cwd=corpus)
        tool("dataprep", "validate", out, cwd=corpus)
    full, bare = ShardSet(corpus / "full"), ShardSet(corpus / "bare")
    rows = np.arange(COUNT)
    assert bare.keys(rows) == full.keys(rows)
    assert np.array_equal(bare.columns.frames, full.columns.frames)
    assert bare.manifest.mel_statistics == full.manifest.mel_statistics
    assert sum(info.bytes for info in bare.manifest.shards) < 0.6 * sum(info.bytes for info in full.manifest.shards)
    for computed, stored in zip(bare.read_batch(rows), full.read_batch(rows), strict=True):
        assert computed.mel.dtype == np.float32
        assert np.array_equal(computed.mel, stored.mel)
    assert np.array_equal(bare.read_mel(3), full.read_mel(3))
    assert bare.key(3) in tool("dataprep", "inspect", "bare", bare.key(3), cwd=corpus).stdout
    assert read_by(script, corpus) == COUNT
