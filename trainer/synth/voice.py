"""`Voice`: a checkpoint that speaks. Text -> symbols -> log-mel -> wave, and no other file is needed."""

from __future__ import annotations

import difflib
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dataprep import text as front_end
from schemas.checkpoint import VoiceHeader
from schemas.errors import UsageError
from trainer.model.acoustic import DEFAULT_TEMPERATURE, AcousticModel
from trainer.synth.checkpoint import find_checkpoint, read_checkpoint, restore
from trainer.synth.vocoder import GriffinLim, Vocoder

MAX_STEPS, MAX_SEED = 1000, 2**63 - 1
LENGTH_SCALES = (0.1, 10.0)
"""Factors on durations, of the fastest and the slowest speech that is still speech."""
MANY_SPEAKERS = 20
"""A message lists this many speakers at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """A trained model with what it needs to speak."""

    header: VoiceHeader
    """Symbols, speakers and mel settings."""
    model: AcousticModel
    """The model with its averaged weights, in evaluation mode."""
    vocoder: Vocoder
    """Turns its mels into samples."""

    @classmethod
    def load(cls, path: Path, *, vocoder: Vocoder | None = None, device: str = "cpu") -> Voice:
        """Loads from a checkpoint, or from a run's folder its last one.

        Args:
            path: a .ckpt file or a folder that `trainer fit` made.
            vocoder: Griffin-Lim where none is given.
            device: where the model computes.

        Raises:
            UsageError: there is no checkpoint.
            FormatError: it is damaged or of another version.
            IdentityError: it was trained with other symbols than the text front end of this version writes.
        """
        path = find_checkpoint(path)
        header, model = restore(read_checkpoint(path), path)
        header.symbols.require_same(front_end.SYMBOLS, f"checkpoint {path}", "the text front end")
        if header.text_frontend != front_end.FRONTEND_VERSION:
            warnings.warn(
                f"checkpoint {path} learnt from text front end {header.text_frontend}, this version has "
                f"{front_end.FRONTEND_VERSION}: some texts may be read in another way than in training",
                stacklevel=2,
            )
        return cls(header=header, model=model.to(device), vocoder=vocoder or GriffinLim(header.feature_spec))

    def say(
        self,
        text: str,
        speaker: str | None = None,
        *,
        num_steps: int = 10,
        seed: int = 0,
        length_scale: float = 1.0,
        temperature: float = DEFAULT_TEMPERATURE,
    ) -> tuple[NDArray[np.float32], int]:
        """Speaks.

        Args:
            text: Mandarin, English or both.
            speaker: a speaker's name; the first one by default.
            num_steps: steps of the flow; more are finer and slower.
            seed: of the flow's noise; the same seed gives the same samples on one machine.
            length_scale: factor on all durations; above 1 is slower.
            temperature: factor on the flow's noise; below 1 is smoother.

        Returns:
            samples float32 [num_samples], full scale 1.0, and their rate in hertz.

        Raises:
            UsageError: unknown speaker, or a number that makes no sense.
            TextError: nothing in the text can be spoken.
        """
        _require_sensible(num_steps=num_steps, seed=seed, length_scale=length_scale, temperature=temperature)
        number = self.speaker_number(speaker)
        symbol_ids = torch.tensor(front_end.phonemize(text).ids, dtype=torch.int64)
        log_mel = self.model.infer(
            symbol_ids, number, num_steps, torch.Generator().manual_seed(seed), length_scale, temperature=temperature
        )
        return self.vocoder(log_mel.float().cpu().numpy()), self.header.feature_spec.sample_rate

    def speaker_number(self, speaker: str | None) -> int:
        """Number of a speaker; the first where none is named.

        Raises:
            UsageError: no such speaker; the hint lists those there are.
        """
        speakers = self.header.speakers
        if speaker is None:
            return 0
        if speaker in speakers:
            return speakers.index(speaker)
        nearest = difflib.get_close_matches(speaker, speakers, n=1)
        meant = f"did you mean {nearest[0]}? " if nearest else ""
        more = f" and {len(speakers) - MANY_SPEAKERS} more" if len(speakers) > MANY_SPEAKERS else ""
        raise UsageError(
            f"no speaker {speaker!r} in this checkpoint",
            hint=f"{meant}the speakers are: {', '.join(sorted(speakers, key=_natural)[:MANY_SPEAKERS])}{more}",
        )

    def unheard_languages(self, text: str) -> tuple[str, ...]:
        """Languages of a text that the voice was not trained on, `zh` or `en`. Raises TextError as `say`."""
        return tuple(sorted(_spoken(front_end.phonemize(text).language) - _spoken(*self.header.languages)))


def _spoken(*languages: str) -> set[str]:
    return {part for language in languages for part in (("en", "zh") if language == "mixed" else (language,))}


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts s2 before s10."""
    return [(int(digits or -1), letters) for digits, letters in re.findall(r"(\d+)|(\D+)", name)]


def _require_sensible(**numbers: float) -> None:
    """Raises UsageError that names every number outside its range; NaN is outside every one."""
    ranges = {
        "num_steps": (1, MAX_STEPS), "seed": (0, MAX_SEED), "length_scale": LENGTH_SCALES, "temperature": (0, 10)
    }  # fmt: skip
    wrong = [
        f"{name} = {numbers[name]} must be from {low} to {high}"
        for name, (low, high) in ranges.items()
        if not low <= numbers[name] <= high
    ]
    if wrong:
        raise UsageError(
            "; ".join(wrong), hint=f"usual are num_steps 10, length_scale 1.0 and temperature {DEFAULT_TEMPERATURE}"
        )
