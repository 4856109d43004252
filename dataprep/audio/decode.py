"""From the bytes of a recording to one channel of float32.

What a file is, is decided by its content, never by its name. libsndfile is asked first (WAV, FLAC, Ogg, MP3, AIFF, AU
and more); FFmpeg (`av_decode`) opens what it cannot. Recordings of at most 16 bits are read as int16 and averaged from
there, exactly: a seventh of the time of having libsndfile convert each channel to float32.
"""

from __future__ import annotations

import io

import numpy as np
import soundfile
from numpy.typing import NDArray

from dataprep.audio.av_decode import decode_with_av
from dataprep.audio.mono import ChannelMix
from dataprep.audio.promise import check_length, check_whole, is_cut_ogg, promised_samples
from dataprep.audio.recognise import FETCH_AGAIN, recognise
from dataprep.audio.waveform import Waveform
from schemas.errors import AudioError, NonFiniteError

MIN_SAMPLE_RATE, MAX_SAMPLE_RATE = 4_000, 384_000
MAX_PEAK = 64.0
"""36 dB above full scale, which no recording needs: beyond it lie damaged files and integers stored as floats."""
MALFORMED = 3
"""libsndfile's code for a format it knows in a file that is damaged."""
BLOCK_SAMPLES = 1 << 18
"""Samples, over all channels, read at once: 0.10 ms per second of 48 kHz stereo against 0.14 when read whole, and a
header that lies costs no more memory than this."""
INT16_SUBTYPES = frozenset({"PCM_16", "PCM_S8", "PCM_U8", "ULAW", "ALAW"})
"""Encodings that 16 bits hold exactly."""


def decode_mono(content: bytes, name: str) -> Waveform:
    """Decodes a whole recording and averages its channels.

    Args:
        content: the file.
        name: what messages call it; it decides nothing.

    Raises:
        AudioError: not a recording, damaged, cut short (fewer samples than its header promises), without samples,
            longer than `promise.MAX_SAMPLES`, far beyond full scale, or at a rate outside 4,000 to 384,000 Hz.
        NonFiniteError: an AudioError; it holds NaN or infinity.
    """
    waveform = _with_soundfile(content, name)
    if waveform is None or not len(waveform.samples):  # a WAV stream whose stated length stayed 0 may hold samples
        waveform = decode_with_av(content, name) or waveform
    if waveform is None:
        finding = recognise(content)
        raise AudioError(f"is {finding.what}", hint=finding.hint, path=name)
    _check_rate(waveform.sample_rate, name)
    if not len(waveform.samples):
        raise AudioError(f"has a header but no samples ({len(content)} bytes)", hint=FETCH_AGAIN, path=name)
    _check_values(waveform.samples, name)
    return waveform


def _with_soundfile(content: bytes, name: str) -> Waveform | None:
    """None where libsndfile does not know it."""
    try:
        file = soundfile.SoundFile(_Content(content))
    except soundfile.LibsndfileError as error:
        if error.code == MALFORMED:  # FFmpeg would give what is left of a cut CAF or Opus file
            raise _damaged(error, name) from error
        return None
    with file:
        _check_rate(file.samplerate, name)
        promised = promised_samples(file.frames, file.extra_info, content)
        check_length(promised, name)
        mix = _read(file, name)
        check_whole(promised, mix.num_samples, file.samplerate, name)
        if is_cut_ogg(file.extra_info):
            raise AudioError(
                f"is cut short: its last page ends in the middle, after {mix.num_samples / file.samplerate:.2f} s",
                hint=FETCH_AGAIN,
                path=name,
            )
        return Waveform(samples=mix.samples(), sample_rate=file.samplerate, clipped_share=mix.clipped_share())


class _Content(io.BytesIO):
    """Bytes in which a seek before the beginning, as damaged headers ask for, stays where it is.

    libsndfile sees from the place returned that it failed; an exception here would be printed with its traceback.
    """

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        try:
            return super().seek(offset, whence)
        except ValueError:
            return self.tell()


def _read(file: soundfile.SoundFile, name: str) -> ChannelMix:
    dtype = "int16" if file.subtype in INT16_SUBTYPES else "float32"
    mix = ChannelMix()
    block_samples = max(1, BLOCK_SAMPLES // file.channels)
    while mix.num_samples < file.frames:
        wanted = min(block_samples, file.frames - mix.num_samples)
        try:
            block: NDArray[np.int16] | NDArray[np.float32] = file.read(wanted, dtype=dtype, always_2d=True)
        except soundfile.LibsndfileError as error:
            raise _damaged(error, name) from error
        mix.add(block)
        if len(block) < wanted:
            break
    return mix


def _damaged(error: soundfile.LibsndfileError, name: str) -> AudioError:
    reason = error.error_string.removeprefix("Error : ").strip().rstrip(".")
    return AudioError(f"is damaged: {reason}", hint=FETCH_AGAIN, path=name)


def _check_rate(sample_rate: int, name: str) -> None:
    if not MIN_SAMPLE_RATE <= sample_rate <= MAX_SAMPLE_RATE:
        raise AudioError(
            f"its header states {sample_rate} samples per second; {MIN_SAMPLE_RATE} to {MAX_SAMPLE_RATE} are possible",
            hint="the header is damaged, or the recording is unfit for speech: export it again",
            path=name,
        )


def _check_values(samples: NDArray[np.float32], name: str) -> None:
    peak = max(float(samples.max()), -float(samples.min()))  # NaN stays NaN
    if not np.isfinite(peak):
        num_bad = int(np.count_nonzero(~np.isfinite(samples)))
        raise NonFiniteError(
            f"{num_bad} of {len(samples)} samples are NaN or infinite; all must be finite",
            hint="export the recording again from the program that made it",
            path=name,
        )
    if peak > MAX_PEAK:
        raise AudioError(
            f"its largest sample is {peak:.4g} times full scale; at most {MAX_PEAK:.0f} is plausible",
            hint="it seems to hold integers as floating point: divide them by 32768, or export it as 16-bit",
            path=name,
        )
