"""Takes every corpus of a folder through ingest, shard, validate and plan, and prints what became of each row.

    python scripts/bench/corpora.py CORPORA [--work FOLDER]

CORPORA holds a folder a corpus, each with metadata.csv. Names that begin with `multi_` are of languages that the front
end does not speak: their drops do not fail the run (`--max-drop-share 1`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(sys.executable).parent


def status(work: Path, *command: str | Path) -> int:
    """Exit status of one of our commands; what it said is shown where it failed."""
    done = subprocess.run([str(BIN / command[0]), *map(str, command[1:])], cwd=work, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
    return done.returncode


def row_of(corpus: Path, work: Path) -> tuple[str, bool]:
    """A row of the table, and whether all is as it should be."""
    prepared = work / f"{corpus.name}-prepared"
    share = ("--max-drop-share", "1") if corpus.name.startswith("multi_") else ()
    statuses = [status(work, "dataprep", "ingest", corpus, "--out", prepared, *share)]
    statuses.append(status(work, "dataprep", "validate", prepared))
    for container in ("webdataset", "parquet"):
        shards = work / f"{corpus.name}-{container}"
        statuses.append(status(work, "dataprep", "shard", prepared, "--out", shards, "--format", container))
        statuses.append(status(work, "dataprep", "validate", shards))
        statuses.append(status(work, "trainer", "plan", shards))
    lines = (corpus / "metadata.csv").read_text(encoding="utf-8-sig").splitlines()
    rows = sum(1 for line in lines if line.strip())
    counts = json.loads((prepared / "dataset.json").read_text())["counts"]
    dropped = sum(counts["drops"].values())
    seconds = sum(amount["seconds"] for amount in counts["by_split"].values())
    reasons = ", ".join(f"{number} {reason}" for reason, number in counts["drops"].items()) or "-"
    good = rows == counts["utterances"] + dropped and not any(statuses)
    cells = (
        corpus.name,
        rows,
        counts["utterances"],
        dropped,
        reasons,
        f"{seconds / 60:.1f}",
        "yes" if good else f"NO {statuses}",
    )
    return "| " + " | ".join(map(str, cells)) + " |", good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--work", type=Path, help="folder to work in, kept; a temporary one by default")
    options = parser.parse_args()
    print("| corpus | rows | utterances | drops | by reason | minutes kept | all exit 0 and every row counted |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        results = []
        for corpus in sorted(path.parent for path in options.corpora.resolve().glob("*/metadata.csv")):
            row, good = row_of(corpus, work)
            print(row, flush=True)
            results.append(good)
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
