"""The mathematics of DreamerPro against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from test_numbers import near, numbers
from torch import nn

from curious_replay.agents.blocks.actor import SquashedPolicy
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.prototypes import Prototypes, assign, cross_entropy
from curious_replay.agents.blocks.shifts import translate
from curious_replay.agents.blocks.slow_copy import SlowCopy

# Three prototypes and four points, as published: one row for each prototype.
SCORES = numbers(0.9, 0.1, 0.2, 0.3, 0.2, 0.8, 0.1, 0.4, 0.1, 0.3, 0.7, 0.2).view(3, 4).T


def test_assignments():
    shares = assign(SCORES, eps=0.05)
    near(shares.sum(1), [1, 1, 1, 1], rtol=1e-12)
    near(shares.sum(0), [1.0419248, 1.7122805, 1.2457947])
    near(shares[-1], [0.0419301, 0.7131293, 0.2449406], rtol=1e-6)
    softer = assign(SCORES, eps=0.5)
    near(softer[0], [0.6729666, 0.1700295, 0.1570039], rtol=1e-6)
    near(softer.sum(0), [1.3318916, 1.3338628, 1.3342456])


def test_every_prototype_gets_the_same_share_in_the_end():
    near(assign(SCORES, eps=0.05, iterations=50).sum(0), [4 / 3] * 3, rtol=1e-5)
    torch.manual_seed(0)
    scores = torch.rand(40, 7)
    shares = assign(scores, eps=0.05, iterations=200)
    near(shares.sum(1), torch.ones(40), rtol=1e-5)
    near(shares.sum(0), torch.full((7,), 40 / 7), rtol=1e-3)


def test_assignments_know_differences_of_scores_only():
    near(assign(torch.full((4, 3), 0.3), eps=0.05), torch.full((4, 3), 1 / 3))
    near(assign(SCORES + 7, eps=0.05), assign(SCORES, eps=0.05), rtol=1e-9)
    scores = SCORES.clone().requires_grad_()
    assert not assign(scores, eps=0.05).requires_grad


def test_predictions_of_prototypes():
    scores = numbers(1, 0, -1)
    found = [cross_entropy(torch.eye(3)[k].double(), scores, 0.1).item() for k in range(3)]
    near(found, [4.5401e-5, 10.0000454, 20.0000454], rtol=1e-5)
    even = torch.full((2500,), 1 / 2500, dtype=torch.float64)
    near(cross_entropy(even, 0 * even, 0.1), 7.8240460)
    # Against shares of several: the weighted sum.
    near(cross_entropy(numbers(0.5, 0.25, 0.25), scores, 0.1), 0.25 * (10 + 20) + 4.5401e-5)


def test_scores_are_cosines():
    prototypes = Prototypes(3, 2, frozen_updates=0)
    near(prototypes.matrix.norm(dim=1), [1, 1, 1])
    prototypes.matrix.data = torch.tensor([[1.0, 0], [0, 1], [-1, 0]])
    near(
        prototypes(torch.tensor([[3.0, 0], [5, 5]])),
        [[1, 0, -1], [0.5**0.5, 0.5**0.5, -(0.5**0.5)]],
    )


def test_frozen_prototypes_do_not_move_by_gradient_and_then_do():
    torch.manual_seed(0)
    prototypes = Prototypes(4, 3, frozen_updates=2)
    optimiser = Optimiser(prototypes, lr=0.1, eps=1e-5, clip=1e9, decay=1e-3)
    points, target = torch.randn(5, 3), torch.randn(5, 4)
    moved = []
    for _ in range(4):
        before = prototypes.matrix.detach().clone()
        norm = optimiser.step((prototypes(points) - target).square().sum())
        shrunk = prototypes.matrix.detach().clone()
        prototypes.settle(torch.tensor(True))
        near(prototypes.matrix.norm(dim=1), torch.ones(4))
        moved.append(bool((prototypes.matrix - before).abs().max() > 1e-3))
        assert (norm > 0) == moved[-1]
        if not moved[-1]:
            near(shrunk, before * (1 - 1e-3))  # decay acts nevertheless
    assert moved == [False, False, True, True]
    assert prototypes.updates == 4


def test_frozen_prototypes_let_gradients_pass_to_points():
    prototypes = Prototypes(4, 3, frozen_updates=1)
    points = torch.randn(5, 3, requires_grad=True)
    gradients = []
    for _ in range(2):
        gradients.append(torch.autograd.grad(prototypes(points)[:, 0].sum(), points)[0])
        prototypes.settle(torch.tensor(True))
    assert gradients[0].abs().max() > 0
    near(gradients[0], gradients[1], rtol=1e-5, atol=1e-6)


def test_teacher_is_a_moving_average():
    source = nn.Linear(1, 1, bias=False).double()

    def set_to(value):
        source.weight.data.fill_(value)

    set_to(1)
    slow = SlowCopy(source, 0.05, fresh=False)
    found = [slow.network.weight.item()]
    for value in (2, 3, 4):
        set_to(value)
        slow.follow(source, torch.tensor(True))
        found.append(slow.network.weight.item())
    near(found, [1, 1.05, 1.1475, 1.290125], rtol=1e-6)


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [
        (1, [0, 0, 10, 20]),
        (0.5, [0, 5, 15, 25]),
        (-1.25, [12.5, 22.5, 30, 30]),
        (0, [0, 10, 20, 30]),
    ],
)
def test_translation(pixels, expected):
    row = torch.tensor([0.0, 10, 20, 30])
    across = row.expand(4, 4)
    images = torch.stack([across, across.T])[:, None, :, :, None]  # [T, B, H, W, C]
    right = translate(images, torch.tensor([[float(pixels), 0]]))[:, 0, :, :, 0]
    near(right[0], np.tile(expected, (4, 1)), atol=1e-4)
    near(right[1], across.T, atol=1e-4)
    down = translate(images, torch.tensor([[0, float(pixels)]]))[:, 0, :, :, 0]
    near(down[0], across, atol=1e-4)
    near(down[1], np.tile(expected, (4, 1)).T, atol=1e-4)


def test_translation_is_one_for_each_row_and_the_same_at_all_times():
    torch.manual_seed(0)
    images = torch.rand(3, 2, 8, 8, 3)
    pixels = torch.tensor([[1.5, -0.5], [-2.0, 3.0]])
    moved = translate(images, pixels)
    assert moved.shape == images.shape and moved.is_contiguous()
    for t in range(3):
        for row in range(2):
            alone = translate(images[t : t + 1, row : row + 1], pixels[row : row + 1])
            near(moved[t, row], alone[0, 0])
    # Whole pixels: what was there, with the border continued.
    near(moved[:, 1, 3:, :6], images[:, 1, :5, 2:], atol=1e-6)
    near(moved[:, 1, 0, :6], images[:, 1, 0, 2:], atol=1e-6)
    near(moved[:, 1, 3:, 7], images[:, 1, :5, 7], atol=1e-6)


def test_squashed_policy():
    outputs = numbers(0.5, -2.0, 0.3, 1.0)
    policy = SquashedPolicy(outputs)
    near(policy.mean, [5 * math.tanh(0.1), 5 * math.tanh(-0.4)])
    near(policy.std, [math.log1p(math.exp(0.3)) + 0.1, math.log1p(math.exp(1.0)) + 0.1])
    near(
        policy.sample(numbers(1, -1)), np.tanh((policy.mean + policy.std * numbers(1, -1)).numpy())
    )


@pytest.mark.parametrize(("mean", "std"), [(0.0, 0.3), (0.7, 0.8), (-3.0, 1.1), (0.2, 2.0)])
def test_entropy_and_mode_of_the_squashed_policy(mean, std):
    """Against integrals of the density of tanh(x)."""
    raw = numbers(5 * math.atanh(mean / 5), math.log(math.expm1(std - 0.1)))
    policy = SquashedPolicy(raw)

    def log_density(x):  # of the action tanh(x)
        return stats.norm.logpdf(x, mean, std) - np.log(1 / np.cosh(x) ** 2)

    def inner(x):
        return -stats.norm.pdf(x, mean, std) * log_density(x)

    expected, _ = integrate.quad(inner, mean - 9 * std, mean + 9 * std, limit=500)
    near(policy.entropy, expected, rtol=0, atol=3e-3)
    spread = mean + std * stats.norm.ppf((np.arange(100) + 0.5) / 100)
    best = spread[np.argmax(log_density(spread))]
    near(policy.mode, [math.tanh(best)], rtol=1e-6)
    assert log_density(np.arctanh(policy.mode.item())) >= log_density(mean) - 1e-3


def test_gradients_of_the_squashed_policy():
    outputs = torch.tensor([0.5, -2.0, 0.3, 1.0], dtype=torch.float64, requires_grad=True)
    noise = numbers(0.4, -1.2)
    assert torch.autograd.gradcheck(lambda x: SquashedPolicy(x).sample(noise), outputs)
    assert torch.autograd.gradcheck(lambda x: SquashedPolicy(x).entropy, outputs)
    # Far out the slope of tanh is tiny, but its logarithm is not.
    far = torch.tensor([50.0, 0.0], requires_grad=True)
    SquashedPolicy(far).entropy.backward()
    assert torch.isfinite(far.grad).all()
