"""Guesses how an English word outside the lexicon is said: a small windowed network from letters to phones.

Each letter becomes a chunk of no, one or two phones. The network sees the letters around it, the chunks chosen for the
letters before it, and whether the main stress has been given; a beam search keeps the likeliest readings.
`scripts/train_letter_to_sound.py` learns the weights from the lexicon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WEIGHTS_FILE = "letter_to_sound.npz"
WINDOW = 6
"""Letters seen on each side of the one that is being said."""
NUM_PREVIOUS = 3
"""Chunks seen before it."""
NUM_LETTERS = 27
"""`a` to `z` are 1 to 26; 0 stands outside the word."""
NUM_WINDOW_ROWS = (2 * WINDOW + 1) * NUM_LETTERS
BEAM_WIDTH = 4
MAX_LETTERS = 64
"""Longer words are said piece by piece, so that time stays linear with a small constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterToSound:
    """The network. Its first layer is a sum of rows, one for each thing seen.

    Attributes:
        chunks: what a letter may become, phones joined by a space; `""` is silence.
        rows: float32 [num_rows, hidden], a row for each (place, letter), (place back, chunk) and stress state.
        bias_1: float32 [hidden].
        weight_2: float32 [hidden, hidden_2].
        bias_2: float32 [hidden_2].
        weight_out: float32 [hidden_2, num_chunks].
        bias_out: float32 [num_chunks].
    """

    chunks: tuple[str, ...]
    rows: NDArray[np.float32]
    bias_1: NDArray[np.float32]
    weight_2: NDArray[np.float32]
    bias_2: NDArray[np.float32]
    weight_out: NDArray[np.float32]
    bias_out: NDArray[np.float32]

    def guess(self, word: str) -> tuple[str, ...]:
        """ARPAbet phones of `word` (only `a` to `z`), with one main stress where there is a vowel."""
        pieces = [word[start : start + MAX_LETTERS] for start in range(0, len(word), MAX_LETTERS)]
        return with_one_stress([phone for piece in pieces for phone in self._guess_piece(piece)])

    def _guess_piece(self, word: str) -> list[str]:
        beams: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
        for letters in window_rows(word):
            scores = self._scores(letters, beams)
            best = (-scores).argsort(axis=None, kind="stable")[:BEAM_WIDTH]
            places = [divmod(int(at), len(self.chunks)) for at in best]
            beams = [((*beams[beam][0], chunk), float(scores[beam, chunk])) for beam, chunk in places]
        return " ".join(self.chunks[chunk] for chunk in beams[0][0]).split()

    def _scores(self, letters: list[int], beams: list[tuple[tuple[int, ...], float]]) -> NDArray[np.float32]:
        """Log-probability of each beam followed by each chunk: float32 [num_beams, num_chunks]."""
        import numpy as np

        history = np.asarray([history_rows(chosen, self.chunks) for chosen, _ in beams])
        hidden = np.maximum(self.rows[letters].sum(axis=0) + self.rows[history].sum(axis=1) + self.bias_1, 0)
        hidden = np.maximum(hidden @ self.weight_2 + self.bias_2, 0)
        logits = hidden @ self.weight_out + self.bias_out
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return np.asarray(logits + np.asarray([[score] for _, score in beams], np.float32))


def window_rows(word: str) -> list[list[int]]:
    """For each letter of `word`, the rows of the first layer that stand for the letters around it."""
    padded = [0] * WINDOW + [ord(letter) - ord("a") + 1 for letter in word] + [0] * WINDOW
    return [
        [place * NUM_LETTERS + letter for place, letter in enumerate(padded[start : start + 2 * WINDOW + 1])]
        for start in range(len(word))
    ]


def history_rows(chosen: Sequence[int], chunks: Sequence[str]) -> list[int]:
    """Rows for the last chunks, latest first, and for whether a main stress is among all of them."""
    nothing = len(chunks)
    last = [chosen[-back] if back <= len(chosen) else nothing for back in range(1, NUM_PREVIOUS + 1)]
    rows = [NUM_WINDOW_ROWS + back * (nothing + 1) + chunk for back, chunk in enumerate(last)]
    stressed = any("1" in chunks[chunk] for chunk in chosen)
    return [*rows, NUM_WINDOW_ROWS + NUM_PREVIOUS * (nothing + 1) + int(stressed)]


def num_rows(num_chunks: int) -> int:
    """Rows of the first layer."""
    return NUM_WINDOW_ROWS + NUM_PREVIOUS * (num_chunks + 1) + 2


def with_one_stress(phones: Sequence[str]) -> tuple[str, ...]:
    """`phones` with exactly one main stress: the first that has it, else the first with secondary stress, else the
    first vowel; further main stresses become secondary.

    >>> with_one_stress(["HH", "AH0", "L", "OW0"])
    ('HH', 'AH1', 'L', 'OW0')
    """
    vowels = [place for place, phone in enumerate(phones) if phone[-1].isdigit()]
    if not vowels:
        return tuple(phones)
    main = min(vowels, key=lambda place: ("120".index(phones[place][-1]), place))
    fixed = [phone[:-1] + "2" if phone[-1] == "1" else phone for phone in phones]
    fixed[main] = phones[main][:-1] + "1"
    return tuple(fixed)


@cache
def letter_to_sound() -> LetterToSound:
    """The network with its shipped weights, read once."""
    import numpy as np

    path = files("dataprep.text") / "data" / WEIGHTS_FILE
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    chunks = tuple(str(chunk) for chunk in arrays.pop("chunks"))
    return LetterToSound(chunks=chunks, **{name: array.astype(np.float32) for name, array in arrays.items()})
