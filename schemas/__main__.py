"""`python -m schemas` writes the JSON Schema files; `--check` fails where they differ from the models."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from schemas.audit import AuditRun, AuditStretch
from schemas.base import Record
from schemas.checkpoint import PlanState, VoiceHeader
from schemas.dataset import DatasetManifest
from schemas.sample import SampleInfo
from schemas.shards import ShardManifest
from schemas.utterance import Drop, Utterance

DESCRIBED: dict[str, type[Record]] = {
    "utterance": Utterance,
    "drop": Drop,
    "dataset": DatasetManifest,
    "shards": ShardManifest,
    "sample": SampleInfo,
    "voice": VoiceHeader,
    "plan-state": PlanState,
    "audit-run": AuditRun,
    "audit-stretch": AuditStretch,
}
FOLDER = Path(__file__).parent / "json"


def generated() -> dict[Path, bytes]:
    """Content of each JSON Schema file, by its path."""
    return {
        FOLDER / f"{name}.v1.json": (
            json.dumps(model.model_json_schema(), ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        ).encode()
        for name, model in DESCRIBED.items()
    }


def main(arguments: list[str]) -> int:
    """Writes the files, or with `--check` only compares them."""
    wanted = generated()
    if arguments == ["--check"]:
        differing = [path.name for path, content in wanted.items() if not path.exists() or path.read_bytes() != content]
        differing += [path.name for path in FOLDER.glob("*.json") if path not in wanted]
        if differing:
            sys.stderr.write(
                f"error: {', '.join(sorted(differing))} differ from the models\nnext: python -m schemas, and commit\n"
            )
        return 1 if differing else 0
    FOLDER.mkdir(exist_ok=True)
    for path, content in wanted.items():
        path.write_bytes(content)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
