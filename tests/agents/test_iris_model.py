"""IRIS's transformer, its cache, and the dreams of its world model."""

import pytest
import torch
from helpers.agents.small_iris import random_tokens
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.latents import draw
from curious_replay.agents.blocks.tokens.tokenizer import PLACES
from curious_replay.agents.blocks.tokens.transformer import Transformer, seeded
from curious_replay.agents.configs.iris import SIZES
from curious_replay.agents.iris_model import BLOCK, Dream, TokenModel


@pytest.fixture
def model():
    """A world model of a context of 4 steps whose opinions are strong."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = TokenModel(SIZES["debug"], 4, 4)
        for name, value in made.named_parameters():
            if "norm" not in name:
                torch.nn.init.normal_(value, std=0.3 if "head.2.bias" in name else 1.0)
    return made.requires_grad_(False)


@pytest.mark.parametrize("pieces", [[20], [1] * 20, [16, 1, 1, 2], [3, 17]])
def test_the_cache_says_what_a_full_pass_says(pieces):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        transformer = Transformer(3, 2, 8).requires_grad_(False)
        text, other = torch.randn(2, 5, 20, 8)
    full = transformer(text)
    cache = transformer.make_cache(5, 20)
    for _ in range(2):  # a cache that was full and cleared is as good as new
        parts = [transformer(part, cache=cache) for part in text.split(pieces, 1)]
        torch.testing.assert_close(torch.cat(parts, 1), full, rtol=1e-5, atol=1e-5)
        assert cache.size == 20
        with pytest.raises(ValueError, match="21 tokens do not fit into a cache of 20"):
            transformer(text[:, :1], cache=cache)
        cache.clear()
        transformer(other, cache=cache)  # leaves something behind
        cache.clear()


def test_no_token_sees_what_comes_after_it():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        transformer = Transformer(2, 2, 8).requires_grad_(False)
        text = torch.randn(1, 10, 8)
    changed = text.clone()
    changed[:, 6:, 0] += 1
    before, after = transformer(text), transformer(changed)
    torch.testing.assert_close(before[:, :6], after[:, :6])
    assert (before[:, 6:] - after[:, 6:]).abs().amax(-1).min() > 0.01


@pytest.mark.parametrize(("size", "std"), [("paper", 0.02), ("nano", 0.1), ("micro", 0.2)])
def test_first_weights_are_as_large_as_the_size_says(size, std):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = TokenModel(SIZES[size], 4, 4)
    for weight in (made.positions.weight, made.transformer.layers[0].dense.weight):
        assert weight.std().item() == pytest.approx(std, rel=0.05)
    assert not made.transformer.layers[0].dense.bias.any()


def test_dropout_is_decided_by_the_generator():
    with torch.random.fork_rng():
        transformer = Transformer(1, 2, 8).requires_grad_(False)
        text = torch.randn(1, 4, 8)

    def drop(seed):
        with seeded(torch.Generator().manual_seed(seed)):
            return transformer(text, dropout=0.5)

    assert torch.equal(drop(0), drop(0))
    assert not torch.equal(drop(0), drop(1))
    assert not torch.equal(drop(0), transformer(text))


def test_an_episode_within_a_window_is_read_as_one_of_its_own(model):
    tokens, actions = random_tokens(2, 4, PLACES), random_tokens(2, 4, below=4)
    rewards, ends = random_tokens(2, 4, below=3), random_tokens(2, 4, below=2)
    is_first = torch.tensor([[True, False, True, False], [True, False, False, False]])
    whole = model.costs(tokens, actions, rewards, ends, is_first)
    for window in (slice(0, 2), slice(2, 4)):
        inputs = (x[:1, window] for x in (tokens, actions, rewards, ends, is_first))
        part = model.costs(*inputs)
        for found, expected in zip(whole, part, strict=True):
            torch.testing.assert_close(found[:1, window], expected, rtol=1e-4, atol=1e-5)
    alone = model.costs(*(x[1:] for x in (tokens, actions, rewards, ends, is_first)))
    torch.testing.assert_close(whole.tokens[1:], alone.tokens, rtol=1e-4, atol=1e-5)


def test_what_an_action_leads_to_is_predicted_from_it(model):
    tokens, actions = random_tokens(1, 3, PLACES), torch.tensor([[0, 1, 2]])
    zeros, first = torch.zeros(1, 3, dtype=torch.int64), torch.tensor([[True, False, False]])
    before = model.costs(tokens, actions, zeros, zeros, first)
    after = model.costs(tokens, torch.tensor([[0, 3, 2]]), zeros, zeros, first)
    for old, new in zip(before, after, strict=True):
        torch.testing.assert_close(old[:, :2], new[:, :2])  # the action of step 1 comes after it
        assert abs(old[0, 2] - new[0, 2]) > 1e-4
    last = model.costs(tokens, torch.tensor([[0, 1, 3]]), zeros, zeros, first)
    torch.testing.assert_close(last, before)  # nothing is known of what the last one led to


def slow_step(model, text, action, noise):
    """What follows `text`, a list of embedded tokens, by passes over all of it without a cache."""

    def said():
        stacked = torch.stack(text, 1) + model.positions.weight[: len(text)]
        return model.transformer(stacked)[:, -1]

    text.append(model.actions(action))
    chances = iter(noise.T.contiguous())
    reward, end = (
        draw(F.softmax(head(said()), -1), next(chances))
        for head in (model.reward_head, model.end_head)
    )
    tokens = []
    for chance in chances:
        tokens.append(draw(F.softmax(model.token_head(said()), -1), chance))
        text.append(model.tokens(tokens[-1]))
    return torch.stack(tokens, 1), reward - 1, end


def test_a_dream_is_what_full_passes_say_also_when_the_context_is_full(model):
    tokens = random_tokens(3, PLACES)
    dream, room = Dream(model, tokens), 4 * BLOCK
    text = [*model.tokens(tokens).unbind(1)]
    restarts, pictures = 0, set()
    for t in range(9):
        if len(text) + BLOCK > room:  # the next action and picture would not fit
            text, restarts = [*model.tokens(tokens).unbind(1)], restarts + 1
        action = random_tokens(3, below=4, seed=t)
        noise = torch.rand(3, PLACES + 2, generator=torch.Generator().manual_seed(t))
        outcome = dream.step(action, noise)
        tokens, reward, end = slow_step(model, text, action, noise)
        assert torch.equal(outcome.tokens, tokens)
        pictures |= {tuple(row) for row in tokens.tolist()}
        assert torch.equal(outcome.reward, reward.float())
        assert torch.equal(outcome.ends, end.float())
    assert restarts == 2
    assert len(pictures) > 10  # it does not say the same all the time


def test_dreams_are_drawn_by_their_probabilities(model):
    rows = 20_000
    dream = Dream(model, random_tokens(1, PLACES).expand(rows, -1))
    noise = torch.rand(rows, PLACES + 2, generator=torch.Generator().manual_seed(0))
    outcome = dream.step(torch.zeros(rows, dtype=torch.int64), noise)
    text = torch.cat([model.tokens(random_tokens(1, PLACES)), model.actions.weight[:1][None]], 1)
    said = model.transformer(text + model.positions.weight[:BLOCK])[:, -1]
    for head, values in (
        (model.reward_head, outcome.reward + 1),
        (model.end_head, outcome.ends),
        (model.token_head, outcome.tokens[:, 0]),
    ):
        expected = F.softmax(head(said)[0], -1)
        found = torch.bincount(values.long(), minlength=len(expected)) / rows
        torch.testing.assert_close(found, expected, rtol=0, atol=0.015)
