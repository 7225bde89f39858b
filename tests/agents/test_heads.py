"""Heads that predict a number by bins."""

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import DREAMER_V3
from curious_replay.agents.blocks.heads import TwoHot, TwoHotHead
from curious_replay.agents.blocks.slow_copy import SlowCopy

TARGETS = torch.tensor([[-1e9, -3.0, 0.0], [0.2, 7.0, 1e9]], dtype=torch.float64)


@pytest.fixture(params=[255, 256, 7])
def head(request):
    torch.manual_seed(0)
    head = TwoHotHead(5, 2, 16, request.param, DREAMER_V3)
    head[-1].weight.data.normal_()
    head[-1].bias.data.normal_()
    return head.double()


def plain(head, x):
    """The distribution without logits beyond the bins."""
    for layer in head:
        x = layer(x)
    return TwoHot(x, head.bins)


def test_logits_beyond_the_bins_change_nothing(head):
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    predicted, wanted = head(x), plain(head, x)
    assert predicted.logits.shape[-1] % 8 == 0
    torch.testing.assert_close(predicted.logits[..., : len(head.bins)], wanted.logits)
    torch.testing.assert_close(predicted.mean, wanted.mean)
    torch.testing.assert_close(predicted.loss(TARGETS), wanted.loss(TARGETS))


def test_logits_beyond_the_bins_have_no_gradient(head):
    x = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    inputs = [x, *head.parameters()]
    results = []
    for distribution in (head(x), plain(head, x)):
        total = distribution.loss(TARGETS).sum() + distribution.mean.sum() / 1e6
        results.append(torch.autograd.grad(total, inputs))
    for gradient, wanted in zip(*results, strict=True):
        assert gradient.isfinite().all()
        torch.testing.assert_close(gradient, wanted)


def test_losses_of_several_targets_are_added(head):
    predicted = head(torch.randn(2, 3, 5, dtype=torch.float64))
    others = TARGETS.flip(0)
    both = predicted.loss(TARGETS, others)
    torch.testing.assert_close(both, predicted.loss(TARGETS) + predicted.loss(others))


def test_a_loss_is_the_cross_entropy_with_both_bins(head):
    predicted = head(torch.randn(2, 3, 5, dtype=torch.float64))
    target = torch.tensor(0.2, dtype=torch.float64).expand(2, 3)
    y, bins = torch.log1p(target), predicted.bins
    shares = torch.relu(1 - (y[..., None] - bins).abs() / (bins[1] - bins[0]))
    logs = F.log_softmax(predicted.logits[..., : len(head.bins)], -1)
    wanted = -(shares * logs).sum(-1)  # of bins that are exact in single precision only
    torch.testing.assert_close(predicted.loss(target), wanted, rtol=1e-4, atol=0)


def test_copies_predict_the_same(head):
    x = torch.randn(4, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(SlowCopy(head, 0.1)(x).mean, head(x).mean)


def test_the_first_prediction_is_nothing():
    mean = TwoHotHead(5, 2, 16, 255, DREAMER_V3)(torch.randn(4, 5)).mean
    torch.testing.assert_close(mean, torch.zeros(4), rtol=0, atol=1e-6)
