"""Texts beside recordings."""

import pytest

from dataprep.sources import find_source
from tests.helpers.folders import make_files, recordings


def test_the_best_text_is_taken(tmp_path):
    files = {
        **recordings("a.wav", "b.flac", "c.WAV", "d.mp3"),
        "a.normalized.txt": "fourteen fifty-five\n",
        "a.original.txt": "1455",
        "a.txt": "1455",
        "a.lab": "x",
        "b.txt": "\ufefftwo\r\nlines\r\n",
        "b.lab": "x",
        "c.LAB": "three",
        "d.original.txt": "four",
        "README.txt": "about these recordings",
    }
    source = find_source(make_files(tmp_path, files), None, "|")
    assert [(row.id, row.text) for row in source.rows] == [
        ("a", "fourteen fifty-five"),
        ("b", "two lines"),
        ("c", "three"),
        ("d", "four"),
    ]
    assert (source.metadata, source.drops, source.warnings) == (None, (), ())
    assert {(row.speaker, row.line) for row in source.rows} == {("default", 0)}


@pytest.mark.parametrize("asked", [".", "wavs"])
def test_the_speaker_is_the_folder(tmp_path, asked):
    files = {
        **recordings("wavs/anna/1.wav", "wavs/ben/1.wav", "wavs/ben/x/2.wav", "wavs/3.wav"),
        "wavs/anna/1.txt": "one",
        "wavs/ben/1.txt": "one",
        "wavs/ben/x/2.txt": "two",
        "wavs/3.txt": "three",
    }
    source = find_source(make_files(tmp_path, files) / asked, None, "|")
    assert [(row.id, row.speaker) for row in source.rows] == [
        ("3", "default"),
        ("anna/1", "anna"),
        ("ben/1", "ben"),
        ("ben/x/2", "x"),
    ]


def test_every_recording_and_every_text_is_accounted_for(tmp_path):
    files = {
        **recordings("a.wav", "a.flac", "b.wav", "c.wav", "d.wav"),
        "a.txt": "one",
        "b.txt": " \n",
        "d.txt": "你好".encode("gb18030"),
        "e.lab": "five",
    }
    source = find_source(make_files(tmp_path, files), None, "|")
    assert [(row.id, row.path) for row in source.rows] == [("a", "a.wav")]
    assert [(drop.path, drop.reason.value, drop.id) for drop in source.drops] == [
        ("a.flac", "duplicate_id", "a"),
        ("b.wav", "empty_text", "b"),
        ("c.wav", "missing_text", "c"),
        ("d.wav", "malformed_row", "d"),
        ("e.lab", "missing_audio", "e"),
    ]
    assert source.num_rows == 6


def test_names_in_other_unicode_forms_still_meet(tmp_path):
    files = {**recordings("cafe\u0301.wav", "你好 世界.wav"), "caf\u00e9.txt": "one", "你好 世界.txt": "two"}
    source = find_source(make_files(tmp_path, files), None, "|")
    assert [row.id for row in source.rows] == ["caf\u00e9", "你好 世界"]


def test_metadata_above_that_knows_none_of_them_gives_way(tmp_path):
    files = {**recordings("set/a.wav"), "set/a.txt": "beside", "metadata.csv": "other|above\n"}
    make_files(tmp_path, files)
    assert [row.text for row in find_source(tmp_path / "set", None, "|").rows] == ["beside"]
    make_files(tmp_path, {"metadata.csv": "no table at all\n"})
    assert [row.text for row in find_source(tmp_path / "set", None, "|").rows] == ["beside"]
    make_files(tmp_path, {"metadata.csv": "set/a.wav|above\n"})
    assert [row.text for row in find_source(tmp_path / "set", None, "|").rows] == ["above"]
