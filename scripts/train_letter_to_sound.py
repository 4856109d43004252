"""Learns the letter-to-sound network of `dataprep.text` from the lexicon and writes its weights.

    python scripts/train_letter_to_sound.py --leave-out words.tsv

Letters and phones are aligned by repeated counting (each letter says no, one or two phones), then a windowed network
learns the chunk of each letter. One word in twenty, chosen by its checksum, is kept back and the phone error (stress
not counted) on those words is printed. Same lexicon, options and torch version give the same weights on one thread.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from dataprep.text.letter_to_sound import (
    NUM_PREVIOUS,
    WEIGHTS_FILE,
    WINDOW,
    LetterToSound,
    history_rows,
    num_rows,
    window_rows,
)
from dataprep.text.lexicon import lexicon

ALIGNMENT_ROUNDS = 5
MIN_CHUNK_COUNT = 30
"""Chunks seen less often are mostly odd spellings; their words are left out."""
Aligned = tuple[str, tuple[str, ...]]
"""A word, and the chunk of each of its letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the training depends on beside the words."""

    seed: int = 7
    epochs: int = 20
    batch_size: int = 2048
    hidden: int = 448
    hidden_2: int = 320
    learning_rate: float = 2e-3
    dropout: float = 0.15


def main() -> None:
    """Reads the options, trains, reports and writes the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leave-out", type=Path, help="table whose first column names words not to learn from")
    parser.add_argument("--epochs", type=int, default=Settings().epochs)
    default_path = Path(__file__).parent.parent / "dataprep" / "text" / "data" / WEIGHTS_FILE
    parser.add_argument("--to", type=Path, default=default_path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    left_out = (
        {line.split("\t")[0] for line in options.leave_out.read_text("utf-8").splitlines()}
        if options.leave_out
        else set()
    )
    words = {word: phones for word, phones in lexicon().items() if word.isascii() and word.isalpha()}
    kept_back = {word: phones for word, phones in words.items() if zlib.crc32(word.encode()) % 20 == 0}
    learnt = {word: phones for word, phones in words.items() if word not in kept_back and word not in left_out}
    aligned = align(learnt)
    print(f"{len(learnt)} words to learn from, {len(aligned)} aligned; {len(kept_back)} kept back")
    model = train(aligned, Settings(epochs=options.epochs), check=sample(kept_back, 2000))
    print(f"phone error on all {len(kept_back)} words kept back: {phone_error(model, kept_back):.2%}")
    save(model, options.to)
    print(f"{options.to.name}: {options.to.stat().st_size} bytes")


def bare(phone: str) -> str:
    """The phone without its stress."""
    return phone.rstrip("012")


def align(words: dict[str, tuple[str, ...]]) -> list[Aligned]:
    """Gives each letter its chunk, by counting on the best alignment again and again.

    The first counts come from words with as many phones as letters, read one by one.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for word, phones in words.items():
        if len(word) == len(phones):
            counts.update(zip(word, map(bare, phones), strict=True))
    aligned: list[Aligned] = []
    for _ in range(ALIGNMENT_ROUNDS):
        costs = chunk_costs(counts)
        aligned = [(word, found) for word, phones in words.items() if (found := best_alignment(word, phones, costs))]
        counts = Counter(
            (letter, " ".join(map(bare, chunk.split())))
            for word, chunks in aligned
            for letter, chunk in zip(word, chunks, strict=True)
        )
    seen = Counter(chunk for _, chunks in aligned for chunk in chunks)
    return [pair for pair in aligned if all(seen[chunk] >= MIN_CHUNK_COUNT for chunk in pair[1])]


def chunk_costs(counts: Counter[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Negative log of how often a letter says a chunk."""
    totals: Counter[str] = Counter()
    for (letter, _), count in counts.items():
        totals[letter] += count
    return {pair: -math.log(count / totals[pair[0]]) for pair, count in counts.items()}


def best_alignment(word: str, phones: Sequence[str], costs: dict[tuple[str, str], float]) -> tuple[str, ...] | None:
    """The cheapest chunks of the letters that together say `phones`; None where there are too many phones."""
    unseen = (7.0, 9.0, 12.0)
    bare_phones = [bare(phone) for phone in phones]
    best: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
    for letter in word:
        reached: dict[int, tuple[float, int]] = {}
        for (start, (cost, _)), length in itertools.product(best[-1].items(), range(3)):
            end = start + length
            if end > len(phones):
                continue
            price = cost + costs.get((letter, " ".join(bare_phones[start:end])), unseen[length])
            if end not in reached or price < reached[end][0]:
                reached[end] = (price, start)
        best.append(reached)
    if len(phones) not in best[-1]:
        return None
    end, chunks = len(phones), []
    for reached in reversed(best[1:]):
        start = reached[end][1]
        chunks.append(" ".join(phones[start:end]))
        end = start
    return tuple(reversed(chunks))


def examples(aligned: list[Aligned], chunks: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows seen (int32 [n, 2 * WINDOW + 1 + NUM_PREVIOUS + 1]) and the chunk to say (int64 [n]), one a letter."""
    ids = {chunk: number for number, chunk in enumerate(chunks)}
    seen: list[list[int]] = []
    said: list[int] = []
    for word, word_chunks in aligned:
        numbers = [ids[chunk] for chunk in word_chunks]
        for place, letters in enumerate(window_rows(word)):
            seen.append(letters + history_rows(numbers[:place], chunks))
        said += numbers
    return torch.tensor(np.asarray(seen, np.int32)), torch.tensor(said)


def initial_weights(num_chunks: int, settings: Settings, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Trainable layers by the names that `LetterToSound` has for them."""
    num_seen = 2 * WINDOW + 1 + NUM_PREVIOUS + 1
    shapes = {
        "rows": (num_rows(num_chunks), settings.hidden, num_seen),
        "weight_2": (settings.hidden, settings.hidden_2, settings.hidden),
        "weight_out": (settings.hidden_2, num_chunks, settings.hidden_2),
    }
    weights = {
        name: torch.randn(rows, columns, generator=generator) * math.sqrt(2 / fan_in)
        for name, (rows, columns, fan_in) in shapes.items()
    }
    weights["bias_1"] = torch.zeros(settings.hidden)
    weights["bias_2"] = torch.zeros(settings.hidden_2)
    weights["bias_out"] = torch.zeros(num_chunks)
    return {name: weight.requires_grad_() for name, weight in weights.items()}


def logits(
    weights: dict[str, torch.Tensor], seen: torch.Tensor, dropout: float, generator: torch.Generator
) -> torch.Tensor:
    """float32 [batch, num_chunks]; the same sums as `LetterToSound`, with dropout after each hidden layer."""
    hidden = torch.nn.functional.embedding_bag(seen, weights["rows"], mode="sum") + weights["bias_1"]
    hidden = dropped(torch.relu(hidden), dropout, generator)
    hidden = dropped(torch.relu(hidden @ weights["weight_2"] + weights["bias_2"]), dropout, generator)
    return hidden @ weights["weight_out"] + weights["bias_out"]


def dropped(hidden: torch.Tensor, share: float, generator: torch.Generator) -> torch.Tensor:
    """`hidden` with a random share of it silenced and the rest scaled up."""
    return hidden * (torch.rand(hidden.shape, generator=generator) >= share) / (1 - share)


def train(aligned: list[Aligned], settings: Settings, check: dict[str, tuple[str, ...]]) -> LetterToSound:
    """Learns from `aligned`, printing the phone error on `check` every few epochs."""
    chunks = tuple(sorted({chunk for _, word_chunks in aligned for chunk in word_chunks}))
    seen, said = examples(aligned, chunks)
    generator = torch.Generator().manual_seed(settings.seed)
    weights = initial_weights(len(chunks), settings, generator)
    optimizer = torch.optim.Adam(weights.values(), lr=settings.learning_rate)
    num_steps = settings.epochs * math.ceil(len(said) / settings.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.learning_rate, total_steps=num_steps)
    started = time.monotonic()
    for epoch in range(settings.epochs):
        loss_sum = 0.0
        for batch in shuffled_batches(len(said), settings.batch_size, generator):
            loss = torch.nn.functional.cross_entropy(
                logits(weights, seen[batch], settings.dropout, generator), said[batch], label_smoothing=0.02
            )
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
            loss_sum += float(loss.detach()) * len(batch)
        report = f"epoch {epoch + 1}: loss {loss_sum / len(said):.4f}, {time.monotonic() - started:.0f} s"
        if epoch % 4 == 3:
            report += f", phone error {phone_error(exported(weights, chunks), check):.2%}"
        print(report, flush=True)
    return exported(weights, chunks)


def shuffled_batches(count: int, size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Numbers below `count` in random order, `size` at a time."""
    order = torch.randperm(count, generator=generator)
    return (order[start : start + size] for start in range(0, count, size))


def exported(weights: dict[str, torch.Tensor], chunks: tuple[str, ...]) -> LetterToSound:
    """The network as it will be read back: weights rounded to half precision."""
    arrays = {name: weight.detach().numpy().astype(np.float16).astype(np.float32) for name, weight in weights.items()}
    return LetterToSound(chunks=chunks, **arrays)


def save(model: LetterToSound, path: Path) -> None:
    """Writes half-precision weights; the archive's dates are fixed, so equal weights are equal bytes."""
    names = ("rows", "bias_1", "weight_2", "bias_2", "weight_out", "bias_out")
    arrays = {name: getattr(model, name).astype(np.float16) for name in names}
    np.savez_compressed(path, chunks=np.asarray(model.chunks), **arrays)


def sample(words: dict[str, tuple[str, ...]], count: int) -> dict[str, tuple[str, ...]]:
    """The first `count` words by checksum."""
    return {word: words[word] for word in sorted(words, key=lambda word: zlib.crc32(word.encode()))[:count]}


def phone_error(model: LetterToSound, words: dict[str, tuple[str, ...]]) -> float:
    """Edits per phone of the reference, stress not counted."""
    edits = sum(edit_distance(map(bare, model.guess(word)), list(map(bare, phones))) for word, phones in words.items())
    return edits / sum(map(len, words.values()))


def edit_distance(found: Iterable[str], wanted: Sequence[str]) -> int:
    """Fewest insertions, deletions and replacements between two sequences."""
    row = list(range(len(wanted) + 1))
    for number, phone in enumerate(found, 1):
        diagonal, row[0] = row[0], number
        for place, other in enumerate(wanted, 1):
            diagonal, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, diagonal + (phone != other))
    return row[-1]


if __name__ == "__main__":
    main()
