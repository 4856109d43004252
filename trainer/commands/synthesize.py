"""`trainer synthesize`: text to a WAV file."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from pathlib import Path

import soundfile

from dataprep.shards.atomic import write_atomic
from schemas.errors import TextError, UsageError
from schemas.units import samples_to_seconds
from trainer.synth.voice import Voice

_WARM_UP = "Hi."
"""Spoken before the time is taken: the first call of a process imports the front end and the vocoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """What was written."""

    seconds: float
    """Length of the sound."""
    computing_seconds: float
    """Time it took to compute, without loading."""
    speaker: str
    """Who spoke."""
    num_speakers: int
    """How many speakers the checkpoint has."""
    languages: tuple[str, ...]
    """Those it was trained on."""
    unheard_languages: tuple[str, ...]
    """Those of the text that are not among them."""

    @property
    def real_time_factor(self) -> float:
        """Seconds of computing for a second of sound."""
        return self.computing_seconds / self.seconds


def synthesize(
    checkpoint: Path, text: str, speaker: str | None, num_steps: int, seed: int, length_scale: float, out: Path
) -> Spoken:
    """Speaks `text` into `out`, a 16-bit WAV file that is either whole or as it was.

    Raises:
        UsageError: `out` is no WAV file, nothing in the text can be spoken, or as `Voice.load` and `Voice.say`.
        FormatError, IdentityError: as `Voice.load`.
        OSError: it cannot be written.
    """
    if out.suffix.lower() != ".wav":
        raise UsageError("only WAV is written", hint=f"give --out {out.with_suffix('.wav')}", path=out)
    voice = Voice.load(checkpoint)
    try:
        unheard = voice.unheard_languages(text)
        voice.say(_WARM_UP, speaker, num_steps=1)
        began = time.perf_counter()
        samples, sample_rate = voice.say(text, speaker, num_steps=num_steps, seed=seed, length_scale=length_scale)
        took = time.perf_counter() - began
    except TextError as error:
        raise UsageError(error.message, hint="give --text something to say in Mandarin, English or both") from error
    content = io.BytesIO()
    soundfile.write(content, samples, sample_rate, format="WAV", subtype="PCM_16")
    write_atomic(out, content.getvalue())
    return Spoken(
        seconds=samples_to_seconds(len(samples), sample_rate),
        computing_seconds=took,
        speaker=voice.header.speakers[voice.speaker_number(speaker)],
        num_speakers=len(voice.header.speakers),
        languages=voice.header.languages,
        unheard_languages=unheard,
    )
