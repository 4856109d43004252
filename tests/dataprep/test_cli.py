import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from dataprep.cli import main
from dataprep.options import Shares, Size
from tests.helpers.corpora import BIN, make_corpus, tool


def test_help_loads_nothing_heavy_and_is_quick():
    script = """
import sys, time
began = time.process_time()
from dataprep.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = {"torch", "dask", "distributed", "librosa", "numpy", "pyarrow", "jieba"} & set(sys.modules)
assert not heavy, heavy
assert time.process_time() - began < 0.5
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ingest" in done.stdout


def test_sizes_and_shares():
    assert [Size().convert(text, None, None) for text in ("1", "2K", "256M", "1.5G", "3MiB", "4GB")] == [
        1, 2048, 256 * 2**20, 3 * 2**29, 3 * 2**20, 4 * 2**30
    ]  # fmt: skip
    assert Shares().convert("0.8,0.1,0.1", None, None) == (0.8, 0.1, 0.1)


@pytest.mark.parametrize("text", ["nan,nan,nan", "nan,0,1", "inf,0,0", "1,0", "a,b,c", "-1,1,1"])
def test_shares_that_are_none(text):
    with pytest.raises(click.BadParameter):
        Shares().convert(text, None, None)


@pytest.mark.parametrize("text", ["inf", "1e400", "infM", "nan", "0", "-1", "big", ""])
def test_sizes_that_are_none(text):
    with pytest.raises(click.BadParameter):
        Size().convert(text, None, None)


@pytest.mark.parametrize(
    "options",
    [
        ("--max-duration", "inf"),
        ("--trim-db", "inf"),
        ("--trim-margin", "1e308"),
        ("--out", ""),
        ("--min-duration", "nan"),
    ],
)
def test_options_that_are_no_numbers_are_refused_in_a_line(options, tmp_path):
    done = tool("dataprep", "ingest", ".", *options, cwd=make_corpus(tmp_path, 2), check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_an_ascii_terminal_and_a_reader_that_goes_away(tmp_path):
    corpus = make_corpus(tmp_path, 3)
    with (corpus / "metadata.csv").open("a", encoding="utf-8") as file:
        file.write("wavs/没有.wav|你好|ann\n")
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    done = tool("dataprep", "ingest", "wavs", "--max-drop-share", "1", cwd=corpus, **ascii_only)
    assert "dropped: line 4" in done.stdout
    command = f"{BIN / 'dataprep'} ingest wavs --max-drop-share 1 | head -1; exit ${{PIPESTATUS[0]}}"
    piped = subprocess.run(["bash", "-c", command], cwd=corpus, capture_output=True, text=True)
    assert (piped.returncode, piped.stderr) == (0, "")


@pytest.mark.parametrize("command", ["validate", "inspect", "shard"])
def test_a_url_is_refused_where_folders_are_meant(command):
    result = CliRunner().invoke(main, [command, "s3://bucket/shards"])
    assert result.exit_code == 2
    assert "s3://bucket/shards is a URL" in result.output
