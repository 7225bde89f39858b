"""Quick ways to compute what plain PyTorch also can: the same numbers, the same gradients."""

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import DREAMER_V3
from curious_replay.agents.blocks.latents import Categorical
from curious_replay.agents.blocks.maths import FEW, softmax, softmax_gradient
from curious_replay.agents.blocks.rssm import Rssm, State
from curious_replay.agents.blocks.shortcuts.lookup import (
    OneHotFeatures,
    add_up,
    as_tensor,
    look_up,
    pays,
    product,
    stack,
)
from curious_replay.agents.blocks.shortcuts.upscale import upscale

LATENT = Categorical(3, 4, 0.01)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("classes", [2, FEW - 1, FEW])
def test_softmax_of_few_classes_is_that_of_many(classes):
    logits = (10 * torch.randn(5, 3, classes, dtype=torch.float64)).requires_grad_()
    logits.data[0, 0, 0] = 1000.0  # must not overflow
    found, expected = softmax(logits), F.softmax(logits, -1)
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(found)
    wanted = torch.autograd.grad((expected * weights).sum(), logits)[0]
    torch.testing.assert_close(torch.autograd.grad((found * weights).sum(), logits)[0], wanted)
    torch.testing.assert_close(softmax_gradient(weights, expected.detach()), wanted)


def one_hot_states(*shape):
    outputs = torch.randn(*shape, LATENT.outputs)
    stoch = LATENT.sample(outputs, torch.rand(*shape, LATENT.latents))
    deter = torch.randn(*shape, 5)
    return State(deter, stoch), OneHotFeatures(deter, LATENT.ones(stoch), LATENT.size)


def test_one_hot_features_stand_for_their_numbers():
    state, features = one_hot_states(6, 2)
    assert features.shape == state.feature.shape
    torch.testing.assert_close(as_tensor(features), state.feature)
    torch.testing.assert_close(as_tensor(features[1:4]), state.feature[1:4])
    torch.testing.assert_close(as_tensor(state.feature), state.feature)
    assert features.detach() is features


def test_stacks_of_both_kinds_are_the_same():
    pairs = [one_hot_states(2) for _ in range(3)]
    plain = torch.stack([state.feature for state, _ in pairs])
    torch.testing.assert_close(stack([state.feature for state, _ in pairs]), plain)
    torch.testing.assert_close(as_tensor(stack([features for _, features in pairs])), plain)


def test_a_product_of_one_hot_features_is_that_of_their_numbers():
    state, features = one_hot_states(6, 2)
    weights = [torch.randn(7, 5 + LATENT.size, requires_grad=True)]
    weights.append(weights[0].detach().clone().requires_grad_(True))
    results = [product(state.feature, weights[0]), product(features, weights[1])]
    torch.testing.assert_close(results[1], results[0])
    for result in results:
        result.sin().sum().backward()
    torch.testing.assert_close(weights[1].grad, weights[0].grad)


def test_looking_up_gives_a_product_without_gradient():
    state, features = one_hot_states(6, 2)
    weight = torch.randn(7, LATENT.size, requires_grad=True)
    found = look_up(features.ones, weight)
    torch.testing.assert_close(found, F.linear(state.stoch, weight.detach()))
    assert not found.requires_grad


def test_adding_up_gives_the_gradient_of_looking_up():
    state, features = one_hot_states(6, 2)
    weight = torch.randn(7, LATENT.size, requires_grad=True)
    of_products = torch.randn(6, 2, 7)
    F.linear(state.stoch, weight).backward(of_products)
    found = add_up(features.ones, of_products, LATENT.size)
    torch.testing.assert_close(found, weight.grad.T)


def test_sums_of_no_rows_are_zero():
    found = add_up(torch.tensor([[1, 6, 8]] * 5), torch.ones(5, 2), LATENT.size)
    wanted = torch.zeros(LATENT.size, 2)
    wanted[[1, 6, 8]] = 5
    torch.testing.assert_close(found, wanted)


def test_it_pays_on_a_cpu_in_single_precision():
    x = torch.zeros(1)
    assert pays(x)
    assert not pays(torch.zeros(1, device="meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert not pays(x)


def test_imagining_quickly_is_imagining():
    rssm = Rssm(8, 2, 5, 6, LATENT, DREAMER_V3, learned_start=True)
    state, features = one_hot_states(50)
    for _ in range(4):
        action, noise = torch.randn(50, 2), LATENT.noise(50, generator=torch.default_generator)
        state = rssm.imagine(state, action, noise)
        features = rssm.imagine_quickly(features, action, noise)
        assert not features.deter.requires_grad
        torch.testing.assert_close(features.deter, state.deter.detach())
        torch.testing.assert_close(features.one_hot, state.stoch.detach().round())


@pytest.mark.parametrize("outputs", [1, 3, 9])
def test_upscaling_is_a_transposed_convolution(outputs):
    x, weight = torch.randn(2, 5, 4, 6), torch.randn(6, outputs, 4, 4)
    bias = torch.randn(outputs)
    pairs = []
    for quick in (True, False):
        inputs = [each.clone().requires_grad_(True) for each in (x, weight, bias)]
        if quick:
            y = upscale(*inputs)
        else:
            y = F.conv_transpose2d(
                inputs[0].permute(0, 3, 1, 2), *inputs[1:], stride=2, padding=1
            ).permute(0, 2, 3, 1)
        y.sin().sum().backward()
        pairs.append([y, *(each.grad for each in inputs)])
    for quick, plain in zip(*pairs, strict=True):
        torch.testing.assert_close(quick, plain, rtol=1e-4, atol=1e-5)
