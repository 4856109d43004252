"""Recording and text to a clean utterance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dataprep.audio import Waveform, decode_mono, encode_flac, find_speech, measure, resample
from dataprep.steps.split import choose_split
from dataprep.text import phonemize
from schemas.dataset import IngestConfig
from schemas.errors import AudioError, LanguageError, NonFiniteError, TextError, VoxloomError
from schemas.units import samples_to_seconds
from schemas.utterance import Drop, DropReason, Utterance


@dataclass(frozen=True, slots=True, kw_only=True)
class RawUtterance:
    """What the source says of an utterance; `path` as the source names it."""

    id: str
    path: str
    text: str
    speaker: str
    source_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A text as it is spoken; `language` is 'other' and the symbols are none where it is kept without phonemes."""

    symbols: tuple[str, ...]
    ids: tuple[int, ...]
    normalized_text: str
    language: str
    warnings: tuple[str, ...]


class UnusableError(Exception):
    """Ends the preparation of one utterance; becomes its `Drop`."""

    def __init__(self, reason: DropReason, message: str, value: str = "", limit: str = "") -> None:
        super().__init__(message)
        self.reason, self.message, self.value, self.limit = reason, message, value, limit


def prepare(raw: RawUtterance, content: bytes, config: IngestConfig) -> Utterance | Drop:
    """Text to phonemes; bytes of the recording to trimmed mono at the wanted rate, as FLAC.

    Text comes first: it costs a hundredth of the audio, and a row without usable text needs no decoding.
    """
    try:
        spoken = speak(raw, config)
        wave = decode(content, raw.path)
        cleaned, start_seconds, end_seconds = clean(wave, config)
        check_length(len(cleaned), config)
    except UnusableError as unusable:
        return Drop(
            id=raw.id,
            path=raw.path,
            reason=unusable.reason,
            value=unusable.value,
            limit=unusable.limit,
            message=unusable.message,
        )
    flac = encode_flac(cleaned, config.sample_rate)
    return Utterance(
        id=raw.id,
        path=raw.path,
        text=raw.text,
        normalized_text=spoken.normalized_text,
        language=spoken.language,
        phonemes=spoken.symbols,
        phoneme_ids=spoken.ids,
        warnings=spoken.warnings,
        speaker=raw.speaker,
        split=choose_split(raw.id if config.split_by == "id" else raw.speaker, config.split_shares),
        sample_rate=config.sample_rate,
        num_samples=len(cleaned),
        trim_start_seconds=start_seconds,
        trim_end_seconds=end_seconds,
        source_sha256=raw.source_sha256,
        measures=measure(cleaned, wave.clipped_share),
        num_audio_bytes=len(flac),
        audio=flac,
    )


def speak(raw: RawUtterance, config: IngestConfig) -> Spoken:
    """Phonemes of the text, or empty ones by `--no-phonemes`. Raises UnusableError."""
    try:
        found = phonemize(raw.text)
    except TextError as error:
        if not config.phonemes:
            return Spoken(symbols=(), ids=(), normalized_text=raw.text, language="other", warnings=("no_phonemes",))
        reason = DropReason.UNSUPPORTED_LANGUAGE if isinstance(error, LanguageError) else DropReason.UNPRONOUNCEABLE
        raise UnusableError(reason, sentence(error), value=raw.text[:200]) from error
    return Spoken(
        symbols=found.symbols,
        ids=found.ids,
        normalized_text=found.normalized_text,
        language=found.language,
        warnings=found.warnings,
    )


def decode(content: bytes, name: str) -> Waveform:
    """The recording as mono samples. Raises UnusableError."""
    try:
        return decode_mono(content, name)
    except NonFiniteError as error:
        raise UnusableError(DropReason.NOT_FINITE, sentence(error)) from error
    except AudioError as error:
        raise UnusableError(DropReason.UNREADABLE_AUDIO, sentence(error)) from error


def clean(wave: Waveform, config: IngestConfig) -> tuple[NDArray[np.float32], float, float]:
    """Trims and resamples to float32 `[num_samples]`; also the seconds removed at each end. Raises UnusableError."""
    num_samples, rate = len(wave.samples), wave.sample_rate
    start, end = find_speech(wave.samples, rate, config.trim_top_db, config.trim_margin_seconds)
    if end == 0:
        message = "the recording is silent from end to end (no frame above -80 dBFS); record it again"
        raise UnusableError(DropReason.SILENT, message)
    if not config.trim:
        start, end = 0, num_samples
    cleaned = resample(wave.samples[start:end], rate, config.sample_rate)
    return cleaned, samples_to_seconds(start, rate), samples_to_seconds(num_samples - end, rate)


def check_length(num_samples: int, config: IngestConfig) -> None:
    """Raises UnusableError where the cleaned recording is shorter or longer than allowed."""
    seconds = samples_to_seconds(num_samples, config.sample_rate)
    if num_samples == 0 or seconds < config.min_duration_seconds:
        limit = f"{config.min_duration_seconds:g} s"
        message = (
            f"{seconds:.3f} s are left after trimming, at least {limit} are wanted; see --min-duration and --no-trim"
        )
        raise UnusableError(DropReason.TOO_SHORT, message, f"{seconds:.3f} s", limit)
    if seconds > config.max_duration_seconds:
        limit = f"{config.max_duration_seconds:g} s"
        message = f"it lasts {seconds:.3f} s, at most {limit} are wanted; cut it into sentences or see --max-duration"
        raise UnusableError(DropReason.TOO_LONG, message, f"{seconds:.3f} s", limit)


def sentence(error: VoxloomError) -> str:
    """Message and hint as one line."""
    return error.message + (f"; {error.hint}" if error.hint else "")
