"""Decodes with FFmpeg (PyAV) what libsndfile cannot open: AAC and ALAC in MP4, Opus in WebM, WavPack, GSM and more."""

from __future__ import annotations

import io
from collections.abc import Iterator

import av
import numpy as np

from dataprep.audio.mono import ChannelMix
from dataprep.audio.promise import check_length, check_whole
from dataprep.audio.recognise import FETCH_AGAIN
from dataprep.audio.waveform import Waveform
from schemas.errors import AudioError

# Only containers of sound: play lists and `concat` scripts, which name other files and addresses, are never followed.
CONTAINERS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,ogg,wav,w64,aiff,au,caf,flac,mp3,aac,loas,latm,wv,ape,tta,tak,asf,avi,flv,"
    "mpegts,mpeg,ac3,eac3,amr,amrnb,amrwb,gsm,dsf"
)
AV_TIME_BASE = 1_000_000
"""FFmpeg states a container's length in microseconds."""
STATING_LENGTH = frozenset({"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm", "wv", "ape", "tta", "flac", "wav", "caf"})
"""Containers whose length is stated in them; that of the others is FFmpeg's guess from the bit rate."""


def decode_with_av(content: bytes, name: str) -> Waveform | None:
    """Decodes the first audio stream and averages its channels; None where FFmpeg finds no sound it knows.

    Raises:
        AudioError: damaged, cut short, too long, or its sample rate or channels change on the way.
    """
    try:
        container = av.open(
            io.BytesIO(content), mode="r", metadata_errors="replace", options={"format_whitelist": CONTAINERS}
        )
    except av.FFmpegError:
        return None
    with container:
        if not container.streams.audio:
            return None
        stream = container.streams.audio[0]
        mix = ChannelMix()
        # The rate is that of the frames: with HE-AAC the header states half of it.
        sample_rate = 0
        try:
            for frame in _float_frames(container, stream):
                sample_rate = frame.sample_rate
                mix.add(frame.to_ndarray().T.astype(np.float32, copy=False))
                check_length(mix.num_samples, name)
        except (av.FFmpegError, ValueError) as error:
            raise _damaged(mix.num_samples, sample_rate, error, name) from error
        if not sample_rate:
            return None
        if container.format.name in STATING_LENGTH:
            check_whole(_promised_samples(container, stream, sample_rate), mix.num_samples, sample_rate, name)
        return Waveform(samples=mix.samples(), sample_rate=sample_rate, clipped_share=mix.clipped_share())


def _float_frames(container: av.container.InputContainer, stream: av.AudioStream) -> Iterator[av.AudioFrame]:
    """Decoded frames as planar float32 at their own rate and channels; ValueError where these change on the way."""
    to_float = av.AudioResampler(format="fltp")
    for frame in container.decode(stream):
        yield from to_float.resample(frame)


def _promised_samples(container: av.container.InputContainer, stream: av.AudioStream, sample_rate: int) -> int:
    if stream.duration is not None and stream.time_base is not None:
        return round(stream.duration * stream.time_base * sample_rate)
    return 0 if container.duration is None else container.duration * sample_rate // AV_TIME_BASE


def _damaged(num_samples: int, sample_rate: int, error: Exception, name: str) -> AudioError:
    after_seconds = num_samples / sample_rate if sample_rate else 0.0
    reason = error.strerror if isinstance(error, av.FFmpegError) else str(error)
    return AudioError(f"is damaged or cut off after {after_seconds:.2f} s: {reason}", hint=FETCH_AGAIN, path=name)
