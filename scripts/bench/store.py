"""Reading from an object store that answers late: the first batches, and an epoch, against the same from a folder.

    python -m scripts.bench.store [--utterances 2000] [--delay-ms 40]

The store is a real S3 server of this machine (`rclone serve s3`) behind a proxy that holds back each request.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dataprep.shards.cache import CacheSettings
from dataprep.shards.reader import ShardSet
from scripts.bench.loader_sets import speech_like_set

KEY, SECRET = "voxloom-bench-key", "voxloom-bench-secret"
BATCH = 64


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_seconds: float) -> None:
    while data := await reader.read(1 << 20):
        await asyncio.sleep(delay_seconds)
        writer.write(data)
        await writer.drain()
    writer.close()


async def _serve(port: int, behind: int, delay_seconds: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", behind)
        requests, answers = _pass_on(reader, back, delay_seconds), _pass_on(there, writer, 0.0)
        await asyncio.gather(requests, answers, return_exceptions=True)

    async with await asyncio.start_server(connected, "127.0.0.1", port) as server:
        await server.serve_forever()


def proxy(port: int, behind: int, delay_seconds: float) -> None:
    """Passes requests on to the port `behind`, each after a delay."""
    asyncio.run(_serve(port, behind, delay_seconds))


@contextmanager
def store(root: Path, delay_seconds: float) -> Iterator[None]:
    """A store with the folders below `root` as buckets, which the environment then names."""
    rclone = shutil.which("rclone") or str(Path(sys.executable).parent / "rclone")
    behind, port = free_port(), free_port()
    command = [rclone, "serve", "s3", "--auth-key", f"{KEY},{SECRET}", "--addr", f"127.0.0.1:{behind}", str(root)]
    os.environ |= {
        "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    between = multiprocessing.get_context("spawn").Process(target=proxy, args=(port, behind, delay_seconds))
    between.start()
    try:
        yield
    finally:
        server.kill()
        between.kill()


def batches(shards: ShardSet, count: int) -> list[float]:
    """Seconds that each of the first random batches of an epoch takes."""
    order, seconds = np.random.default_rng(0).permutation(len(shards)), []
    for number in range(count):
        began = time.perf_counter()
        shards.read_batch(order[number * BATCH :][:BATCH])
        seconds.append(time.perf_counter() - began)
    return seconds


def main() -> None:
    """Makes the set, reads it near and far, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--utterances", type=int, default=2000)
    parser.add_argument("--delay-ms", type=float, default=40.0)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*(out of reach|is back)")
    with tempfile.TemporaryDirectory() as name:
        folder = speech_like_set(Path(name) / "root" / "bucket" / "shards", options.utterances)
        size = sum(path.stat().st_size for path in folder.iterdir())
        largest = max(path.stat().st_size for path in folder.iterdir())
        count = options.utterances // BATCH
        print(f"{options.utterances} utterances, {size / 1e6:.0f} MB, {len(list(folder.glob('*.tar')))} shards\n")
        print("| from | first batch, s | median batch, s | epoch, s | second epoch, s |\n|---|---|---|---|---|")
        with store(folder.parents[1], options.delay_ms / 1000):
            limits = {"a folder": 0, "a store, all in the cache": 2 * size, "a store, ranges only": int(largest * 0.9)}
            for label, limit in limits.items():
                cache = CacheSettings(folder=Path(name) / label, max_bytes=limit, retry_seconds=60.0)
                shards = ShardSet("s3://bucket/shards", cache) if limit else ShardSet(folder)
                first, second = batches(shards, count), batches(shards, count)
                row = (first[0], float(np.median(first)), sum(first), sum(second))
                print(f"| {label} | " + " | ".join(f"{value:.2f}" for value in row) + " |", flush=True)


if __name__ == "__main__":
    main()
