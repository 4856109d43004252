"""The flow's training target and its sampler, against closed forms."""

import math

import pytest
import torch

from trainer.model.flow import flow_target, sample_flow, time_grid


def test_target_velocity_is_the_derivative_of_the_path():
    generator = torch.Generator().manual_seed(0)
    mels, noise = torch.randn((2, 3, 4, 5), generator=generator, dtype=torch.float64)
    times = torch.rand(3, generator=generator, dtype=torch.float64)
    before, after = (flow_target(mels, noise, times + step, 1e-4) for step in (-1e-6, 1e-6))
    torch.testing.assert_close((after.x - before.x) / 2e-6, before.velocity, rtol=1e-6, atol=1e-6)


def test_path_goes_from_noise_to_mel():
    mels, noise = torch.full((1, 2, 2), 3.0), torch.full((1, 2, 2), -1.0)
    assert torch.equal(flow_target(mels, noise, torch.zeros(1), 0.0).x, noise)
    assert torch.equal(flow_target(mels, noise, torch.ones(1), 0.0).x, mels)


@pytest.mark.parametrize("schedule", ["uniform", "cosine"])
def test_sampler_solves_a_known_equation(schedule):
    start = torch.tensor([[[1.0, -2.0]]], dtype=torch.float64)

    def decay(x, times):
        assert times.shape == (1,)
        return -x

    solved = sample_flow(decay, start, 2000, schedule)
    torch.testing.assert_close(solved, start * math.exp(-1), rtol=1e-3, atol=0)


def test_sampler_is_exact_in_one_step_where_the_path_is_straight():
    noise, goal = torch.zeros((1, 2, 3)), torch.ones((1, 2, 3))
    assert torch.equal(sample_flow(lambda _x, _times: goal - noise, noise, 1), goal)


@pytest.mark.parametrize("schedule", ["uniform", "cosine"])
def test_grid_runs_from_0_to_1(schedule):
    grid = time_grid(7, schedule)
    assert grid[0] == 0.0
    assert grid[-1] == pytest.approx(1.0)
    assert grid == sorted(grid)
    assert len(grid) == 8
