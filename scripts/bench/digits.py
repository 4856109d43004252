"""Does it speak? Trains on spoken digits and lets a recogniser that never heard synthetic speech name what is said.

    python scripts/bench/digits.py CORPUS [--minutes 6] [--config tiny] [--work FOLDER]

CORPUS is a folder with wavs/ and metadata.csv (`path|text|speaker`) of single spoken digits, such as the Free Spoken
Digit Dataset. The recogniser is a logistic regression on 24 frames of 20 MFCCs, trained on the real recordings of the
training split alone; its accuracy on the real recordings of the other splits is printed beside the result. Checkpoints
are kept every half minute, so that the table shows what was reached when. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import librosa
import numpy as np
from librosa.effects import trim
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dataprep.shards.reader import ShardSet
from schemas.utterance import Split
from trainer.synth.voice import Voice

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
FRAMES, COEFFICIENTS = 24, 20
EVERY_SECONDS = 30
BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What the recogniser made of one voice."""

    named_right: int
    spoken: int
    confusions: Counter[tuple[str, str]]


def features(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float64]:
    """MFCCs below 4 kHz, stretched to 24 frames, float64 `[24 * 20]`; the level without its mean."""
    mfcc = librosa.feature.mfcc(
        y=samples, sr=sample_rate, n_mfcc=COEFFICIENTS, n_fft=512, hop_length=128, n_mels=40, fmax=4000
    )
    places = np.linspace(0, mfcc.shape[1] - 1, FRAMES)
    stretched = np.stack([np.interp(places, np.arange(mfcc.shape[1]), row) for row in mfcc])
    stretched[0] -= stretched[0].mean()
    return stretched.astype(np.float64).ravel()


def trimmed(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Without silence at the ends, as the recordings are."""
    result: NDArray[np.float32] = trim(samples, top_db=40)[0]
    return result


def recordings(shards: ShardSet, splits: tuple[Split, ...]) -> tuple[NDArray[np.float64], list[str]]:
    """Features and words of the real recordings."""
    rows = [int(row) for split in splits for row in shards.rows_of(split)]
    rate = shards.manifest.feature_spec.sample_rate
    sounds = np.stack([features(trimmed(shards.read_audio(row)), rate) for row in rows])
    return sounds, [shards.read_info(row).text for row in rows]


def listen(voice: Voice, recogniser: Pipeline, count: int, steps: int) -> Heard:
    """Lets the voice say `count` digits, speakers in turn, and the recogniser name them."""
    speakers = voice.header.speakers
    confusions: Counter[tuple[str, str]] = Counter()
    for number in range(count):
        word = DIGITS[number % len(DIGITS)]
        speaker = speakers[(number + number // len(DIGITS)) % len(speakers)]
        samples, rate = voice.say(word, speaker, num_steps=steps, seed=number)
        named = str(recogniser.predict(features(trimmed(samples), rate)[None])[0])
        confusions[(word, named)] += 1
    right = sum(times for (word, named), times in confusions.items() if word == named)
    return Heard(named_right=right, spoken=count, confusions=confusions)


def run(*command: str | Path) -> None:
    """Runs one of our commands; its output is shown."""
    subprocess.run([str(BIN / command[0]), *map(str, command[1:])], check=True)


def train(work: Path, corpus: Path, config: str, minutes: float) -> None:
    """Ingest, shard and fit as a user does, with a checkpoint every half minute."""
    run("dataprep", "ingest", corpus, "--out", work / "prepared", "--split", "0.9,0.05,0.05")
    run("dataprep", "shard", work / "prepared", "--out", work / "shards")
    seconds = round(minutes * 60)
    limit = f"00:{seconds // 3600:02d}:{seconds % 3600 // 60:02d}:{seconds % 60:02d}"
    kept = "--trainer.callbacks.init_args."
    subprocess.run(
        [
            str(BIN / "trainer"), "fit", str(work / "shards"), "--config", config,
            "--trainer.max_time", limit, "--trainer.max_steps", "-1", "--trainer.enable_progress_bar", "false",
            "--trainer.callbacks+=pytorch_lightning.callbacks.ModelCheckpoint",
            f"{kept}dirpath={work / 'curve'}", f"{kept}save_top_k=-1", f"{kept}filename={{step:06d}}",
            f"{kept}train_time_interval=0:00:{EVERY_SECONDS}",
        ],
        check=True, cwd=work,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--minutes", type=float, default=6.0, help="training time")
    parser.add_argument("--config", default="tiny", help="configuration of `trainer fit`")
    parser.add_argument("--count", type=int, default=100, help="digits to say")
    parser.add_argument("--steps", type=int, default=10, help="Euler steps")
    parser.add_argument("--work", type=Path, help="folder to work in, kept; a temporary one by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        began = time.time()
        train(work, options.corpus.resolve(), options.config, options.minutes)
        report(work, began, options.count, options.steps)


def report(work: Path, began: float, count: int, steps: int) -> None:
    """Prints the recogniser's own accuracy, the curve over training, and the last voice's confusions."""
    shards = ShardSet(work / "shards")
    recogniser = make_pipeline(StandardScaler(), LogisticRegression(C=0.05, max_iter=2000))
    recogniser.fit(*recordings(shards, ("train",)))
    sounds, words = recordings(shards, ("validation", "test"))
    print(f"\nthe recogniser names {recogniser.score(sounds, words):.1%} of {len(words)} held-out real recordings\n")
    last = max(work.glob("runs/*/checkpoints/last.ckpt"), key=lambda path: path.stat().st_mtime)
    curve = sorted(work.glob("curve/*.ckpt"), key=lambda path: path.stat().st_mtime)
    print("| checkpoint | minutes since start | named right |\n|---|---|---|")
    heard = None
    for path in [*curve, last]:
        heard = listen(Voice.load(path), recogniser, count, steps)
        minutes = (path.stat().st_mtime - began) / 60
        print(f"| {path.stem} | {minutes:.1f} | {heard.named_right} of {heard.spoken} |", flush=True)
    assert heard is not None
    wrong = [(pair, times) for pair, times in heard.confusions.most_common() if pair[0] != pair[1]]
    print("\nconfusions of the last: " + (", ".join(f"{a} as {b} x{n}" for (a, b), n in wrong) or "none"))


if __name__ == "__main__":
    main()
