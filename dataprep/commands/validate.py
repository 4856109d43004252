"""`dataprep validate`: what kind of data set is this, and does it keep its promises?"""

from __future__ import annotations

from pathlib import Path

from dataprep.engine import Workers
from dataprep.shards.prepared import DATASET_NAME
from dataprep.shards.reader import MANIFEST_NAME
from dataprep.validate.findings import Finding, Verdict
from dataprep.validate.prepared import validate_prepared
from dataprep.validate.shards import validate_shards
from schemas.errors import FormatError, UsageError


def validate(path: Path, workers: Workers) -> Verdict:
    """Validates the prepared or sharded data set at `path` (its folder or its manifest).

    Raises:
        UsageError: neither is there.
    """
    folder = path.parent if path.name in (DATASET_NAME, MANIFEST_NAME) else path
    for name, check in ((MANIFEST_NAME, validate_shards), (DATASET_NAME, validate_prepared)):
        if (folder / name).is_file():
            try:
                return check(folder, workers)
            except FormatError as error:
                file = Path(error.path or name).name
                finding = Finding(file=file, key="", message=error.message + (f"; {error.hint}" if error.hint else ""))
                return Verdict(path=str(folder), kind=name, num_files=1, num_utterances=0, findings=(finding,))
    if not folder.exists():
        raise UsageError(
            "no such folder", hint="give the folder that `dataprep ingest` or `dataprep shard` wrote", path=folder
        )
    raise UsageError(
        f"holds neither {DATASET_NAME} nor {MANIFEST_NAME}: not a finished data set",
        hint="if a run was interrupted, run the same command again: it continues",
        path=folder,
    )
