"""The agents' mathematics against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks import initial
from curious_replay.agents.blocks.actor import NormalPolicy, OneHotPolicy
from curious_replay.agents.blocks.convs import Decoder, Encoder
from curious_replay.agents.blocks.dense import DREAMER_V3, NORM_EPS
from curious_replay.agents.blocks.heads import (
    TwoHot,
    binary_loss,
    even_bins,
    squared_error,
    two_hot,
)
from curious_replay.agents.blocks.latents import (
    Categorical,
    draw_one_hot,
    log_mix_uniform,
    mix_uniform,
    straight_through,
)
from curious_replay.agents.blocks.maths import symexp, symlog
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.returns import (
    ReturnScale,
    imagination_weights,
    lambda_returns,
    percentiles,
)
from curious_replay.agents.blocks.rssm import GruCell, bounded
from curious_replay.agents.blocks.slow_copy import SlowCopy

DISCOUNT = 332 / 333
BINS = even_bins(255)
FINE = torch.tensor(True)


def near(actual, expected, **tolerance):
    torch.testing.assert_close(
        torch.as_tensor(actual, dtype=torch.float64),
        torch.as_tensor(expected, dtype=torch.float64),
        **({"rtol": 2e-7, "atol": 6e-8} | tolerance),
    )


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_symlog_and_symexp():
    near(
        symlog(numbers(0, 0.1, 1, -10, 100, 1000)),
        [0, 0.0953102, 0.6931472, -2.3978953, 4.6151205, 6.9087548],
    )
    near(
        symexp(numbers(0.5, -0.5, 2.5, -3, 20)),
        [0.6487213, -0.6487213, 11.1824940, -19.0855369, 485165194.40979],
    )
    x = numbers(-1e6, -3.7, 0, 1e-4, 5, 12345)
    near(symexp(symlog(x)), x, rtol=1e-13, atol=0)


def two_hot_vector(y, bins):
    lower, weight = two_hot(torch.tensor(y, dtype=bins.dtype), bins)
    vector = torch.zeros(len(bins), dtype=bins.dtype)
    vector[lower] = 1 - weight
    vector[lower + 1] += weight
    return vector


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (0.3, [0, 0, 0.7, 0.3, 0]),
        (1.0, [0, 0, 0, 1, 0]),
        (5.0, [0, 0, 0, 0, 1]),
        (-7.0, [1, 0, 0, 0, 0]),
    ],
)
def test_two_hot_between_and_beyond_bins(y, expected):
    near(two_hot_vector(y, torch.arange(-2.0, 3.0)), expected)


@pytest.mark.parametrize(
    ("x", "expected", "decoded"),
    [
        (1.0, {131: 0.5985154, 132: 0.4014846}, 1.0),
        (0.1, {127: 0.3947804, 128: 0.6052196}, 0.1),
        (-1.0, {122: 0.4014846, 123: 0.5985154}, -1.0),
        (10.0, {142: 0.7733650, 143: 0.2266350}, 10.0),
        (100.0, {156: 0.6939847, 157: 0.3060153}, 100.0),
        (0.0, {127: 1.0}, 0.0),
        (1e9, {254: 1.0}, 485165194.4),
    ],
)
def test_two_hot_of_2023(x, expected, decoded):
    bins = torch.linspace(-20, 20, 255, dtype=torch.float64)
    vector = two_hot_vector(float(symlog(numbers(x))), bins)
    wanted = torch.zeros(255)
    for index, weight in expected.items():
        wanted[index] = weight
    near(vector, wanted)
    near(TwoHot(vector.clamp(min=1e-30).log(), BINS).mean, decoded, rtol=2e-5, atol=1e-5)


def test_two_hot_takes_the_mean_in_symlog_space():
    both = torch.full((255,), -torch.inf)
    # 100 lies between bins: a grid on which it is one is scaled here.
    lower, weight = two_hot(symlog(torch.tensor(100.0)), TwoHot(both, BINS).bins)
    both[127] = math.log(0.5)
    both[lower] = torch.log(0.5 * (1 - weight))
    both[lower + 1] = torch.log(0.5 * weight)
    near(TwoHot(both, BINS).mean, 9.0498756, rtol=1e-5)


def test_two_hot_loss_and_its_gradient():
    logits = torch.zeros(255, requires_grad=True)
    loss = TwoHot(logits, BINS).loss(torch.tensor(1.0))
    near(loss.item(), 5.5412635)
    loss.backward()
    wanted = torch.full((255,), 0.0039216)
    wanted[131], wanted[132] = -0.5945938, -0.3975630
    near(logits.grad, wanted, atol=3e-6)
    logits = torch.zeros(255)
    logits[131], logits[132] = 3.0, 2.0
    near(TwoHot(logits, BINS).loss(torch.tensor(1.0)), 3.0379677, rtol=1e-6)


def test_unimix():
    certain = torch.full((32,), -1e9)
    certain[5] = 0
    mixed = mix_uniform(certain, 0.01)
    near([mixed[5], mixed[0]], [0.9903125, 0.0003125])
    near(log_mix_uniform(certain, 0.01)[0], -8.0709061)
    certain = certain[:17]
    near(mix_uniform(certain, 0.01)[[5, 0]], [0.9905882, 0.00058824], atol=3e-8)
    near(log_mix_uniform(certain, 0.01)[0], -7.4383835)
    near(OneHotPolicy(certain, 0.01).entropy, 0.0793757, rtol=1e-6)


def test_largest_kl_of_mixed_latents():
    latent = Categorical(32, 32, 0.01)
    left, right = torch.full((2, 32, 32), -1e9)
    left[:, 0] = right[:, 1] = 0
    near(latent.kl(left.flatten(), right.flatten()), 255.3779, rtol=1e-6)
    near(Categorical(1, 32, 0.01).kl(left[0], right[0]), 7.9805596)


def test_categorical_kl_and_its_gradient():
    post = torch.tensor([0.7, 0.2, 0.1]).log()
    prior = torch.zeros(3, requires_grad=True)
    kl = Categorical(1, 3, 0.0).kl(post, prior)
    near(kl.item(), 0.2967937)
    kl.backward()
    near(prior.grad, [-0.3666667, 0.1333333, 0.2333333])
    near(Categorical(1, 3, 0.01).kl(post, torch.zeros(3)), 0.2906240, rtol=1e-6)


def test_straight_through():
    logits = torch.zeros(3, requires_grad=True)
    probabilities = F.softmax(logits, -1)
    sample = straight_through(torch.tensor([0.0, 1.0, 0.0]), probabilities)
    near(sample.detach(), [0, 1, 0])
    sample.backward(torch.tensor([1.0, 0.0, 0.0]))
    near(logits.grad, [2 / 9, -1 / 9, -1 / 9])


def test_draws_follow_the_probabilities():
    probabilities = torch.tensor([0.5, 0.0, 0.3, 0.2])
    uniform = (torch.arange(1000) + 0.5) / 1000
    drawn = draw_one_hot(probabilities.expand(1000, 4), uniform)
    near(drawn.mean(0), [0.5, 0, 0.3, 0.2], atol=1e-3)
    # A sum that rounding leaves below 1 must not lead beyond the last class.
    assert draw_one_hot(torch.tensor([0.5, 0.4999]), torch.tensor(0.99999)).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("mixing", "cont", "expected"),
    [
        (0.95, (1, 1, 1), (5.479991427, 4.677353029, 4.990990991)),
        (0.0, (1, 1, 1), (1.996996997, -0.996996997, 4.990990991)),
        (1.0, (1, 1, 1), (5.961060078, 4.976003030, 4.990990991)),
        (0.95, (1, 0, 1), (1.049849850, 0, 4.990990991)),
    ],
)
def test_lambda_returns(mixing, cont, expected):
    values = numbers(0.5, 1, -1, 3)
    returns = lambda_returns(numbers(1, 0, 2), DISCOUNT * numbers(*cont), values, mixing)
    near(returns, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("cont", "expected"),
    [
        ((1, 1, 1, 1), (1, 0.996996997, 0.994003012, 0.991018018)),
        ((1, 1, 0, 1), (1, 0.996996997, 0, 0)),
        ((0, 1, 1, 1), (0, 0, 0, 0)),
    ],
)
def test_reach(cont, expected):
    near(imagination_weights(numbers(*cont), DISCOUNT), expected, atol=1e-9)


def test_return_scale():
    scale, x = ReturnScale(0.99), torch.arange(101.0)
    steps = [
        (float(scale.update(x, FINE)), float(scale.low), float(scale.high)) for _ in range(1000)
    ]
    scales, lows, highs = (np.array(column) for column in zip(*steps, strict=True))
    near(lows[:5], [0.05, 0.0995, 0.148505, 0.19701995, 0.24504975], rtol=1e-6)
    near(highs[:5], [0.95, 1.8905, 2.821595, 3.74337905, 4.65594526], rtol=1e-6)
    near(scales[:5], [1, 1.791, 2.67309, 3.5463591, 4.4108955], rtol=1e-6)
    near((highs - lows)[[99, 999]], [57.0571, 89.9961], rtol=1e-5)
    near(torch.stack(percentiles(torch.arange(4.0), 0.05, 0.95)), [0.15, 2.85])


def test_return_scale_is_at_least_one():
    for low, high, expected in ((-1.0, 4.0, 0.4), (0.0, 0.2, 2.0)):
        scale = ReturnScale(1.0)
        scale.low.fill_(low)
        scale.high.fill_(high)
        near((3 - 1) / scale.update(torch.zeros(3), FINE), expected)


def test_reinforce():
    logits = torch.zeros(2, requires_grad=True)
    first = torch.tensor([1.0, 0.0])
    (-OneHotPolicy(logits, 0.0).log_probability(first) * 2).backward()
    near(logits.grad, [-1, 1])
    logits = torch.tensor([1.0, 0.0], requires_grad=True)
    policy = OneHotPolicy(logits, 0.0)
    near(policy.entropy.item(), 0.5822031)
    loss = -(policy.log_probability(first) * 0.5 + 3e-4 * policy.entropy)
    near(loss.item(), 0.1564562)
    (gradient,) = torch.autograd.grad(policy.entropy, logits)
    near(gradient, [-0.1966119, 0.1966119])


def test_gru_gates():
    cell = GruCell(1, 1, DREAMER_V3)
    cell.norm = nn.Identity()
    near(cell.gates(torch.zeros(1, 3), torch.ones(1, 1)).item(), 0.7310586)
    product = torch.tensor([[0.5, 1.0, 2.0]])
    near(cell.gates(product, torch.tensor([[0.25]])).item(), 0.4713923)


def test_layer_norm():
    def norm(*x):
        return F.layer_norm(numbers(*x), (len(x),), eps=NORM_EPS)

    near(norm(1, 2, 3, 4)[:2], [-1.3411045, -0.4470348])
    near(norm(1e-3, -1e-3), [0.0316070, -0.0316070])


def test_adam_adds_epsilon_after_the_correction():
    module = nn.Module()
    module.x = nn.Parameter(torch.zeros((), dtype=torch.float64))
    optimiser = Optimiser(module, lr=1.0, eps=1e-5, clip=1e9)
    changes = []
    for gradient in (1e-4, 1e-4, -2e-4, 0.5e-4):
        before = module.x.item()
        optimiser.step(module.x * gradient)
        changes.append(module.x.item() - before)
    near(changes, [-0.9090909, -0.9090909, 0.0706545, -0.0514778])


def test_slow_copy():
    source = nn.Linear(1, 1, bias=False)
    slow = SlowCopy(source, 0.02)
    followed = []
    for value in (1.0, 2.0, 3.0, 4.0):
        source.weight.data.fill_(value)
        slow.follow(source, FINE)
        followed.append(slow.network.weight.item())
    near(followed, [1, 1.02, 1.0596, 1.118408])


def test_normal_policy():
    policy = NormalPolicy(torch.zeros(2))
    near(policy.std, [0.8927174])
    near(policy.entropy, 1.3054533)
    near(NormalPolicy(torch.tensor([0.0, -1e9])).entropy, -0.8836466)
    near(NormalPolicy(torch.tensor([0.0, 1e9])).entropy, 1.4189385)


def test_initial_weights():
    assert pytest.approx(0.87962566, abs=1e-8) == initial.TRUNCATED_STD
    assert pytest.approx(1.13684723, abs=1e-8) == 1 / initial.TRUNCATED_STD
    torch.manual_seed(0)
    weight = initial.normal_(torch.empty(300, 500))
    sigma = math.sqrt(1 / 400) / initial.TRUNCATED_STD
    assert weight.std().item() == pytest.approx(math.sqrt(1 / 400), rel=0.01)
    assert weight.abs().max().item() == pytest.approx(2 * sigma, rel=0.01)
    weight = initial.normal_(torch.empty(64, 32, 4, 4))
    assert weight.std().item() == pytest.approx(math.sqrt(1 / (16 * 48)), rel=0.02)
    weight = initial.uniform_(torch.empty(300, 500))
    assert weight.abs().max().item() == pytest.approx(math.sqrt(3 / 400), rel=0.01)
    assert weight.std().item() == pytest.approx(math.sqrt(1 / 400), rel=0.01)


@pytest.mark.parametrize(("size", "width"), [(16, 32), (32, 64), (64, 128), (128, 256)])
def test_shapes_of_encoder_and_decoder(size, width):
    depth = 2
    encoder = Encoder(size, depth, DREAMER_V3)
    embedding = encoder(torch.zeros(3, size, size, 3))
    assert embedding.shape == (3, encoder.size) == (3, width * depth)
    decoder = Decoder(5, size, depth, DREAMER_V3)
    assert decoder(torch.zeros(3, 5)).shape == (3, size, size, 3)


@pytest.mark.parametrize("size", [8, 48, 65, 256])
def test_image_sizes_that_cannot_be_halved_to_four_are_refused(size):
    with pytest.raises(ValueError, match=f"16, 32, 64 or 128 pixels per side, got {size}"):
        Encoder(size, 2, DREAMER_V3)


def test_binary_loss():
    logit = torch.full((3,), 2.0)
    near(binary_loss(logit, torch.tensor([0.999, 1, 0])), [0.1289280, 0.1269280, 2.1269280])


def test_image_loss():
    image = torch.zeros(64, 64, 3)
    near(squared_error(image + 0.1, image, axes=3), 122.88, rtol=1e-5)


def test_actions_are_scaled_element_by_element():
    near(bounded(torch.tensor([0.5, -2.0, 4.0])), [0.5, -1, 1])
