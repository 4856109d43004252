"""`AcousticModel`: symbols and a speaker in, log-mel out; encoder, alignment, durations and flow decoder joined.

Training: encode -> align the tokens' means to the mel -> spread the tokens over their frames -> learn the flow.
Speaking: encode -> predict durations -> spread -> follow the flow from noise to mel.
Mels are raw log-mels outside and normalised band by band inside.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trainer.data.batch import Batch
from trainer.model.aligner import align, log_likelihood
from trainer.model.config import ModelConfig
from trainer.model.decoder import Decoder
from trainer.model.draws import Draws, draw, window
from trainer.model.durations import DurationPredictor, whole_frames
from trainer.model.encoder import Encoder
from trainer.model.flow import Schedule, flow_target, sample_flow
from trainer.model.losses import Losses, UtteranceLosses, duration_sums, flow_sums, micro_batch_losses, prior_sums
from trainer.model.tokens import interleave_blanks, length_mask, num_tokens, spread

DEFAULT_TEMPERATURE = 0.7
"""Factor on the noise that speech starts from. A recogniser named 96, 98, 99 of 100 digits that started from 0.7 after
250, 500, 1,000 steps of training, and 90, 96, 98 of those that started from 1."""


class AcousticModel(nn.Module):
    """The whole acoustic model.

    Args:
        config: sizes.
        num_symbols: size of the symbol table.
        num_speakers: speakers.
        num_mels: mel bands.
        blank_id: symbol id that stands between the symbols; the table's padding symbol by default.
    """

    mel_mean: Tensor
    mel_std: Tensor

    def __init__(
        self, config: ModelConfig, num_symbols: int, num_speakers: int, num_mels: int, *, blank_id: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        self.num_mels = num_mels
        self.blank_id = blank_id
        self.speakers = nn.Embedding(num_speakers, config.speaker_channels)
        self.encoder = Encoder(config, num_symbols, num_mels)
        self.durations = DurationPredictor(config)
        self.decoder = Decoder(config, num_mels)
        self.register_buffer("mel_mean", torch.zeros(num_mels))
        self.register_buffer("mel_std", torch.ones(num_mels))

    def set_mel_statistics(self, mean: Sequence[float], std: Sequence[float]) -> None:
        """Sets with what mels are normalised: mean and standard deviation of each band, natural logarithm units."""
        self.mel_mean.copy_(torch.tensor(mean))
        self.mel_std.copy_(torch.tensor(std))

    def forward(self, batch: Batch, generator: torch.Generator) -> Losses:
        """Losses of a micro-batch.

        Args:
            batch: each utterance has at least `num_tokens(symbols)` frames, or its alignment means nothing.
            generator: gives the flow's times and noise and the starts of crops; dropout uses torch's own.
        """
        speaker, token_mask, hidden, means = self._encode(batch.symbol_ids, batch.symbol_lengths, batch.speakers)
        frame_mask = length_mask(batch.mel_lengths, batch.mels.shape[2])
        mels = self._normalize(batch.mels) * frame_mask
        durations = self._align(means, mels, batch)
        predicted = self.durations(hidden, token_mask, speaker).float()
        text = spread(torch.cat([means.float(), hidden.float()], dim=1), durations, mels.shape[2]) * frame_mask
        sums = UtteranceLosses(
            duration=duration_sums(predicted, durations, token_mask, batch.symbol_lengths),
            prior=prior_sums(text[:, : self.num_mels], mels, frame_mask),
            flow=self._flow_sums(mels, text, speaker, batch.mel_lengths, generator),
        )
        return micro_batch_losses(sums, batch, durations)

    @torch.inference_mode()
    def infer(
        self,
        symbol_ids: Tensor,
        speaker: int,
        num_steps: int,
        generator: torch.Generator,
        length_scale: float = 1.0,
        *,
        temperature: float = DEFAULT_TEMPERATURE,
        schedule: Schedule = "uniform",
    ) -> Tensor:
        """Speaks one utterance.

        Args:
            symbol_ids: int64 [L], L at least 1.
            speaker: speaker number.
            num_steps: Euler steps of the flow.
            generator: gives the noise that the flow starts from.
            length_scale: factor on all durations; above 1 is slower.
            temperature: factor on that noise; below 1 is smoother and less varied.
            schedule: how the steps are spread over the path.

        Returns:
            raw log-mel float32 [num_mels, T].
        """
        device = self.mel_mean.device
        lengths = torch.tensor([symbol_ids.shape[0]], device=device)
        speakers = torch.tensor([speaker], device=device)
        embedded, token_mask, hidden, means = self._encode(symbol_ids.to(device)[None], lengths, speakers)
        logs = self.durations(hidden, token_mask, embedded)[0]
        durations = whole_frames(logs, length_scale)[None]
        return self._speak(hidden, means, embedded, durations, num_steps, generator, temperature, schedule)[0]

    @torch.inference_mode()
    def resynthesize(
        self, batch: Batch, num_steps: int, generator: torch.Generator, *, temperature: float = DEFAULT_TEMPERATURE
    ) -> Tensor:
        """Speaks recorded utterances with the durations of their own alignment, so that frames can be compared.

        Returns:
            raw log-mel float32 [B, num_mels, T], frame by frame beside `batch.mels`; zero beyond each end.
        """
        speaker, _, hidden, means = self._encode(batch.symbol_ids, batch.symbol_lengths, batch.speakers)
        frame_mask = length_mask(batch.mel_lengths, batch.mels.shape[2])
        durations = self._align(means, self._normalize(batch.mels) * frame_mask, batch)
        mels = self._speak(hidden, means, speaker, durations, num_steps, generator, temperature, "uniform")
        return mels * frame_mask

    def _encode(
        self, symbol_ids: Tensor, symbol_lengths: Tensor, speakers: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Speakers [B, S], token mask [B, 1, 2 L + 1], hidden states [B, C, 2 L + 1], mean mels [B, M, 2 L + 1]."""
        speaker: Tensor = self.speakers(speakers)
        token_mask = length_mask(2 * symbol_lengths + 1, num_tokens(symbol_ids.shape[1]))
        hidden, means = self.encoder(interleave_blanks(symbol_ids, self.blank_id), token_mask, speaker)
        return speaker, token_mask, hidden, means

    def _normalize(self, mels: Tensor) -> Tensor:
        return (mels - self.mel_mean[:, None]) / self.mel_std[:, None]

    @torch.no_grad()
    def _align(self, means: Tensor, mels: Tensor, batch: Batch) -> Tensor:
        """Frames of each token, int64 [B, 2 L + 1]. In float32 whatever the precision of the rest."""
        with torch.autocast(mels.device.type, enabled=False):
            return align(log_likelihood(means.float(), mels), 2 * batch.symbol_lengths + 1, batch.mel_lengths)

    def _flow_sums(
        self, mels: Tensor, text: Tensor, speaker: Tensor, mel_lengths: Tensor, generator: torch.Generator
    ) -> Tensor:
        """The flow's loss [B]; a cropped window counts for its whole utterance."""
        config = self.config
        draws = draw(mel_lengths, self.num_mels, config.crop_frames, config.guidance_dropout, generator)
        mask = length_mask(draws.lengths, draws.noise.shape[2])
        target = flow_target(window(mels, draws) * mask, draws.noise, draws.times, config.sigma_min)
        kept_text, kept_speaker = self._keep(window(text, draws) * mask, speaker, draws)
        velocity = self.decoder(target.x, target.times, kept_text, mask, kept_speaker).float()
        return flow_sums(velocity, target.velocity, mask) * mel_lengths / draws.lengths

    def _keep(self, text: Tensor, speaker: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        return text * draws.keep_text[:, None, None], speaker * draws.keep_text[:, None]

    def _speak(
        self,
        hidden: Tensor,
        means: Tensor,
        speaker: Tensor,
        durations: Tensor,
        num_steps: int,
        generator: torch.Generator,
        temperature: float,
        schedule: Schedule,
    ) -> Tensor:
        """Raw log-mels float32 [B, M, T] of tokens with `durations` [B, 2 L + 1]."""
        lengths = durations.sum(1)
        num_frames = int(lengths.max())
        mask = length_mask(lengths, num_frames)
        text = spread(torch.cat([means, hidden], dim=1).float(), durations, num_frames) * mask
        noise = torch.randn((len(lengths), self.num_mels, num_frames), generator=generator, device=generator.device)
        strength = self.config.guidance_strength

        def velocity(x: Tensor, times: Tensor) -> Tensor:
            guided: Tensor = self.decoder(x, times, text, mask, speaker)
            if strength > 0:
                free = self.decoder(x, times, torch.zeros_like(text), mask, torch.zeros_like(speaker))
                guided = (1 + strength) * guided - strength * free
            return guided.float()

        start = temperature * noise.to(text.device) * mask
        mels = sample_flow(velocity, start, num_steps, schedule)
        return mels * self.mel_std[:, None] + self.mel_mean[:, None]
