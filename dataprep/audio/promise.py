"""Compares what a header promises with what was read, so that half a recording is never taken for a whole one.

libsndfile shortens a cut file in silence, but its log says what the header stated. The wording read here is that of
libsndfile 1.0.28 to 1.2.2; tests hold it for each container. What cannot be noticed: an MP3 without a Xing or VBRI
header that is cut (nothing states its length), and cuts in the old formats AVR, IRCAM, PAF, PVF and VOC.
"""

from __future__ import annotations

import re
import struct

from dataprep.audio.recognise import FETCH_AGAIN
from schemas.errors import AudioError

MAX_SAMPLES = 1 << 27
"""Longest recording, per channel (46 minutes at 48 kHz): 512 MiB of float32. A header may promise any number."""
SLACK_SECONDS = 0.1
"""Lossy codecs count their padding differently by up to two blocks (254 samples in a sound MP3 at 44.1 kHz)."""
SLACK_SHARE = 0.1
STREAM_BYTES = 0x7FFF0000
"""Programs that write to a pipe state a size near 2 or 4 GiB (sox, ffmpeg): it promises nothing."""

# "data : 77728 (should be 38842)" in WAV and RIFX, SSND in AIFF, Data Size in AU, riff in W64.
STATED_BYTES = re.compile(r"^ *(?:data|SSND|Data Size|riff) *: (\d+) \(should be (\d+)\)", re.MULTILINE)
STATED_FRAMES = re.compile(r"does not match value from 'ds64' chunk of (\d+)")
OGG_NO_END = re.compile(r"lacks an end-of-stream bit|without an End-Of-Stream flag")
OGG_HALF_PAGE = "Junk after the last page"
NIST_FRAMES = re.compile(rb"^sample_count -i (\d+)", re.MULTILINE)


def check_whole(promised_samples: int, num_samples: int, sample_rate: int, name: str) -> None:
    """Refuses a recording that lacks more than `SLACK_SECONDS`, or `SLACK_SHARE`, of the promised samples per channel.

    Raises:
        AudioError: it is cut short.
    """
    missing = promised_samples - num_samples
    if missing > SLACK_SECONDS * sample_rate or missing > SLACK_SHARE * promised_samples:
        raise AudioError(
            f"is cut short: {num_samples / sample_rate:.2f} s of the {promised_samples / sample_rate:.2f} s "
            "that its header promises",
            hint=FETCH_AGAIN,
            path=name,
        )


def check_length(num_samples: int, name: str) -> None:
    """Refuses more than `MAX_SAMPLES` per channel. Raises AudioError."""
    if num_samples > MAX_SAMPLES:
        raise AudioError(
            f"has, or promises, {num_samples} samples; at most {MAX_SAMPLES} are read",
            hint="cut it into utterances first",
            path=name,
        )


def promised_samples(num_frames: int, log: str, content: bytes) -> int:
    """Samples per channel that the header of a file promises.

    Args:
        num_frames: length that libsndfile reports, already shortened to the bytes that are there.
        log: libsndfile's log of opening the file.
        content: the file.
    """
    if stated := STATED_FRAMES.search(log):
        return int(stated[1])
    if content.startswith(b"NIST_1A") and (counted := NIST_FRAMES.search(content[:1024])):
        return int(counted[1])
    if (stated := STATED_BYTES.search(log)) and 0 < int(stated[2]) < int(stated[1]) < STREAM_BYTES:
        return num_frames * int(stated[1]) // int(stated[2])
    return _vbri_samples(content) or num_frames


def is_cut_ogg(log: str) -> bool:
    """Whether libsndfile met an Ogg stream whose last page is not whole and not marked as the last."""
    return OGG_HALF_PAGE in log and OGG_NO_END.search(log) is not None


def _vbri_samples(content: bytes) -> int:
    """Samples that an MP3 header of Fraunhofer's kind states (VBRI, 32 bytes after the first frame header), else 0."""
    place = content.find(b"VBRI", 0, 4096)
    first = place - 36
    if first < 0 or content[first] != 0xFF or len(content) < place + 18:
        return 0
    is_mpeg1 = content[first + 1] & 0x18 == 0x18
    return int(struct.unpack_from(">I", content, place + 14)[0]) * (1152 if is_mpeg1 else 576)
