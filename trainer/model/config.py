"""`ModelConfig`: the sizes of the acoustic model, as plain values that a checkpoint can carry."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

from schemas.errors import FormatError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Sizes and settings of `AcousticModel`. The defaults are those of `TINY`.

    Raises:
        UsageError: values that cannot be built; the message names all of them.
    """

    encoder_channels: int = 192
    """Width of the encoder."""
    encoder_blocks: int = 4
    """Blocks of the encoder."""
    decoder_channels: int = 192
    """Width of the decoder, which computes the velocity of the flow."""
    decoder_blocks: int = 8
    """Blocks of the decoder."""
    kernel_size: int = 3
    """Taps of every convolution of the blocks; odd."""
    attention_heads: int = 0
    """Heads of the self-attention that follows the convolutions of each block; 0 leaves attention out."""
    feed_forward_channels: int = 0
    """Width of the feed-forward layer beside the attention; 0 where there is no attention."""
    duration_channels: int = 128
    """Width of the duration predictor."""
    speaker_channels: int = 64
    """Width of a speaker's embedding."""
    condition_channels: int = 128
    """Width of the joint embedding of time and speaker that steers the decoder's blocks."""
    dropout: float = 0.0
    """Share of activations dropped in the blocks of the encoder and the decoder while training."""
    duration_dropout: float = 0.1
    """Share of activations dropped in the duration predictor while training."""
    sigma_min: float = 1e-4
    """Standard deviation of the noise that is left at the end of the flow's path."""
    crop_frames: int = 0
    """Frames of each utterance that the decoder trains on, from a random start; 0 takes the whole utterance."""
    guidance_dropout: float = 0.0
    """Share of utterances whose flow is trained without text and speaker, which guidance at synthesis needs."""
    guidance_strength: float = 0.0
    """How far synthesis moves away from the flow without text and speaker; 0 is plain sampling at half the cost."""

    def __post_init__(self) -> None:
        wrong = [f"{name} = {getattr(self, name)!r} must be {allowed}" for name, allowed in self._violations()]
        if wrong:
            raise UsageError("model: " + "; ".join(wrong), hint="start from one of the sizes in trainer/configs")

    def _violations(self) -> list[tuple[str, str]]:
        sizes = ("encoder_channels", "encoder_blocks", "decoder_channels", "decoder_blocks", "duration_channels")
        found = [(name, "at least 1") for name in (*sizes, "speaker_channels") if getattr(self, name) < 1]
        if self.kernel_size < 1 or self.kernel_size % 2 == 0:
            found.append(("kernel_size", "odd and positive"))
        if self.condition_channels < 2 or self.condition_channels % 2:
            found.append(("condition_channels", "even and positive"))
        for name in ("attention_heads", "feed_forward_channels", "crop_frames", "guidance_strength", "sigma_min"):
            if not 0 <= getattr(self, name) < math.inf:
                found.append((name, "at least 0"))
        for name in ("dropout", "duration_dropout", "guidance_dropout"):
            if not 0 <= getattr(self, name) < 1:
                found.append((name, "from 0 to below 1"))
        if self.guidance_strength > 0 and self.guidance_dropout == 0:
            found.append(("guidance_strength", "0 where guidance_dropout is 0"))
        if self.attention_heads > 0:
            if self.feed_forward_channels == 0:
                found.append(("feed_forward_channels", "positive where there is attention"))
            for name in ("encoder_channels", "decoder_channels"):
                # rotary positions turn pairs of channels within a head
                if getattr(self, name) % (2 * self.attention_heads):
                    found.append((name, f"a multiple of {2 * self.attention_heads} (two times attention_heads)"))
        return found

    def to_dict(self) -> dict[str, int | float]:
        """The values by name, as a checkpoint stores them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> ModelConfig:
        """Reads what `to_dict` gave.

        Raises:
            FormatError: a field is unknown, missing, or not a number.
            UsageError: as the constructor.
        """
        fields = {field.name: field.type for field in dataclasses.fields(cls)}
        differing = sorted(fields.keys() ^ values.keys())
        if differing:
            raise FormatError(
                f"model configuration: fields {', '.join(differing)} are unknown or missing",
                hint="use the version of voxloom that wrote the checkpoint",
            )
        numbers: dict[str, int | float] = {}
        for name, value in values.items():
            whole = fields[name] == "int"
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                raise FormatError(
                    f"model configuration: {name} is {value!r}, not {'a whole' if whole else 'a'} number",
                    hint="use the version of voxloom that wrote the checkpoint",
                )
            numbers[name] = value
        return cls(**numbers)  # type: ignore[arg-type]  # each was checked against its field just above


TINY = ModelConfig()
"""About 3 M parameters of plain convolutions: learns spoken digits in minutes on two CPU cores."""

BASE = ModelConfig(
    encoder_channels=256,
    encoder_blocks=4,
    decoder_channels=256,
    decoder_blocks=9,
    attention_heads=4,
    feed_forward_channels=1024,
    duration_channels=256,
    condition_channels=256,
    dropout=0.1,
    guidance_dropout=0.2,
    guidance_strength=0.7,
)
"""About 18 M parameters, the size of Matcha-TTS, for hours of speech on a GPU."""
