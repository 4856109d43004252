"""Monotonic alignment search against its definition."""

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.model.aligner import align, log_likelihood


def best_by_trying_all(scores):
    """Durations [L] of the best way to cut T frames into L runs of at least one frame, from the definition."""
    num_tokens, num_frames = scores.shape
    best_total, best_durations = -np.inf, None
    for cuts in itertools.combinations(range(1, num_frames), num_tokens - 1):
        edges = [0, *cuts, num_frames]
        total = sum(scores[token, edges[token] : edges[token + 1]].sum() for token in range(num_tokens))
        if total > best_total:
            best_total, best_durations = total, np.diff(edges)
    return best_durations


@given(
    lengths=st.lists(
        st.integers(1, 6).flatmap(lambda L: st.tuples(st.just(L), st.integers(L, 9))), min_size=1, max_size=5
    ),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_best_of_all_monotonic_paths(lengths, seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(len(lengths), max(L for L, _ in lengths), max(T for _, T in lengths)))
    num_tokens, num_frames = (torch.tensor(column) for column in zip(*lengths, strict=True))
    durations = align(torch.from_numpy(scores), num_tokens, num_frames).numpy()
    for row, (L, T) in enumerate(lengths):
        np.testing.assert_array_equal(durations[row, :L], best_by_trying_all(scores[row, :L, :T]))
        assert not durations[row, L:].any()


def test_durations_fill_the_frames_and_none_is_empty():
    generator = torch.Generator().manual_seed(0)
    num_tokens = torch.randint(1, 60, (32,), generator=generator)
    num_frames = num_tokens + torch.randint(0, 200, (32,), generator=generator)
    scores = torch.randn((32, int(num_tokens.max()), int(num_frames.max())), generator=generator)
    durations = align(scores, num_tokens, num_frames)
    assert torch.equal(durations.sum(1), num_frames)
    for row, L in zip(durations, num_tokens.tolist(), strict=True):
        assert row[:L].min() >= 1
        assert row[L:].sum() == 0


def test_too_few_frames_do_not_crash():
    durations = align(torch.zeros((2, 5, 3)), torch.tensor([5, 2]), torch.tensor([3, 3]))
    assert durations.sum(1).tolist() == [3, 3]
    assert durations.min() >= 0
    assert durations[1, :2].min() >= 1


def test_log_likelihood_is_that_of_a_normal_distribution():
    generator = torch.Generator().manual_seed(1)
    means, mels = torch.randn((2, 80, 7), generator=generator), torch.randn((2, 80, 11), generator=generator)
    wanted = torch.distributions.Normal(means[..., None], 1.0).log_prob(mels[:, :, None]).sum(1)
    torch.testing.assert_close(log_likelihood(means, mels), wanted, rtol=1e-5, atol=1e-3)
