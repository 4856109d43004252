"""Text encoder: token ids and a speaker -> hidden states, and the mean mel that each token should sound like."""

from __future__ import annotations

from torch import Tensor, nn

from trainer.model.config import ModelConfig
from trainer.model.layers import Stack


class Encoder(nn.Module):
    """Embedding, a stack of blocks steered by the speaker, and a projection to mel.

    Args:
        config: sizes.
        num_symbols: size of the symbol table.
        num_mels: mel bands.
    """

    def __init__(self, config: ModelConfig, num_symbols: int, num_mels: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_symbols, config.encoder_channels)
        self.stack = Stack(
            channels=config.encoder_channels,
            num_blocks=config.encoder_blocks,
            kernel_size=config.kernel_size,
            condition_channels=config.speaker_channels,
            heads=config.attention_heads,
            feed_forward_channels=config.feed_forward_channels,
            dropout=config.dropout,
        )
        self.to_mel = nn.Conv1d(config.encoder_channels, num_mels, 1)

    def forward(self, token_ids: Tensor, mask: Tensor, speaker: Tensor) -> tuple[Tensor, Tensor]:
        """Encodes.

        Args:
            token_ids: int64 [B, L].
            mask: bool [B, 1, L].
            speaker: speakers' embeddings [B, S].

        Returns:
            hidden states [B, C, L] and mean mels [B, num_mels, L] in normalised units, both zero beyond the end.
        """
        hidden = self.stack(self.embedding(token_ids).transpose(1, 2) * mask, mask, speaker)
        return hidden, self.to_mel(hidden) * mask
