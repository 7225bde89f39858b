"""Fused Adam goes through memory as it lies: gradients must lie as their parameters do."""

import copy

import torch
from torch import nn

from curious_replay.agents.blocks.optim import Optimiser


def test_a_weight_whose_gradient_lies_otherwise_makes_the_same_step():
    torch.manual_seed(0)
    module = nn.Conv2d(4, 6, 3)
    plain = copy.deepcopy(module)
    picture = torch.randn(2, 8, 8, 4).permute(0, 3, 1, 2)  # channels last
    (gradient,) = torch.autograd.grad(module(picture).square().mean(), [module.weight])
    assert gradient.stride() != module.weight.stride()  # else there is nothing to test

    optimiser = Optimiser(module, lr=0.1, eps=1e-8, clip=1e9)
    adam = torch.optim.Adam(plain.parameters(), lr=0.1, eps=1e-8)
    for _ in range(3):
        optimiser.step(module(picture).square().mean())
        adam.zero_grad()
        plain(picture).square().mean().backward()
        adam.step()
    torch.testing.assert_close(module.weight, plain.weight, rtol=1e-4, atol=1e-5)
