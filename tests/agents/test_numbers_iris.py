"""Numbers of IRIS that were worked out by hand."""

import math

import pytest
import torch

from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.returns import lambda_returns, td_errors
from curious_replay.agents.blocks.tokens.tokenizer import Tokenizer, codebook_losses, nearest
from curious_replay.agents.configs.iris import SIZES
from curious_replay.agents.iris import ActorCritic
from curious_replay.agents.iris_model import Costs, TokenModel, reward_class

CODES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_parameter_counts():
    size = SIZES["paper"]
    with torch.device("meta"):  # shapes without memory
        tokenizer = Tokenizer(64, size.channels, size.groups, size.blocks, size.codes, size.code)
        assert count(tokenizer) == 4_027_523
        assert count(TokenModel(size, 17, 20)) == 8_450_821
        assert count(ActorCritic(size, 64, 17)) == 3_224_626


def test_the_nearest_code_is_taken_and_both_move():
    """Squared distances .05, 1.45, 3.65; both losses are .05 / 2."""
    code = torch.tensor([[0.9, 0.2]], requires_grad=True)
    codes = CODES.clone().requires_grad_()
    token = nearest(code, codes)
    assert token.tolist() == [0]
    to_code, to_book = codebook_losses(code, codes[token])
    assert to_code.item() + to_book.item() == pytest.approx(0.05)
    (of_codes,) = torch.autograd.grad(to_code, codes, retain_graph=True)
    torch.testing.assert_close(of_codes[0], torch.tensor([0.1, -0.2]))
    assert not of_codes[1:].any()
    (of_code,) = torch.autograd.grad(to_book, code)
    torch.testing.assert_close(of_code[0], torch.tensor([-0.1, 0.2]))
    assert torch.autograd.grad(to_book, codes, allow_unused=True) == (None,)


@pytest.mark.parametrize(
    ("end", "expected"), [(None, [2.776316474, 1.82657125, 1.985]), (1, [1.04975, 0, 1.985])]
)
def test_returns(end, expected):
    """The reward of the fourth step is not used: its value stands for all that follows."""
    rewards = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
    values = torch.tensor([0.5, 1.0, -1.0, 3.0], dtype=torch.float64)
    cont = torch.ones(3, dtype=torch.float64)
    if end is not None:
        cont[end] = 0
    found = lambda_returns(rewards, 0.995 * cont, values, 0.95)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_td_errors():
    """Values 1, 2, .5; rewards .1 and -2 as signs; the second arrival is an end."""
    values = torch.tensor([[1.0], [2.0], [0.5]])
    rewards = torch.tensor([[0.1], [-2.0]]).sign()
    discounts = 0.995 * torch.tensor([[1.0], [1.0], [0.0]])
    first = torch.tensor([[True], [False], [False]])
    found = td_errors(rewards, discounts, values, first)[:, 0]
    assert math.isnan(found[0])
    torch.testing.assert_close(found[1:], torch.tensor([1 + 1.99 - 1, -1 - 2.0]))


def test_rewards_are_known_by_their_sign():
    assert reward_class(torch.tensor([1.0, 0.1, 1.1, -0.9, 0.0])).tolist() == [2, 2, 2, 0, 1]


def test_losses_of_a_model_that_knows_nothing():
    """Uniform logits: ln 512 a token, ln 3 for the reward, ln 2 for the end."""
    with torch.random.fork_rng():
        model = TokenModel(SIZES["paper"], 4, 3)
    for head in (model.token_head, model.reward_head, model.end_head):
        torch.nn.init.zeros_(head[-1].weight)
    first = torch.tensor([[True, False, True], [True, False, False]])
    tokens = torch.zeros(2, 3, 16, dtype=torch.int64)
    zeros = torch.zeros(2, 3, dtype=torch.int64)
    costs = model.costs(tokens, zeros, zeros, zeros, first)
    predicted = torch.where(first, 15.0, 16.0)  # of a first step all tokens but one
    torch.testing.assert_close(costs.tokens, predicted * 6.2383246)
    torch.testing.assert_close(costs.reward, ~first * 1.0986123)
    torch.testing.assert_close(costs.end, ~first * 0.6931472)
    assert costs.loss(first).item() == pytest.approx(6.2383246 + 1.0986123 + 0.6931472, rel=1e-6)


def test_loss_is_a_mean_over_what_was_predicted():
    first = torch.tensor([[True, False, False]])
    costs = Costs(
        torch.tensor([[15.0, 32.0, 0.0]]),  # 15 + 16 + 16 tokens
        torch.tensor([[0.0, 3.0, 1.0]]),
        torch.tensor([[0.0, 0.5, 0.5]]),
    )
    assert costs.loss(first).item() == pytest.approx(47 / 47 + 2 + 0.5)


def test_decay_takes_linear_weights_only():
    """AdamW: a weight without a gradient shrinks by the learning rate times the decay."""
    with torch.random.fork_rng():
        model = TokenModel(SIZES["debug"], 4, 3)
    assert "transformer.layers.0.dense.weight" in model.linear_weights
    before = {name: value.clone() for name, value in model.named_parameters()}
    optimiser = Optimiser(model, 1e-1, 1e-8, 1.0, decay=1e-1 * 0.01, decayed=model.linear_weights)
    optimiser.step(sum((0 * value).square().sum() for value in model.parameters()))
    for name, value in model.named_parameters():
        share = 0.999 if name in model.linear_weights else 1.0
        torch.testing.assert_close(value, before[name] * share, rtol=1e-6, atol=0)
    kinds = {"tokens", "actions", "positions"}
    assert not any(name.split(".")[0] in kinds or "norm" in name for name in model.linear_weights)
