"""The cache of far-away files: fetched once, bounded, and none the worse for killed processes."""

import contextlib
import hashlib
import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pytest

from dataprep.shards.cache import FileCache
from schemas.dataset import FileInfo
from schemas.errors import FormatError, UsageError

SIZE = 1000
FORK = multiprocessing.get_context("fork")


def content(number, size=SIZE):
    return np.random.default_rng(number).bytes(size)


def info(number, size=SIZE, suffix=".tar"):
    sha256 = hashlib.sha256(content(number, size)).hexdigest()
    return FileInfo(name=f"train-{number:06d}{suffix}", bytes=size, sha256=sha256)


def writes(number, size=SIZE):
    return lambda handle: handle.write(content(number, size))


def held(folder):
    total = 0
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # a fetch that has found its file to be there
            total += path.stat().st_size
    return total


def files(folder):
    return sorted(path.suffix for path in folder.iterdir() if path.suffix != ".lock")


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def fetch_slowly(folder, log):
    def fetch(handle):
        with log.open("a") as lines:
            lines.write("x")
        time.sleep(0.3)
        handle.write(content(1))

    FileCache(folder, 10 * SIZE).get(info(1), fetch)


def test_a_file_is_fetched_once_however_many_processes_ask(tmp_path):
    folder, log = tmp_path / "cache", tmp_path / "log"
    processes = [FORK.Process(target=fetch_slowly, args=(folder, log)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0] * 4
    assert log.read_text() == "x"
    assert FileCache(folder, 10 * SIZE).path(info(1)).read_bytes() == content(1)


def test_what_is_not_as_described_is_not_kept(tmp_path):
    cache = FileCache(tmp_path, 10 * SIZE)
    for wrong in (b"", content(1)[:-1], content(2), content(1) + b"x"):
        with pytest.raises(FormatError, match="bytes and SHA-256"):
            cache.get(info(1), lambda handle, wrong=wrong: (handle.truncate(0), handle.write(wrong)))
        assert files(tmp_path) == []
    assert cache.get(info(1), writes(1)).read_bytes() == content(1)
    cache.path(info(1)).write_bytes(b"cut short on the disk")
    assert cache.get(info(1), writes(1)).read_bytes() == content(1)


def test_the_longest_unused_make_room_and_an_index_last(tmp_path):
    cache = FileCache(tmp_path, 3 * SIZE)
    index = info(0, suffix=".arrow")
    for number, one in enumerate((index, info(1), info(2))):
        os.utime(cache.get(one, writes(number)), (number, number))
    os.utime(cache.get(info(1), writes(1)))  # used again
    cache.get(info(3), writes(3))
    assert [cache.has(one) for one in (index, info(1), info(2), info(3))] == [True, True, False, True]
    cache.get(info(4, 3 * SIZE), writes(4, 3 * SIZE))
    assert not cache.has(index)
    with pytest.raises(UsageError, match="has 3,001 bytes, the cache may hold 3,000"):
        cache.get(info(5, 3 * SIZE + 1), writes(5, 3 * SIZE + 1))


def test_files_of_others_in_the_folder_are_left_alone(tmp_path):
    notes = tmp_path / "notes.tar"
    notes.write_bytes(bytes(5 * SIZE))
    cache = FileCache(tmp_path, SIZE)
    for number in (1, 2):
        cache.get(info(number), writes(number))
    assert notes.stat().st_size == 5 * SIZE
    assert [cache.has(info(number)) for number in (1, 2)] == [False, True]


def test_the_limit_holds_while_many_fetch(tmp_path):
    """What is on its way counts: five fetch at once into room for two."""
    cache, most, wrong = FileCache(tmp_path, 2 * SIZE), [], []
    done = threading.Event()

    def fetch(seed):
        random = np.random.default_rng(seed)
        for number in random.integers(0, 6, 12).tolist():
            path = cache.get(info(number), lambda handle, number=number: (time.sleep(0.003), writes(number)(handle)))
            try:
                if path.read_bytes() != content(number):
                    wrong.append(number)
            except FileNotFoundError:  # made room for another
                pass

    def watch():
        while not done.is_set():
            with cache._room():
                most.append(held(tmp_path))

    threads = [threading.Thread(target=fetch, args=(seed,)) for seed in range(5)]
    watcher = threading.Thread(target=watch)
    for thread in (*threads, watcher):
        thread.start()
    for thread in threads:
        thread.join(60)
    done.set()
    watcher.join(60)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)
    assert max(most) <= 2 * SIZE


def fetch_for_ever(folder, started):
    def fetch(handle):
        handle.write(content(1)[:500])
        handle.flush()
        started.set()
        time.sleep(60)

    FileCache(folder, 2 * SIZE).get(info(1), fetch)


def killed_in_a_fetch(folder):
    started = FORK.Event()
    process = FORK.Process(target=fetch_for_ever, args=(folder, started))
    process.start()
    assert started.wait(30)
    return process


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.join(30)


def test_what_a_killed_fetch_leaves_counts_for_nothing(tmp_path):
    kill(killed_in_a_fetch(tmp_path))
    assert files(tmp_path) == [".part"]
    cache = FileCache(tmp_path, 2 * SIZE)
    for number in (2, 3):  # fill the cache: the rest of the killed fetch is in the way of neither
        cache.get(info(number), writes(number))
    assert files(tmp_path) == [".tar", ".tar"]
    assert cache.has(info(2))
    kill(killed_in_a_fetch(tmp_path))
    assert cache.get(info(1), writes(1)).read_bytes() == content(1)


def test_who_is_not_to_wait_does_not(tmp_path):
    cache = FileCache(tmp_path, 2 * SIZE)
    process = killed_in_a_fetch(tmp_path)
    try:
        assert cache.get(info(1), writes(1), wait=False) is None, "another process fetches it"
        assert cache.get(info(4, 2 * SIZE), writes(4, 2 * SIZE), wait=False) is None, "no room beside what it fetches"
        assert cache.get(info(2), writes(2), wait=False).read_bytes() == content(2)
    finally:
        kill(process)


def test_a_process_forked_in_the_middle_of_a_fetch_keeps_no_lock(tmp_path):
    cache, begun, end, forked = FileCache(tmp_path, 2 * SIZE), threading.Event(), threading.Event(), []

    def fetch(handle):
        begun.set()
        assert end.wait(30)
        raise FormatError("not there")

    def try_it():
        with pytest.raises(FormatError, match="not there"), cache.turn():
            cache.get(info(1), fetch)

    thread = threading.Thread(target=try_it)
    thread.start()
    assert begun.wait(30)
    child = FORK.Process(target=time.sleep, args=(60,))
    child.start()
    forked.append(child)
    end.set()
    thread.join(30)
    try:
        assert cache.get(info(1), writes(1), wait=False).read_bytes() == content(1)
    finally:
        kill(child)


def test_turns_are_shared_by_all(tmp_path):
    running, most, lock = [0], [0], threading.Lock()

    def take():
        with FileCache(tmp_path, SIZE).turn():
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.05)
            with lock:
                running[0] -= 1

    threads = [threading.Thread(target=take) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most[0] == 4
