"""Batches of made utterances, for tests of the model."""

import torch

from trainer.data.batch import Batch

NUM_SYMBOLS = 12
NUM_SPEAKERS = 3
NUM_MELS = 8


def make_utterances(count, seed=0):
    """Utterances as (symbol ids [L], mel [NUM_MELS, T], speaker), each with frames enough to be aligned."""
    generator = torch.Generator().manual_seed(seed)
    utterances = []
    for _ in range(count):
        num_symbols = int(torch.randint(1, 6, (), generator=generator))
        num_frames = 2 * num_symbols + 1 + int(torch.randint(0, 20, (), generator=generator))
        symbols = torch.randint(1, NUM_SYMBOLS, (num_symbols,), generator=generator)
        mel = 2 * torch.randn((NUM_MELS, num_frames), generator=generator) - 5
        utterances.append((symbols, mel, int(torch.randint(0, NUM_SPEAKERS, (), generator=generator))))
    return utterances


def collate(utterances, *, weights=None, extra_symbols=0, extra_frames=0, num_slots=1, totals=None):
    """A batch of `utterances`, padded beyond the longest; `totals` are (frames, symbols) of the step group."""
    symbol_lengths = torch.tensor([len(symbols) for symbols, _, _ in utterances])
    mel_lengths = torch.tensor([mel.shape[1] for _, mel, _ in utterances])
    symbol_ids = torch.zeros((len(utterances), int(symbol_lengths.max()) + extra_symbols), dtype=torch.int64)
    mels = torch.zeros((len(utterances), NUM_MELS, int(mel_lengths.max()) + extra_frames))
    for row, (symbols, mel, _) in enumerate(utterances):
        symbol_ids[row, : len(symbols)] = symbols
        mels[row, :, : mel.shape[1]] = mel
    row_weights = torch.ones(len(utterances)) if weights is None else torch.tensor(weights, dtype=torch.float32)
    frames, symbols = totals or (float((mel_lengths * row_weights).sum()), float((symbol_lengths * row_weights).sum()))
    return Batch(
        keys=tuple(f"utterance-{row}" for row in range(len(utterances))),
        symbol_ids=symbol_ids,
        symbol_lengths=symbol_lengths,
        mels=mels,
        mel_lengths=mel_lengths,
        speakers=torch.tensor([speaker for _, _, speaker in utterances]),
        weights=row_weights,
        group_frames=frames,
        group_symbols=symbols,
        num_slots=num_slots,
    )
