"""The mathematics of DreamerV2 and Plan2Explore against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from test_numbers import near, numbers
from torch import nn

from curious_replay.agents.blocks.actor import BORDER, NormalPolicy, OneHotPolicy, TruncatedPolicy
from curious_replay.agents.blocks.convs import Decoder, Encoder
from curious_replay.agents.blocks.dense import DREAMER_V2, DREAMER_V2_NORM, Dense
from curious_replay.agents.blocks.ensemble import disagreement
from curious_replay.agents.blocks.heads import binary_loss, normal_loss
from curious_replay.agents.blocks.latents import Gaussian
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.returns import discounted_reach, lambda_returns, td_errors
from curious_replay.agents.blocks.slow_copy import TargetCopy


def gaussian_outputs(mean, std):
    """What a head must put out for this mean and standard deviation."""
    return numbers(mean, 2 * math.log((std - 0.1) / (2.1 - std)))


def test_gaussian_kl():
    latent = Gaussian(1)

    def kl(left, right):
        return latent.kl(gaussian_outputs(*left), gaussian_outputs(*right))

    near(kl((0, 1), (1, 2)), 0.4431472)
    near(kl((1, 0.5), (0, 1)), 0.8181472)
    near(kl((0.3, 0.7), (0.3, 0.7)), 0)
    # Of several variables it is the sum.
    left, right = numbers(0, 1, 0, 0), numbers(1, 0, 0, 0)
    expected = sum(Gaussian(1).kl(left[[i, i + 2]], right[[i, i + 2]]) for i in (0, 1))
    near(Gaussian(2).kl(left, right), expected)


def test_gaussian_draws():
    latent = Gaussian(2)
    outputs = torch.tensor([1.0, -2.0, 0.0, 0.0], requires_grad=True)
    drawn = latent.sample(outputs, torch.tensor([1.0, -1.0]))
    near(drawn, [2.1, -3.1])  # the deviation of 0 is 1.1
    drawn.sum().backward()
    near(outputs.grad, [1, 1, 0.25, -0.25])
    near(latent.mode(outputs), [1, -2])
    noise = latent.noise(4, 3, generator=torch.Generator().manual_seed(0))
    assert noise.shape == (4, 3, 2)
    near(latent.sample(torch.tensor([0.0, 0, -1e9, 1e9]), torch.ones(2)), [0.1, 2.1])


@pytest.mark.parametrize(
    ("discounts", "expected", "weights"),
    [
        ((0.99,) * 3, (3.570529792, 3.743785, 2.97), (1, 0.99, 0.9801)),
        ((0.999,) * 3, (3.650980572, 3.79435285, 2.997), (1, 0.999, 0.998001)),
        ((0.999, 0.5, 0.999), (2.326317604, 2.398575, 2.997), (1, 0.999, 0.4995)),
    ],
)
def test_lambda_returns_of_states_that_are_left(discounts, expected, weights):
    values = numbers(0.5, 1, -1, 3)
    returns = lambda_returns(numbers(0, 1, 0), numbers(*discounts), values, 0.95)
    near(returns, expected, rtol=1e-9, atol=1e-9)
    near(discounted_reach(numbers(*discounts)), weights, rtol=1e-12)
    if discounts[0] == 0.99:
        near(returns[1:] - values[:2], [3.243785, 1.97], rtol=1e-9)


def test_reach_goes_on_over_all_discounts_but_the_last():
    near(discounted_reach(numbers(0.99, 0.99, 0.99, 0.99)), [1, 0.99, 0.9801, 0.970299], rtol=1e-9)
    near(discounted_reach(numbers(0.999, 0.5, 0.999, 9)), [1, 0.999, 0.4995, 0.4990005], rtol=1e-9)
    near(discounted_reach(numbers(0, 0.999)), [1, 0])  # a start that is an end counts itself


def test_td_errors():
    values = numbers(1, 2, 0.5, 4).view(4, 1)
    first = torch.tensor([[True], [False], [False], [False]])
    errors = td_errors(
        numbers(0.1, 0.2, -0.3).view(3, 1), torch.full_like(values, 0.99), values, first
    )
    near(errors[1:, 0], [1.08, -1.305, 3.16], rtol=1e-9)
    near((errors[1:, 0].abs() + 0.01) ** 0.7, [1.0621810, 1.2112897, 2.2425466])


def steps_of(optimiser, module, gradients):
    changes = []
    for gradient in gradients:
        before = module.x.item()
        optimiser.step(module.x * gradient)
        changes.append(module.x.item() - before)
    return changes


def scalar(value=0.0):
    module = nn.Module()
    module.x = nn.Parameter(torch.tensor(value, dtype=torch.float64))
    return module


def test_adam_adds_epsilon_before_the_correction():
    module = scalar()
    optimiser = Optimiser(module, lr=1.0, eps=1e-5, clip=1e9, raw_epsilon=True)
    changes = steps_of(optimiser, module, (1e-4, 1e-4, -2e-4, 0.5e-4))
    near(changes, [-0.2402531, -0.3089636, 0.0330157, -0.0245367])


def test_adam_counts_on_after_loading():
    gradients = (1e-4, 1e-4, -2e-4, 0.5e-4)
    first, second = scalar(), scalar()
    optimiser = Optimiser(first, lr=1.0, eps=1e-5, clip=1e9, raw_epsilon=True)
    expected = steps_of(optimiser, first, gradients[:2])
    saved = {name: value.clone() for name, value in optimiser.tensors().items()}
    expected = steps_of(optimiser, first, gradients[2:])
    other = Optimiser(second, lr=1.0, eps=1e-5, clip=1e9, raw_epsilon=True)
    other.load_tensors(saved)
    near(steps_of(other, second, gradients[2:]), expected, rtol=1e-12)


def test_decay_takes_a_share_whatever_the_learning_rate():
    for lr in (1e-3, 1e-30):
        module = scalar(5.0)
        optimiser = Optimiser(module, lr=lr, eps=1e-5, clip=1e9, decay=1e-6)
        plain = scalar(5.0)
        Optimiser(plain, lr=lr, eps=1e-5, clip=1e9).step(plain.x * 2)
        optimiser.step(module.x * 2)
        near(plain.x - module.x, 5e-6, rtol=1e-6, atol=1e-12)


def test_decay_waits_for_a_finite_gradient():
    module = scalar(5.0)
    optimiser = Optimiser(module, lr=1e-3, eps=1e-5, clip=1e9, decay=0.1, raw_epsilon=True)
    optimiser.step(module.x * torch.inf)
    assert module.x.item() == 5.0


def test_target_copy_is_made_at_the_first_update_and_every_hundredth_after():
    source = nn.Linear(1, 1, bias=False)
    target = TargetCopy(source, every=100)
    followed = []
    for update in range(250):
        source.weight.data.fill_(update)
        target.follow(source, torch.tensor(True))
        followed.append(target.network.weight.item())
    assert followed == [0.0] * 100 + [100.0] * 100 + [200.0] * 50


def test_truncated_policy():
    policy = TruncatedPolicy(numbers(0, 0))
    near(policy.std, [1.1])
    near(policy.entropy, 0.6859778)
    outputs = torch.cat([torch.atanh(numbers(0.3)), gaussian_outputs(0, 0.4)[1:]])
    policy = TruncatedPolicy(outputs)
    near(policy.entropy, 0.3790357)
    near(policy.mode, [0.3])
    # The density at a draw is one over how fast draws change with the noise.
    mass = [0.5 * (1 + math.erf((x - 0.3) / 0.4 / math.sqrt(2))) for x in (-1, 0.5, 1)]
    noise = numbers((mass[1] - mass[0]) / (mass[2] - mass[0])).requires_grad_()
    drawn = policy.sample(noise)
    near(drawn, [0.5], rtol=1e-9)
    (speed,) = torch.autograd.grad(drawn, noise)
    near(-speed.log(), [-0.0861629])


def test_truncated_draws_follow_the_density_and_stay_inside():
    for centre, std in ((0.0, 1.1), (0.999999, 0.1), (-0.9, 2.1)):
        outputs = torch.tensor([math.atanh(centre), 0.0])
        policy = TruncatedPolicy(outputs)
        policy.std = torch.tensor([std])
        policy.low, policy.high = (-1 - policy.centre) / std, (1 - policy.centre) / std
        drawn = policy.sample(((torch.arange(10_000) + 0.5) / 10_000).unsqueeze(-1))
        assert drawn.abs().max() <= 1
        x = np.linspace(-1, 1, 100_001)
        density = np.exp(-0.5 * ((x - centre) / std) ** 2)
        density /= density.sum()
        near(drawn.mean().item(), (x * density).sum(), atol=1e-3)
        near(drawn.square().mean().item(), (x**2 * density).sum(), atol=1e-3)


def test_truncated_draws_at_the_ends_of_the_noise():
    outputs = torch.tensor([0.3, 0.2], requires_grad=True)
    for end, sign in ((0.0, -1), (1 - 2**-24, 1)):
        drawn = TruncatedPolicy(outputs).sample(torch.tensor([end]))
        assert sign * drawn.item() == pytest.approx(1 - BORDER, abs=1e-7)
        (gradient,) = torch.autograd.grad(drawn.sum(), outputs)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("noise", [0.1, 0.5, 0.97])
def test_gradient_of_a_truncated_draw(noise):
    """Against finite differences at the same noise, with respect to both outputs."""
    outputs = numbers(0.4, -0.8).requires_grad_()
    drawn = TruncatedPolicy(outputs).sample(numbers(noise))
    (gradient,) = torch.autograd.grad(drawn.sum(), outputs)
    for index in range(2):
        step = torch.zeros(2, dtype=torch.float64)
        step[index] = 1e-6
        moved = [
            TruncatedPolicy(outputs.detach() + s).sample(numbers(noise)) for s in (step, -step)
        ]
        near(gradient[index], (moved[0] - moved[1]).item() / 2e-6, rtol=1e-5)


def test_modes_of_the_other_policies():
    assert OneHotPolicy(torch.tensor([0.1, 0.7, 0.2]), 0.01).mode.tolist() == [0, 1, 0]
    near(NormalPolicy(torch.tensor([0.5, 0.0])).mode, [math.tanh(0.5)])


@pytest.mark.parametrize(
    ("size", "down", "up"),
    [
        (64, (31, 14, 6, 2), (5, 13, 30, 64)),
        (32, (15, 6, 2), (5, 14, 32)),
        (128, (63, 30, 14, 6, 2), (5, 13, 29, 62, 128)),
    ],
)
def test_shapes_without_padding(size, down, up):
    depth = 48 if size == 64 else 2
    encoder = Encoder(size, depth, DREAMER_V2_NORM, valid=True)
    seen = []
    for finish in encoder.finish:
        finish.register_forward_hook(lambda _, given, __: seen.append(given[0].shape[1]))
    embedding = encoder(torch.zeros(2, size, size, 3))
    assert tuple(seen) == down
    assert embedding.shape == (2, encoder.size)
    decoder = Decoder(5, size, depth, DREAMER_V2, valid=True)
    grown = []
    for finish in decoder.finish:
        finish.register_forward_hook(lambda _, given, __: grown.append(given[0].shape[1]))
    assert decoder(torch.zeros(2, 5)).shape == (2, size, size, 3)
    assert (*grown, size) == up
    if size == 64:
        assert encoder.size == decoder.open.out_features == 1536
        assert [tuple(weight.shape) for weight in decoder.weights] == [
            (1536, 192, 5, 5),
            (192, 96, 5, 5),
            (96, 48, 6, 6),
            (48, 3, 6, 6),
        ]


def test_hidden_layers_have_biases_also_before_a_norm():
    for style, count in ((DREAMER_V2, 2 * 3 + 3), (DREAMER_V2_NORM, 2 * 3 + 3 + 6)):
        layer = Dense(2, 3, style)
        assert sum(p.numel() for p in layer.parameters()) == count
    layer = Dense(1, 1, DREAMER_V2)
    layer.weight.data.fill_(1.0)
    near(layer(torch.tensor([[2.0], [-1.0]])).detach(), [[2.0], [math.expm1(-1)]])  # ELU
    assert layer.finish.bias.item() == 0


def test_first_weights_are_glorot_uniform():
    torch.manual_seed(0)
    weight = Dense(500, 300, DREAMER_V2).weight
    assert weight.abs().max().item() == pytest.approx(math.sqrt(6 / 800), rel=0.01)
    assert weight.std().item() == pytest.approx(math.sqrt(2 / 800), rel=0.01)


def test_disagreement():
    predictions = numbers(1, 2, 3, 2, 2, 5).view(3, 1, 2)
    near(disagreement(predictions), [1.1153551])
    assert disagreement(torch.ones(3, 4, 2)).tolist() == [0] * 4


def test_no_gradient_is_lost_where_all_agree():
    predictions = torch.ones(3, 4, 2, requires_grad=True)
    disagreement(predictions).sum().backward()
    assert predictions.grad.abs().max() == 0


def test_soft_binary_loss():
    losses = binary_loss(torch.full((3,), 2.0), torch.tensor([0.999, 1, 0]))
    near(losses, [0.1289280, 0.1269280, 2.1269280])
    near(binary_loss(numbers(6.9067548), numbers(0.999)), [0.0079073], atol=5e-8)


def test_normal_loss():
    image = torch.zeros(64, 64, 3, dtype=torch.float64)
    loss = normal_loss(image + 0.1, image, axes=3)
    near(loss, 11353.3567, rtol=5e-9)
    near(loss - 61.44, 11291.9167, rtol=5e-9)
    reward = normal_loss(numbers(0.1), numbers(0.0), axes=1)
    error = math.sqrt(80 / image.numel())
    near(normal_loss(image + error, image, axes=3) + reward, 11332.8406, rtol=5e-9)
    # In single precision it still tells a hundredth of a nat.
    single = normal_loss(image.float() + 0.1, image.float(), axes=3)
    near(single, 11353.3567, rtol=0, atol=0.01)
