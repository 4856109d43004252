"""The random numbers of a training step, drawn utterance by utterance from one generator.

Each utterance takes as many numbers as it has frames, whatever it is padded to, so a batch padded more, or split in
two in the same order, draws the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """What chance decides for each of B utterances."""

    times: Tensor
    """Where on the flow's path, float32 [B], uniform from 0 to 1."""
    keep_text: Tensor
    """False where the flow is trained without text and speaker, bool [B]."""
    starts: Tensor
    """First frame of the window that the decoder trains on, int64 [B]."""
    lengths: Tensor
    """Frames of that window, int64 [B]."""
    noise: Tensor
    """Standard normal numbers, float32 [B, M, longest window], zero beyond each row's window."""


def draw(
    mel_lengths: Tensor, num_mels: int, crop_frames: int, guidance_dropout: float, generator: torch.Generator
) -> Draws:
    """Draws on the generator's device, and puts the result on that of `mel_lengths` int64 [B]."""
    source, target = generator.device, mel_lengths.device
    frames = [int(length) for length in mel_lengths.tolist()]
    windows = [min(length, crop_frames) if crop_frames else length for length in frames]
    noise = torch.zeros((len(frames), num_mels, max(windows)), device=source)
    chances = torch.empty((len(frames), 3), device=source)
    for row, window in enumerate(windows):
        chances[row] = torch.rand(3, generator=generator, device=source)
        noise[row, :, :window] = torch.randn((num_mels, window), generator=generator, device=source)
    chances = chances.to(target)
    lengths = torch.tensor(windows, device=target)
    return Draws(
        times=chances[:, 0],
        keep_text=chances[:, 1] >= guidance_dropout,
        starts=(chances[:, 2] * (mel_lengths - lengths + 1)).to(torch.int64),
        lengths=lengths,
        noise=noise.to(target),
    )


def window(frames: Tensor, draws: Draws) -> Tensor:
    """Cuts each row's window out of [B, C, T]; beyond a row's window follow frames that the caller must mask."""
    offsets = torch.arange(draws.noise.shape[2], device=frames.device)
    places = (draws.starts[:, None] + offsets).clamp(max=frames.shape[2] - 1)
    return frames.gather(2, places[:, None].expand(-1, frames.shape[1], -1))
