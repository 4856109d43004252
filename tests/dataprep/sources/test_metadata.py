"""Metadata files: every row ends as a row or as a drop with its line."""

import os
import pickle
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.sources import find_source
from dataprep.sources.columns import find_columns
from schemas.errors import SourceError, UsageError
from schemas.utterance import DropReason
from tests.helpers.folders import make_files, recordings

AB = recordings("wavs/a.wav", "wavs/b.wav")


def found(source):
    return [(row.id, row.text, row.speaker, row.line) for row in source.rows]


def reasons(source):
    return [(drop.line, drop.reason.value, drop.id) for drop in source.drops]


@pytest.mark.parametrize(
    "content",
    [
        "wavs/a.wav|one\nwavs/b.wav|two\n",
        "\ufeffwavs/a.wav|one\nwavs/b.wav|two",
        "wavs/a.wav|one\r\nwavs/b.wav|two\r\n",
        "wavs/a.wav|one\rwavs/b.wav|two\r",
        "a|one\nb|two\n",
        "a.wav|one\nb.wav|two\n",
        "wavs/a|one\n./wavs/b.WAV|two\n",
        "wavs\\a.wav|one\nwavs/B.wav| two \n",
    ],
)
@pytest.mark.parametrize("place", ["metadata.csv", "wavs/metadata.csv"])
@pytest.mark.parametrize("asked", [".", "wavs"])
def test_spellings_and_places_give_the_same_rows(tmp_path, content, place, asked):
    make_files(tmp_path, {**AB, place: content})
    source = find_source(tmp_path / asked, None, "|")
    assert found(source) == [("a", "one", "default", 1), ("b", "two", "default", 2)]
    assert [row.file.name for row in source.rows] == ["a.wav", "b.wav"]
    assert source.num_rows == 2
    assert source.metadata.name == "metadata.csv"
    assert {row.num_bytes for row in source.rows} == {5}


def test_a_relative_folder_works(tmp_path, monkeypatch):
    make_files(tmp_path, {**AB, "metadata.csv": "wavs/a.wav|one\nwavs/b.wav|two\n"})
    monkeypatch.chdir(tmp_path)
    for asked in ("wavs", "./wavs/", "."):
        assert [row.id for row in find_source(Path(asked), None, "|").rows] == ["a", "b"]
    monkeypatch.chdir(tmp_path / "wavs")
    assert [row.id for row in find_source(Path(), None, "|").rows] == ["a", "b"]


def test_metadata_elsewhere_is_relative_to_the_source(tmp_path):
    make_files(tmp_path, {**{f"set/{path}": b"x" for path in AB}, "other/list.csv": "wavs/a.wav|one\nb|two\n"})
    assert [row.id for row in find_source(tmp_path / "set", tmp_path / "other/list.csv", "|").rows] == ["a", "b"]


def test_every_row_is_a_row_or_a_drop(tmp_path):
    content = (
        "\n# a comment\nwavs/a.wav|one\nwavs/a.wav|again\na|same\nwavs/b.wav|  \nwavs/gone.wav|three\n"
        "no delimiter here\n/etc/hostname|four\n../../x.wav|five\n|six\nb|seven|spk\n  \n"
    )
    source = find_source(make_files(tmp_path / "x/set", {**AB, "metadata.csv": content}), None, "|")
    assert found(source) == [("a", "one", "default", 3)]
    assert reasons(source) == [
        (4, "duplicate_id", "a"),
        (5, "duplicate_id", "a"),
        (6, "empty_text", "b"),
        (7, "missing_audio", "gone"),
        (8, "malformed_row", ""),
        (9, "outside_source", "etc/hostname"),
        (10, "outside_source", "../../x"),
        (11, "malformed_row", ""),
        (12, "malformed_row", ""),
    ]
    assert source.num_rows == 10
    assert dict(source.warnings) == {"blank_lines": 2, "comment_lines": 1}
    assert "line 3" in source.drops[0].message
    assert (source.drops[-1].value, source.drops[-1].limit) == ("3", "2")
    assert all(drop.message for drop in source.drops)
    assert pickle.loads(pickle.dumps(source)) == source


def test_a_row_after_a_dropped_one_of_the_same_recording_counts(tmp_path):
    source = find_source(make_files(tmp_path, {**AB, "metadata.csv": "a|\na|one\nb|two\n"}), None, "|")
    assert found(source) == [("a", "one", "default", 2), ("b", "two", "default", 3)]
    assert reasons(source) == [(1, "empty_text", "a")]


def test_recordings_without_a_row_are_only_counted(tmp_path):
    files = {**AB, **recordings("wavs/c.wav", "d.flac"), "notes.txt": "x", "metadata.csv": "a|one\nb|\n"}
    source = find_source(make_files(tmp_path, files), None, "|")
    assert dict(source.warnings) == {"recordings_without_row": 2}
    assert source.num_rows == 2


def test_ids_count_from_the_source_where_recordings_lie_outside_wavs(tmp_path):
    files = {**recordings("wavs/a.wav", "more/b.wav"), "metadata.csv": "wavs/a.wav|one\nmore/b.wav|two\n"}
    assert [row.id for row in find_source(make_files(tmp_path, files), None, "|").rows] == ["more/b", "wavs/a"]


def test_recordings_in_folders_keep_them_in_their_ids(tmp_path):
    files = {**recordings("wavs/s1/a.wav", "wavs/s2/a.wav"), "metadata.csv": "wavs/s2/a.wav|two\ns1/a|one\n"}
    assert [row.id for row in find_source(make_files(tmp_path, files), None, "|").rows] == ["s1/a", "s2/a"]


NAMES = ["with space", "a,comma", 'it\'s "quoted"', "你好 世界", "dots.in.name", "café", "#hash", "100%", "UPPER"]


@pytest.mark.parametrize("disk_form", ["NFC", "NFD"])
@pytest.mark.parametrize("row_form", ["NFC", "NFD"])
@pytest.mark.parametrize("suffix", ["", ".wav", ".WAV"])
def test_names_as_people_give_them(tmp_path, disk_form, row_form, suffix):
    files = recordings(*(unicodedata.normalize(disk_form, f"wavs/{name}.wav") for name in NAMES))
    content = "".join(f'{name}{suffix}|the text, "{number}"\n' for number, name in enumerate(NAMES))
    files["metadata.csv"] = unicodedata.normalize(row_form, content)
    source = find_source(make_files(tmp_path, files), None, "|")
    assert not source.drops
    assert [row.id for row in source.rows] == sorted(NAMES)
    assert {row.id: row.text for row in source.rows} == {
        name: f'the text, "{number}"' for number, name in enumerate(NAMES)
    }
    assert all(row.file.is_file() for row in source.rows)


def test_other_suffixes_and_cases_are_noted(tmp_path):
    files = {
        **recordings("wavs/a.flac", "wavs/b.wav", "wavs/b.mp3", "wavs/Case.wav"),
        "metadata.csv": "a.wav|one\nb|two\ncase|three\n",
    }
    source = find_source(make_files(tmp_path, files), None, "|")
    assert [row.file.name for row in source.rows] == ["Case.wav", "a.flac", "b.wav"]
    noted = {"other_case": 1, "other_suffix": 1, "several_suffixes": 1, "recordings_without_row": 1}
    assert dict(source.warnings) == noted


def test_two_recordings_of_one_id_are_not_both_kept(tmp_path):
    files = {**recordings("wavs/a.wav", "wavs/a.flac"), "metadata.csv": "a.wav|one\na.flac|two\n"}
    source = find_source(make_files(tmp_path, files), None, "|")
    assert found(source) == [("a", "one", "default", 1)]
    assert reasons(source) == [(2, "duplicate_id", "a")]


def test_a_path_through_the_folder_above_may_come_back(tmp_path):
    files = {**AB, "lists/metadata.csv": "../wavs/a.wav|one\n" + str(tmp_path / "wavs/b.wav") + "|two\n"}
    source = find_source(make_files(tmp_path, files), tmp_path / "lists/metadata.csv", "|")
    assert [row.id for row in source.rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "speakers", "texts"),
    [
        ("a|one two three|anna\nb|four five six|ben\n", ["anna", "ben"], ["one two three", "four five six"]),
        ("a|one|\nb|two|ben\n", ["default", "ben"], ["one", "two"]),
        (
            "a|In 1455 it was.|In fourteen fifty-five it was.\nb|Dr. Who?|Doctor Who?\n",
            ["default"] * 2,
            ["In fourteen fifty-five it was.", "Doctor Who?"],
        ),
        ("a|One.|\nb|Two plus 2.|Two plus two.\n", ["default"] * 2, ["One.", "Two plus two."]),
        ("a|你好世界|你好，世界\nb|再见|再见。\n", ["default"] * 2, ["你好，世界", "再见。"]),
        ("path|text|speaker\na|one|one\nb|two|two\n", ["one", "two"], ["one", "two"]),
        ("Speaker|Sentence|WAV|emotion\nanna|one|a|x\nben|two|b|y\n", ["anna", "ben"], ["one", "two"]),
        ("ID|Text|Normalized Text\na|1|one\nb|2|two\n", ["default"] * 2, ["one", "two"]),
        ("audio_file|transcription\na|one\nb|two\n", ["default"] * 2, ["one", "two"]),
        ("a|你好|ni3 hao3 shi4 jie4 a5\nb|再见|zai4 jian4 zai4 jian4 la5\n", ["default"] * 2, ["你好", "再见"]),
    ],
)
def test_columns(tmp_path, content, speakers, texts):
    source = find_source(make_files(tmp_path, {**AB, "metadata.csv": content}), None, "|")
    assert not source.drops
    assert [row.speaker for row in source.rows] == speakers
    assert [row.text for row in source.rows] == texts


@given(st.lists(st.sampled_from(["anna", "S0150", "june wallack", "george", "p225", "42"]), min_size=3, max_size=60))
def test_speakers_are_never_taken_for_texts(names):
    texts = ["zero", "设定二十九度", "has never been surpassed.", "Lundi", "99"]
    rows = [("x", texts[number % len(texts)], name) for number, name in enumerate(names)]
    assert find_columns(rows).speaker == 2


@pytest.mark.parametrize(
    ("option", "content"),
    [
        ("\\t", 'a\tone, two\nb\t"three"\n'),
        ("tab", 'path\ttext\na\tone, two\nb\t"three"\n'),
        (",", 'a,"one, two"\nb,"""three"""\n'),
        (";", 'a;one, two\nb;"""three"""\n'),
    ],
)
def test_other_delimiters(tmp_path, option, content):
    source = find_source(make_files(tmp_path, {**AB, "metadata.csv": content}), None, option)
    assert [row.text for row in source.rows] == ["one, two", '"three"']


@pytest.mark.parametrize(("content", "hint"), [("a\tone\nb\ttwo\n", "'\\t'"), ("a,one\nb,two\n", "','")])
def test_another_delimiter_is_named(tmp_path, content, hint):
    with pytest.raises(UsageError, match=r"no line holds the delimiter '\|'") as caught:
        find_source(make_files(tmp_path, {**AB, "metadata.csv": content}), None, "|")
    assert caught.value.hint == f"run again with --delimiter {hint}"
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("a|one\nb|你好\n".encode("gb18030"), 2, "0xc4, which is not UTF-8"),
        ("a|one\n".encode("utf-16"), 1, "UTF-16"),
        (b"just words\nmore words\n", None, "no line holds the delimiter"),
        (b"# nothing\n\n", None, "holds no rows"),
        (b"", None, "holds no rows"),
        (b"path|text\n", None, "a header and no rows"),
        (b"x|one\ny|two\n", 1, r"none of 2 rows can be used \(2 missing_audio\); the first, 'x'"),
        (b"a|spk|en|one\nb|spk|en|two\n", 1, "4 columns, 2 expected"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, content, line, message):
    with pytest.raises(SourceError, match=message) as caught:
        find_source(make_files(tmp_path, {**AB, "metadata.csv": content}), None, "|")
    assert caught.value.path == str(tmp_path / "metadata.csv")
    assert caught.value.line == line
    assert caught.value.hint
    assert caught.value.exit_status == 1


def test_order_does_not_depend_on_the_disk(tmp_path, monkeypatch):
    files = {**recordings(*(f"wavs/{name}.wav" for name in "dcab")), "metadata.csv": "d|4\nb|2\nc|3\na|1\n"}
    make_files(tmp_path, files)
    expected = find_source(tmp_path, None, "|")
    assert [row.id for row in expected.rows] == list("abcd")

    class Reversed:
        def __init__(self, place):
            self.entries = sorted(real(place), key=lambda entry: entry.name, reverse=True)

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *_):
            pass

    real = os.scandir
    monkeypatch.setattr("dataprep.sources.discover.os.scandir", Reversed)
    assert find_source(tmp_path, None, "|") == expected


CELLS = st.text(st.sampled_from("ab|# \t\"'你.\\/"), max_size=12)


GOOD = [f"r{number}|a text" for number in range(13)]


@given(lines=st.lists(CELLS, max_size=12))
def test_no_row_is_ever_lost(tmp_path_factory, lines):
    files = {**AB, **recordings(*(f"wavs/r{number}.wav" for number in range(13)))}
    folder = make_files(tmp_path_factory.mktemp("set"), {**files, "metadata.csv": "\n".join([*GOOD, *lines])})
    source = find_source(folder, None, "|")
    skipped = dict(source.warnings)
    num_lines = len("\n".join([*GOOD, *lines]).split("\n"))
    ends_blank = bool(lines) and lines[-1] == ""  # what follows the last line end is no line
    assert source.num_rows + skipped.get("blank_lines", 0) + skipped.get("comment_lines", 0) == num_lines - ends_blank
    assert len({row.id for row in source.rows}) == len(source.rows) >= 13
    assert all(drop.reason in DropReason and drop.line > 0 for drop in source.drops)
