"""What users get wrong, and what they are told: one clear line, the next step, exit status 1 or 2, no traceback."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from tests.helpers.corpora import make_corpus, tool
from tests.helpers.recordings import DATA, files_below, needs_data


@pytest.fixture
def corpus(tmp_path):
    return make_corpus(tmp_path / "corpus", 20)


def refused(name, *arguments, cwd, status):
    done = tool(name, *arguments, cwd=cwd, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def drops_of(prepared):
    return {(row["path"], row["reason"]) for row in pq.read_table(prepared / "drops.parquet").to_pylist()}


def add_row(corpus, row):
    with (corpus / "metadata.csv").open("a", encoding="utf-8") as file:
        file.write(row + "\n")


def test_no_such_folder(tmp_path):
    assert "no such" in refused("dataprep", "ingest", "nowhere", cwd=tmp_path, status=2)


def test_empty_folder(tmp_path):
    (tmp_path / "wavs").mkdir()
    message = refused("dataprep", "ingest", "wavs", cwd=tmp_path, status=1)
    assert message.startswith("error: ")
    assert "next: " in message


def test_a_misspelt_option_is_named_with_the_right_one(corpus):
    assert "--sr" in refused("dataprep", "ingest", "wavs", "--srr", "22050", cwd=corpus, status=2)


@pytest.mark.parametrize(
    ("option", "value"), [("--split", "0.5,0.1"), ("--split", "0.5,0.6,0.1"), ("--sr", "12"), ("--max-drop-share", "2")]
)
def test_a_value_out_of_range(corpus, option, value):
    assert option in refused("dataprep", "ingest", "wavs", option, value, cwd=corpus, status=2)


def test_min_above_max(corpus):
    message = refused("dataprep", "ingest", "wavs", "--min-duration", "3", "--max-duration", "2", cwd=corpus, status=2)
    assert "min_duration" in message


def test_another_delimiter(corpus):
    text = (corpus / "metadata.csv").read_text(encoding="utf-8")
    (corpus / "metadata.csv").write_text(text.replace("|", "\t"), encoding="utf-8")
    assert "--delimiter" in refused("dataprep", "ingest", "wavs", cwd=corpus, status=2)
    tool("dataprep", "ingest", "wavs", "--delimiter", "\\t", cwd=corpus)


def test_metadata_that_names_missing_files_is_listed_and_fails_over_the_limit(corpus):
    for number in range(4):
        add_row(corpus, f"wavs/gone{number}.wav|Hello.|ann")
    message = refused("dataprep", "ingest", "wavs", cwd=corpus, status=1)
    assert "4 of 24" in message
    assert "missing_audio" in message
    assert "line 21" in message
    assert not (corpus / "prepared/dataset.json").exists()
    tool("dataprep", "ingest", "wavs", "--max-drop-share", "0.2", cwd=corpus)
    assert drops_of(corpus / "prepared") == {(f"wavs/gone{number}.wav", "missing_audio") for number in range(4)}
    assert not (corpus / "prepared/drops.failed.parquet").exists()


def test_each_bad_row_is_a_drop_with_its_reason_and_hurts_no_other(corpus):
    (corpus / "wavs/broken.wav").write_bytes(b"<!DOCTYPE html><html>404</html>")
    shutil.copy(corpus / "wavs/u0000.wav", corpus / "wavs/empty.wav")
    shutil.copy(corpus / "wavs/u0000.wav", corpus / "wavs/marks.wav")
    shutil.copy(corpus / "wavs/u0000.wav", corpus / "wavs/russian.wav")
    rows = (
        "wavs/broken.wav|Hello.|ann",
        "wavs/empty.wav||ann",
        "wavs/u0001.wav|Again.|ann",
        "nonsense",
        "wavs/marks.wav|……！？|ann",
        "wavs/russian.wav|Добрый день|ann",
        "/etc/hostname|Hello.|ann",
    )
    for row in rows:
        add_row(corpus, row)
    out = tool("dataprep", "ingest", "wavs", "--max-drop-share", "1", cwd=corpus).stdout
    manifest = json.loads((corpus / "prepared/dataset.json").read_text())
    assert (
        manifest["counts"]["rows"] == 27 == manifest["counts"]["utterances"] + sum(manifest["counts"]["drops"].values())
    )
    assert manifest["counts"]["utterances"] == 20
    assert {reason for _, reason in drops_of(corpus / "prepared")} == {
        "unreadable_audio", "empty_text", "duplicate_id", "malformed_row", "unpronounceable", "unsupported_language",
        "outside_source",
    }  # fmt: skip
    assert "unsupported_language" in out
    tool("dataprep", "validate", "prepared", cwd=corpus)


def test_nothing_to_shard(tmp_path):
    assert "no such folder" in refused("dataprep", "shard", cwd=tmp_path, status=2)
    (tmp_path / "prepared").mkdir()
    assert "dataset.json" in refused("dataprep", "shard", cwd=tmp_path, status=1)


def test_another_sample_rate_than_the_preset(corpus):
    tool("dataprep", "ingest", "wavs", "--sr", "16000", cwd=corpus)
    assert "--sr 22050" in refused("dataprep", "shard", cwd=corpus, status=2)
    assert "hifigan-22k" in refused("dataprep", "shard", "--preset", "hifigan-23k", cwd=corpus, status=2)


def test_a_shard_set_of_another_version(corpus):
    tool("dataprep", "ingest", "wavs", cwd=corpus)
    tool("dataprep", "shard", cwd=corpus)
    manifest = json.loads((corpus / "shards/shards.json").read_text())
    (corpus / "shards/shards.json").write_text(json.dumps({**manifest, "version": 7}))
    for command in (("trainer", "plan"), ("trainer", "fit"), ("dataprep", "inspect")):
        assert "version 7" in refused(*command, "shards", cwd=corpus, status=1)
    assert "version 7" in tool("dataprep", "validate", "shards", cwd=corpus, check=False).stdout


def test_an_unwritable_place(corpus):
    (corpus / "prepared").write_text("a file stands where the folder should be")
    assert "prepared" in refused("dataprep", "ingest", "wavs", cwd=corpus, status=1)


@needs_data
def test_broken_recordings_among_good_ones(corpus):
    broken = [path for path in files_below("broken") if path.suffix != ".csv"]
    for path in broken:
        shutil.copy(path, corpus / "wavs" / f"broken_{path.name}")
        add_row(corpus, f"wavs/broken_{path.name}|Hello world.|ann")
    tool("dataprep", "ingest", "wavs", "--max-drop-share", "1", cwd=corpus)
    counts = json.loads((corpus / "prepared/dataset.json").read_text())["counts"]
    assert counts["rows"] == 20 + len(broken) == counts["utterances"] + sum(counts["drops"].values())
    reasons = dict(drops_of(corpus / "prepared"))
    assert reasons["wavs/broken_made_nan_float.wav"] == "not_finite"
    assert reasons["wavs/broken_made_digital_silence_2s.wav"] == "silent"
    assert reasons["wavs/broken_made_one_sample.wav"] in ("too_short", "silent")
    assert reasons["wavs/broken_made_html_404.wav"] == "unreadable_audio"
    assert reasons["wavs/broken_made_truncated_half.wav"] == "unreadable_audio"


@needs_data
@pytest.mark.parametrize("table", ["bom", "crlf", "blank_lines_comment", "ok", "no_extension_ids", "duplicate_rows"])
def test_variants_of_a_table_on_real_recordings(tmp_path, table):
    metadata = DATA / f"broken/metadata_variants/{table}.csv"
    folder = DATA / "corpora/zh_aishell_16k"
    tool("dataprep", "ingest", folder, "--metadata", metadata, "--max-drop-share", "1", cwd=tmp_path)
    counts = json.loads((tmp_path / "prepared/dataset.json").read_text())["counts"]
    text = metadata.read_text(encoding="utf-8-sig")
    rows = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert counts["rows"] == len(rows) == counts["utterances"] + sum(counts["drops"].values())
    assert counts["utterances"] > 0
