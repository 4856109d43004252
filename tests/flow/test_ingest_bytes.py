"""The same input gives the same bytes: however many workers, however often killed, in one go or bit by bit."""

import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from distributed import LocalCluster

from tests.helpers.corpora import BIN, bytes_below, make_corpus, tool
from tests.helpers.recordings import DATA, needs_data


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("corpus"), 300)


@pytest.fixture(scope="module")
def expected(corpus):
    tool("dataprep", "ingest", "wavs", "--workers", 1, cwd=corpus)
    tool("dataprep", "shard", "--workers", 1, "--shard-size", "2M", cwd=corpus)
    return bytes_below(corpus / "prepared"), bytes_below(corpus / "shards")


@pytest.mark.parametrize("workers", [2, 4])
def test_any_number_of_workers(corpus, expected, tmp_path, workers):
    assert len(expected[0]) > 5
    tool("dataprep", "ingest", "wavs", "--out", tmp_path / "prepared", "--workers", workers, cwd=corpus)
    assert bytes_below(tmp_path / "prepared") == expected[0]
    size = ("--shard-size", "2M", "--workers", workers)
    tool("dataprep", "shard", tmp_path / "prepared", "--out", tmp_path / "shards", *size, cwd=corpus)
    assert bytes_below(tmp_path / "shards") == expected[1]


def test_a_cluster(corpus, expected, tmp_path):
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path) as cluster:
        address = cluster.scheduler_address
        # relative paths on purpose: the workers of a cluster may stand in other folders
        tool("dataprep", "ingest", corpus / "wavs", "--out", "prepared", "--scheduler", address, cwd=tmp_path)
    assert bytes_below(tmp_path / "prepared") == expected[0]


def run_and_kill(arguments, cwd, seconds):
    """Starts a command in a session of its own, kills it all after `seconds`; whether it had ended by itself."""
    process = subprocess.Popen(
        [BIN / "dataprep", *map(str, arguments)], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)  # the workers must notice by themselves
        process.wait()
        return False
    return True


def test_killed_at_random_moments_and_run_again(corpus, expected, tmp_path):
    moments = random.Random(0)
    started = time.monotonic()
    out = tmp_path / "prepared"
    tool("dataprep", "ingest", "wavs", "--out", out, "--workers", 2, cwd=corpus)
    whole_seconds = time.monotonic() - started
    kills = 0
    for _ in range(10):
        shutil.rmtree(out)
        kills += not run_and_kill(
            ("ingest", "wavs", "--out", out, "--workers", 2), corpus, moments.uniform(0.2, 0.95) * whole_seconds
        )
        tool("dataprep", "ingest", "wavs", "--out", out, "--workers", 2, cwd=corpus)
        assert bytes_below(out) == expected[0]
    assert kills >= 5, "the moments were too late to mean anything"


def test_sharding_killed_and_run_again(corpus, expected, tmp_path):
    moments = random.Random(1)
    for _ in range(3):
        shutil.rmtree(tmp_path / "shards", ignore_errors=True)
        arguments = ("shard", corpus / "prepared", "--out", tmp_path / "shards", "--shard-size", "2M", "--workers", 1)
        run_and_kill(arguments, corpus, moments.uniform(1.0, 4.0))
        tool("dataprep", *arguments, cwd=corpus)
        assert bytes_below(tmp_path / "shards") == expected[1]


def test_orphaned_workers_end(corpus, tmp_path):
    marker = tmp_path / "prepared"
    run_and_kill(("ingest", "wavs", "--out", marker, "--workers", 2), corpus, 2.5)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = subprocess.run(["pgrep", "-f", f"{marker}"], capture_output=True, text=True)
        if not found.stdout.strip():
            return
        time.sleep(0.2)
    pytest.fail(f"still running: {found.stdout}")


def test_bit_by_bit_gives_the_same_set_and_does_only_what_is_new(tmp_path):
    corpus = make_corpus(tmp_path / "a", 90)
    first = tool("dataprep", "ingest", "wavs", cwd=corpus).stdout
    assert "0 of them from an earlier run" in first
    assert "90 of them from an earlier run" in tool("dataprep", "ingest", "wavs", cwd=corpus).stdout
    make_corpus(corpus, 10, first=90)
    assert "90 of them from an earlier run" in tool("dataprep", "ingest", "wavs", cwd=corpus).stdout
    (corpus / "wavs/u0003.wav").write_bytes((corpus / "wavs/u0004.wav").read_bytes())
    assert "99 of them from an earlier run" in tool("dataprep", "ingest", "wavs", cwd=corpus).stdout
    at_once = tmp_path / "b"
    shutil.copytree(corpus, at_once, ignore=shutil.ignore_patterns("prepared"))
    tool("dataprep", "ingest", "wavs", cwd=at_once)
    assert bytes_below(corpus / "prepared") == bytes_below(at_once / "prepared")


def test_a_damaged_part_is_made_again(tmp_path):
    corpus = make_corpus(tmp_path, 30)
    tool("dataprep", "ingest", "wavs", cwd=corpus)
    before = bytes_below(corpus / "prepared")
    part = sorted((corpus / "prepared/parts").iterdir())[0]
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 255
    part.write_bytes(content)
    tool("dataprep", "ingest", "wavs", cwd=corpus)
    assert bytes_below(corpus / "prepared") == before
    part.unlink()
    tool("dataprep", "ingest", "wavs", cwd=corpus)
    assert bytes_below(corpus / "prepared") == before


def test_another_option_prepares_anew(tmp_path):
    corpus = make_corpus(tmp_path, 12)
    tool("dataprep", "ingest", "wavs", cwd=corpus)
    before = bytes_below(corpus / "prepared")
    assert "0 of them" in tool("dataprep", "ingest", "wavs", "--no-trim", cwd=corpus).stdout
    assert bytes_below(corpus / "prepared") != before
    tool("dataprep", "ingest", "wavs", cwd=corpus)
    assert bytes_below(corpus / "prepared") == before


@needs_data
@pytest.mark.slow
def test_real_recordings_with_one_two_and_four_workers(tmp_path):
    found = []
    for workers in (1, 2, 4):
        out = tmp_path / str(workers)
        tool("dataprep", "ingest", DATA / "corpora/zh_aishell_16k", "--out", out, "--workers", workers, cwd=tmp_path)
        found.append(bytes_below(out))
    assert found[0] == found[1] == found[2]
