"""Small corpora of made sounds with real texts, and the command line as a user runs it."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import soundfile

TEXTS = (
    "你好世界。",
    "今天天气很好，我们去公园。",
    "Hello world.",
    "The train leaves at seven.",
    "我喜欢 hello world。",
)
BIN = Path(sys.executable).parent


def voice_like(seconds, sample_rate, seed):
    """A buzz with a moving pitch and pauses at both ends, float32 [num_samples]."""
    random = np.random.default_rng(seed)
    times = np.arange(round(seconds * sample_rate)) / sample_rate
    phase = 2 * np.pi * np.cumsum(random.uniform(90, 240) + 20 * np.sin(2 * np.pi * 2 * times)) / sample_rate
    sound = sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 9)) * 0.2
    quiet = np.zeros(sample_rate // 4)
    return np.concatenate([quiet, sound * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * times)), quiet]).astype(np.float32)


def make_corpus(folder, count, speakers=("ann", "bob"), sample_rate=16000, first=0):
    """Writes `wavs/` and `metadata.csv` with `count` rows and returns the folder."""
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(first, first + count):
        name = f"wavs/u{number:04d}.wav"
        soundfile.write(folder / name, voice_like(0.3 + 0.05 * (number % 9), sample_rate, number), sample_rate)
        rows.append(f"{name}|{TEXTS[number % len(TEXTS)]}|{speakers[number % len(speakers)]}")
    with (folder / "metadata.csv").open("a", encoding="utf-8") as file:
        file.write("\n".join(rows) + "\n")
    return folder


def tool(name, *arguments, cwd, check=True, **environment):
    """Runs `dataprep` or `trainer` as a user does, with one thread."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [BIN / name, *map(str, arguments)], cwd=cwd, env={**os.environ, **threads, **environment},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if check:
        assert done.returncode == 0, f"{name} {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def bytes_below(folder):
    """Hash of each file below `folder`, by its path; nothing that is not meant to stay may be there."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
