"""Folders that cannot be used, odd folders, and the real corpora."""

import os

import pytest

from dataprep.sources import find_source
from schemas.errors import SourceError, UsageError
from tests.helpers.folders import make_files, recordings
from tests.helpers.recordings import DATA, needs_data


def test_no_such_folder(tmp_path):
    with pytest.raises(UsageError, match="no such folder"):
        find_source(tmp_path / "gone", None, "|")
    file = make_files(tmp_path, {"metadata.csv": "a|b"}) / "metadata.csv"
    with pytest.raises(UsageError, match="is a file, not a folder"):
        find_source(file, None, "|")


def test_no_such_metadata(tmp_path):
    make_files(tmp_path, recordings("a.wav"))
    with pytest.raises(UsageError, match="no such metadata file"):
        find_source(tmp_path, tmp_path / "gone.csv", "|")
    with pytest.raises(UsageError, match="is a folder"):
        find_source(tmp_path, tmp_path, "|")


@pytest.mark.parametrize("delimiter", ["", "||", "a", '"', "\n", "#", "/"])
def test_delimiters_that_separate_nothing(tmp_path, delimiter):
    with pytest.raises(UsageError, match="cannot separate columns"):
        find_source(tmp_path, None, delimiter)


def test_nothing_in_it(tmp_path):
    with pytest.raises(SourceError, match="the folder is empty"):
        find_source(tmp_path, None, "|")
    make_files(tmp_path, {"a.txt": "one", "b.pdf": "x"})
    with pytest.raises(SourceError, match="none of its 2 files has the suffix of a recording"):
        find_source(tmp_path, None, "|")


def test_no_transcript(tmp_path):
    make_files(tmp_path, {**recordings("set/a.wav", "set/b.wav"), "set/list.csv": "a|one\n"})
    with pytest.raises(SourceError, match=r"2 recordings and no transcript: looked for metadata.csv") as caught:
        find_source(tmp_path / "set", None, "|")
    assert "list.csv" in caught.value.hint


def test_hidden_files_and_links(tmp_path):
    files = {
        **recordings("real/a.wav", "set/.hidden.wav", "set/._b.wav", "set/__MACOSX/c.wav"),
        "set/metadata.csv": "a|one\n",
    }
    make_files(tmp_path, files)
    (tmp_path / "set/wavs").symlink_to(tmp_path / "real")
    (tmp_path / "real/round").symlink_to(tmp_path / "real")
    (tmp_path / "set/self").symlink_to("self")
    (tmp_path / "set/gone.wav").symlink_to("nowhere.wav")
    source = find_source(tmp_path / "set", None, "|")
    assert [row.id for row in source.rows] == ["a"]
    assert source.warnings == ()


def test_names_that_are_not_utf8_are_counted(tmp_path):
    make_files(tmp_path, {**recordings("a.wav"), "metadata.csv": "a|one\n"})
    (tmp_path / os.fsdecode(b"\xff.wav")).touch()
    make_files(tmp_path, recordings(os.fsdecode(b"\xfe/b.wav")))
    assert find_source(tmp_path, None, "|").warnings == (("undecodable_names", 2),)


@needs_data
@pytest.mark.data
@pytest.mark.parametrize("corpus", sorted(path.name for path in (DATA / "corpora").glob("*")))
def test_a_corpus_and_its_wavs_are_the_same(corpus):
    folder = DATA / "corpora" / corpus
    source = find_source(folder, None, "|")
    assert not source.drops
    assert not source.warnings
    assert len(source.rows) == len((folder / "metadata.csv").read_text(encoding="utf-8").splitlines())
    inside = find_source(folder / "wavs", None, "|")
    assert [(row.id, row.text, row.speaker) for row in inside.rows] == [
        (row.id, row.text, row.speaker) for row in source.rows
    ]


@needs_data
@pytest.mark.data
def test_lj_speech_in_its_own_form():
    folder = DATA / "corpora/en_ljspeech"
    source = find_source(folder, folder / "metadata_3col.csv", "|")
    assert (len(source.rows), source.drops) == (33, ())
    assert {row.speaker for row in source.rows} == {"default"}
    assert [row.id for row in source.rows] == [row.id for row in find_source(folder, None, "|").rows]


@needs_data
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "num_rows", "reasons"),
    [
        ("ok.csv", 8, {}),
        ("bom.csv", 8, {}),
        ("crlf.csv", 8, {}),
        ("no_extension_ids.csv", 8, {}),
        ("blank_lines_comment.csv", 8, {}),
        ("duplicate_rows.csv", 11, {"duplicate_id": 2}),
        ("duplicate_path_different_text.csv", 9, {"duplicate_id": 1}),
        ("empty_text.csv", 8, {"empty_text": 1}),
        ("absolute_and_dotdot_paths.csv", 4, {"outside_source": 2}),
    ],
)
def test_tables_that_go_wrong(name, num_rows, reasons):
    source = find_source(DATA / "corpora/zh_aishell_16k", DATA / "broken/metadata_variants" / name, "|")
    assert source.num_rows == num_rows
    # Some rows name clips that are not in this selection of the corpus.
    counted = [drop.reason.value for drop in source.drops if drop.reason.value != "missing_audio"]
    assert {reason: counted.count(reason) for reason in counted} == reasons
    assert all(not row.file.name.startswith("\ufeff") for row in source.rows)
