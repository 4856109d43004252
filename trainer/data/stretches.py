"""Files of an audit: which places of an epoch's plan one rank computed between two checkpoints."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dataprep.shards.atomic import write_atomic
from schemas.audit import AuditStretch
from schemas.errors import FormatError

AUDIT_FOLDER = "audit"
"""Folder of these files, in that of a run."""
RUN_NAME = "run.json"
"""Name of the `AuditRun` among them."""


def stretch_name(header: AuditStretch) -> str:
    """Name of the file of a stretch; sorted by name, they are in the order of training."""
    return (
        f"epoch-{header.epoch:05d}-groups-{header.first_group:08d}-{header.end_group:08d}"
        f"-rank-{header.rank:05d}-of-{header.world_size:05d}.bits"
    )


def write_stretch(folder: Path, header: AuditStretch, computed: NDArray[np.bool_]) -> Path:
    """Writes a stretch atomically; `computed` bool `[num_places]`. Returns its path."""
    path = folder / stretch_name(header)
    write_atomic(path, header.canonical_json() + b"\n" + zlib.compress(np.packbits(computed).tobytes()))
    return path


def read_stretch(path: Path) -> tuple[AuditStretch, NDArray[np.bool_]]:
    """The header and what was computed, bool `[num_places]`.

    Raises:
        FormatError: not such a file, or a damaged one.
    """
    line, _, bits = path.read_bytes().partition(b"\n")
    hint = "the audit cannot vouch for these steps"
    try:
        content = json.loads(line)
        packed = np.frombuffer(zlib.decompress(bits), np.uint8)
    except (ValueError, zlib.error) as error:
        raise FormatError(f"is damaged: {error}", hint=hint, path=path) from error
    header = AuditStretch.from_content(content, path)
    if len(packed) != -(-header.num_places // 8):
        raise FormatError(f"holds {len(packed)} bytes for {header.num_places} places", hint=hint, path=path)
    if not all(0 <= place < header.num_places for place in (*header.repeated, *header.unreadable)):
        raise FormatError(f"names a place that is none of the {header.num_places}", hint=hint, path=path)
    return header, np.unpackbits(packed, count=header.num_places).astype(bool)
