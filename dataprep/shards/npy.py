"""A mel spectrogram as the bytes of a `.npy` file, and back without a parser for the header we write ourselves."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.errors import FormatError
from schemas.shards import MelDtype

NPY_HEADER_BYTES = 128
"""Length of the version 1.0 header for two dimensions of up to 20 digits; numpy pads it to a multiple of 64."""


def npy_size(num_mels: int, num_frames: int, dtype: MelDtype) -> int:
    """Bytes of the `.npy` file of a mel `[num_mels, num_frames]`; none where it is not stored."""
    if dtype == "none":
        return 0
    return NPY_HEADER_BYTES + num_mels * num_frames * np.dtype(dtype).itemsize


def encode_npy(mel: NDArray[np.float32], dtype: MelDtype) -> bytes:
    """The `.npy` bytes (version 1.0, C order) of `mel` `[num_mels, num_frames]` in `dtype`."""
    buffer = io.BytesIO()
    np.lib.format.write_array(
        buffer, np.ascontiguousarray(mel, dtype=np.dtype(dtype).newbyteorder("<")), version=(1, 0)
    )
    content = buffer.getvalue()
    assert len(content) == npy_size(mel.shape[0], mel.shape[1], dtype)
    return content


def encode_mel(mel: NDArray[np.float32], dtype: MelDtype) -> bytes:
    """The numbers of `mel` `[num_mels, num_frames]` in `dtype`, little-endian, C order."""
    return np.ascontiguousarray(mel, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()


def view_mel(
    content: bytes | memoryview, num_mels: int, num_frames: int, dtype: MelDtype, *, header_bytes: int
) -> NDArray[np.floating[Any]]:
    """The mel `[num_mels, num_frames]` in `dtype`, without a copy, of bytes with a header of known length.

    Raises:
        FormatError: the size is not what the index says.
    """
    stored = _stored(dtype)
    expected = header_bytes + num_mels * num_frames * stored.itemsize
    if len(content) != expected:
        raise FormatError(f"a mel of {num_mels} x {num_frames} {dtype} takes {expected} bytes, found {len(content)}")
    return np.ndarray((num_mels, num_frames), stored, content, header_bytes)


@cache
def _stored(dtype: MelDtype) -> np.dtype[np.floating[Any]]:
    return np.dtype(dtype).newbyteorder("<")
