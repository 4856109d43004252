"""What we write is read by the stock tools, in a process that cannot import anything of ours."""

import subprocess
import sys

import pytest

from tests.helpers.corpora import make_corpus, tool
from tests.helpers.recordings import DATA, needs_data

READ_TAR = """
import glob, io, json, sys
import numpy as np, pyarrow as pa, soundfile, webdataset
index = {row["key"]: row for row in pa.ipc.open_file(pa.memory_map("shards/index.arrow")).read_all().to_pylist()}
seen = set()
for sample in webdataset.WebDataset(sorted(glob.glob("shards/*.tar")), shardshuffle=False, empty_check=False).decode():
    row = index[sample["__key__"]]
    mel = sample["mel.npy"]
    samples, rate = soundfile.read(io.BytesIO(sample["flac"]) if isinstance(sample["flac"], bytes) else sample["flac"])
    info = sample["json"]
    assert mel.shape == (80, row["frames"]) and mel.dtype == np.float32, mel.shape
    assert len(samples) == row["samples"] == info["num_samples"] and rate == 22050
    assert len(info["phoneme_ids"]) == row["symbols"]
    assert (info["speaker"], info["language"]) == (row["speaker"], row["language"])
    shard = [s["name"] for s in json.load(open("shards/shards.json"))["shards"]][row["shard"]]
    with open("shards/" + shard, "rb") as file:
        file.seek(row["mel_offset"])
        assert (np.load(io.BytesIO(file.read(row["mel_size"]))) == mel).all()
    seen.add(sample["__key__"])
assert seen == set(index), (len(seen), len(index))
print(len(seen))
"""

READ_PARQUET = """
import glob, io
import numpy as np, pandas, pyarrow as pa, pyarrow.parquet as pq, soundfile
index = pa.ipc.open_file(pa.memory_map("shards/index.arrow")).read_all().to_pylist()
shards = sorted(glob.glob("shards/*.parquet"), key=lambda name: ("train" not in name, "validation" not in name, name))
for row in index:
    file = pq.ParquetFile(shards[row["shard"]])
    assert file.metadata.row_group(row["row_group"]).num_rows <= 64
    found = file.read_row_group(row["row_group"]).slice(row["row"], 1).to_pylist()[0]
    assert found["key"] == row["key"]
    mel = np.frombuffer(found["mel"], "<f4").reshape(80, found["num_frames"])
    assert mel.shape[1] == row["frames"] and np.isfinite(mel).all()
    samples, rate = soundfile.read(io.BytesIO(found["flac"]))
    assert len(samples) == row["samples"] and rate == 22050
    assert len(found["phoneme_ids"]) == row["symbols"] == len(found["phonemes"])
assert sum(len(pandas.read_parquet(name)) for name in shards) == len(index)
print(len(index))
"""


def read_by(script, folder):
    """Runs `script` isolated from the checkout: -I keeps the working folder and PYTHONPATH out, and ours are barred."""
    barred = "import sys\nfor name in ('dataprep', 'trainer', 'schemas'):\n    sys.modules[name] = None\n"
    done = subprocess.run([sys.executable, "-I", "-c", barred + script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize(("container", "script"), [("webdataset", READ_TAR), ("parquet", READ_PARQUET)])
def test_made_recordings(tmp_path, container, script):
    corpus = make_corpus(tmp_path, 40)
    tool("dataprep", "ingest", "wavs", "--split", "0.6,0.2,0.2", cwd=corpus)
    tool("dataprep", "shard", "--format", container, "--shard-size", "1M", cwd=corpus)
    assert read_by(script, corpus) == 40


@needs_data
@pytest.mark.parametrize("corpus", ["en_ljspeech", "zh_aishell3_44k"])
@pytest.mark.parametrize(("container", "script"), [("webdataset", READ_TAR), ("parquet", READ_PARQUET)])
def test_real_recordings(tmp_path, corpus, container, script):
    tool("dataprep", "ingest", DATA / "corpora" / corpus, cwd=tmp_path)
    tool("dataprep", "shard", "--format", container, cwd=tmp_path)
    assert read_by(script, tmp_path) > 10


def test_parts_are_read_by_pandas(tmp_path):
    corpus = make_corpus(tmp_path, 12)
    tool("dataprep", "ingest", "wavs", cwd=corpus)
    script = (
        "import glob, pandas; print(sum(len(pandas.read_parquet(p)) for p in glob.glob('prepared/parts/*.parquet')))"
    )
    assert read_by(script, corpus) == 12
