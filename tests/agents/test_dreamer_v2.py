"""DreamerV2: sizes, losses of the model, masks."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.agents.batches import batch_of, check_td_where_no_step_led, count
from helpers.agents.small_v2 import DISCRETE, SPACES, make

from curious_replay.agents.blocks.rssm import State
from curious_replay.agents.configs.dreamer_v2 import SIZES, DreamerV2Config
from curious_replay.agents.dreamer import ActorCriticOutputs, Belief
from curious_replay.agents.dreamer_v2 import ActorCritic, DreamerV2, V2Model
from curious_replay.agents.spaces import Spaces


@pytest.mark.parametrize(
    ("size", "spaces", "ends", "expected"),
    [
        ("D", Spaces(17, discrete=True), True, (28_459_589, 1_310_817, 1_304_401)),
        ("G", Spaces(6, discrete=False), False, (11_151_940, 579_212, 574_801)),
    ],
)
def test_parameter_counts(size, spaces, ends, expected):
    config = DreamerV2Config(size=size, discount_head=ends)
    with torch.device("meta"):  # shapes without memory
        model = V2Model(config, spaces)
        behaviour = ActorCritic(config, spaces, model.features)
    assert (count(model), count(behaviour.actor), count(behaviour.critic)) == expected


def test_sizes_are_all_named_in_the_settings():
    names = DreamerV2Config.__annotations__["size"].__args__
    assert set(names) == set(SIZES)


@pytest.mark.parametrize("size", SIZES)
def test_every_size_can_be_made(size):
    with torch.device("meta"):
        model = V2Model(DreamerV2Config(size=size), SPACES["continuous"])
    assert model.latent.size == SIZES[size].latents * max(1, SIZES[size].classes)


def believed(*values):
    """A belief of as many steps as there are values, and a KL that gives just these."""
    kl = torch.tensor([values], requires_grad=True)
    belief = Belief(State(*torch.zeros(2, 1, 2, 1)), *torch.zeros(3, 1, 2, 1))
    return belief, kl


@pytest.mark.parametrize(
    ("kl", "free", "expected", "gradient"),
    [
        ((0.2, 3.0), 1.0, 1.6, 0.5),
        ((0.2, 1.4), 1.0, 1.0, 0.0),
        ((0.2, 0.3), 1.0, 1.0, 0.0),
        ((0.2, 3.0), 0.0, 1.6, 0.5),
    ],
)
@pytest.mark.parametrize("balance", [0.8, 0.3])
def test_free_nats_hold_for_the_mean_of_the_batch(kl, free, expected, gradient, balance):
    agent = make(free_nats=free, kl_balance=balance)
    belief, values = believed(*kl)
    agent.model.latent.kl = lambda left, right: values
    raw, cost = agent.model.kl_loss(belief)
    assert raw.tolist() == [pytest.approx(list(kl))]
    assert cost.item() == pytest.approx(expected)
    cost.backward()
    assert values.grad.tolist() == [[pytest.approx(gradient)] * 2]


def test_balance_is_the_share_that_moves_the_prior():
    agent = make("continuous")
    prior, posterior = torch.randn(2, 3, 1, 12).requires_grad_()
    belief = Belief(State(*torch.zeros(2, 3, 1, 1)), prior, posterior, torch.zeros(3, 1, 1))
    gradients = {}
    for balance in (1.0, 0.0, 0.8):
        agent.model.config = dataclasses.replace(agent.config, kl_balance=balance, kl_scale=2.0)
        _, cost = agent.model.kl_loss(belief)
        gradients[balance] = torch.autograd.grad(cost, [prior, posterior])
        assert cost.item() == pytest.approx(
            2 * agent.model.latent.kl(posterior, prior).mean().item()
        )
    only_prior, only_posterior, both = gradients[1.0], gradients[0.0], gradients[0.8]
    assert only_prior[0].abs().max() > 1e-3 and only_prior[1].abs().max() == 0
    assert only_posterior[1].abs().max() > 1e-3 and only_posterior[0].abs().max() == 0
    torch.testing.assert_close(both[0], 0.8 * only_prior[0])
    torch.testing.assert_close(both[1], 0.2 * only_posterior[1])


@pytest.mark.parametrize("kind", SPACES)
def test_signals_add_up(kind):
    agent = make(kind, free_nats=100.0, kl_scale=2.0)
    feedback = agent.update(batch_of(kind))
    model, likelihood, kl = (feedback.signals[name] for name in ("model", "likelihood", "kl"))
    np.testing.assert_allclose(model, likelihood + 2 * kl, rtol=1e-6)
    # The loss has the KL of the batch, which here is held at its free nats.
    assert feedback.metrics["model/loss"] == pytest.approx(likelihood.mean() + 200, rel=1e-6)
    heads = ["image", "reward"] + ["discount"] * (kind == "discrete")
    total = sum(feedback.metrics[f"model/{name}"] for name in heads)
    assert total == pytest.approx(likelihood.mean(), rel=1e-6)


def test_likelihood_has_the_constants_of_its_normal_distributions():
    """A perfect prediction of a 32 x 32 image and a reward costs 0.919 for each number."""
    agent, batch = make("continuous"), batch_of("continuous", ends=0)
    replayed = agent.load(batch)
    belief = agent.model.believe(replayed, torch.randn(8, 3, 6))
    agent.model.picture = lambda features: replayed.image
    agent.model.reward_head.forward = lambda features: replayed.reward.unsqueeze(-1)
    losses = agent.model.likelihood_losses(replayed, belief)
    assert set(losses) == {"image", "reward"}
    assert losses["image"].mean().item() == pytest.approx(32 * 32 * 3 * 0.9189385, rel=1e-6)
    assert losses["reward"].mean().item() == pytest.approx(0.9189385, rel=1e-6)


def test_rewards_are_squashed_before_anything_learns_from_them():
    batch = batch_of(rows=1, steps=5, ends=0)
    batch["reward"][0] = [0, 1, 0.1, 1.1, -0.9]
    squashed = make().load(batch).reward[:, 0]
    expected = [0, 0.7615942, 0.0996680, 0.8004990, -0.7162979]
    np.testing.assert_allclose(squashed, expected, atol=6e-8)
    raw = make(reward_transform="none").load(batch).reward[:, 0]
    np.testing.assert_allclose(raw, batch["reward"][0])


def test_discount_head_learns_the_discount_itself():
    agent, batch = make(), batch_of(rows=1, steps=3, ends=0)
    batch["is_terminal"][0] = [False, True, False]
    agent.model.discount_head.forward = lambda features: torch.full((3, 1, 1), 2.0)
    replayed = agent.load(batch)
    belief = agent.model.believe(replayed, torch.rand(3, 1, 4))
    losses = agent.model.likelihood_losses(replayed, belief)["discount"][:, 0]
    np.testing.assert_allclose(losses, [0.1289280, 2.1269280, 0.1289280], rtol=1e-6)


@pytest.mark.parametrize("name", ["image", "reward", "discount"])
@pytest.mark.parametrize("heads", ["all", "observed"])
def test_only_some_heads_shape_the_state(heads, name):
    agent, batch = make(grad_heads=heads), batch_of()
    replayed = agent.load(batch)
    belief = agent.model.believe(replayed, torch.rand(8, 3, 4))
    agent.model.likelihood_losses(replayed, belief)[name].sum().backward()
    shaped = agent.model.rssm.gru.weight.grad
    shapes = shaped is not None and bool(shaped.abs().max() > 0)
    assert shapes == (heads == "all" or name == "image")
    head = {
        "image": agent.model.decoder.open,
        "reward": agent.model.reward_head[-1],
        "discount": agent.model.discount_head[-1],
    }
    assert head[name].weight.grad.abs().max() > 0  # the head itself learns in any case


@pytest.mark.parametrize("td", ["predicted", "imagined", "replayed"])
def test_td_error(td):
    """Worked numbers: V = 1, 2, .5, 4; one step is terminal, which the published error ignores."""
    agent = make("continuous", td=td)
    batch = batch_of("continuous", rows=1, steps=4, ends=0)
    batch["is_terminal"][:] = [[False, False, True, False]]
    batch["reward"][:] = [[9, 0.1, 0.2, -0.3]]
    reward, other = torch.tensor([0.1, 0.2, -0.3, 1.0]), torch.full((4,), 9.0)
    rewards = [reward, other] if td == "predicted" else [other, reward]
    outputs = ActorCriticOutputs(torch.stack(rewards), torch.zeros(5, 4), {})
    values = torch.tensor([1.0, 2.0, 0.5, 4.0]).view(4, 1)
    error = agent._td_error(agent.load(batch), outputs, values)
    second = -1.305 if td == "predicted" else 0.2 - 2
    np.testing.assert_allclose(error[:, 0], [np.nan, 1.08, second, 3.16], rtol=1e-6)


def test_td_is_of_the_critic_after_its_update_and_knows_where_no_step_led():
    agent, batch = make("continuous", critic_lr=1e-2), batch_of("continuous")
    assert batch["is_first"][:, 1:].any()
    starts, train = [], agent.train_actor_critic
    agent.train_actor_critic = lambda replayed, start, **more: (
        starts.append(start) or train(replayed, start, **more)
    )
    td = agent.update(batch).signals["td"]
    check_td_where_no_step_led(td, batch["is_first"])
    with torch.no_grad():
        features = starts[0].feature.view(8, 3, -1)
        values, rewards = agent.behaviour.value(features), agent.model.reward(features)
    expected = (rewards[:-1] + 0.99 * values[1:] - values[:-1]).T.numpy()
    led = ~batch["is_first"][:, 1:]
    np.testing.assert_allclose(td[:, 1:][led], expected[led], rtol=1e-4)


def model_losses(agent, batch, noise):
    replayed = agent.load(batch)
    belief = agent.model.believe(replayed, noise)
    likelihoods = agent.model.likelihood_losses(replayed, belief)
    return torch.stack([*likelihoods.values(), agent.model.kl_loss(belief)[0]])


NOISE = {"discrete": torch.rand(8, 3, 4), "continuous": torch.randn(8, 3, 6)}


@pytest.mark.parametrize("kind", SPACES)
def test_rows_in_another_order_have_the_same_losses(kind):
    agent, batch, noise = make(kind), batch_of(kind), NOISE[kind]
    order = [2, 0, 1]
    losses = model_losses(agent, batch, noise)
    moved = {name: array[order] for name, array in batch.items()}
    torch.testing.assert_close(model_losses(agent, moved, noise[:, order]), losses[..., order])


@pytest.mark.parametrize("kind", SPACES)
def test_an_episode_does_not_depend_on_what_stands_before_it(kind):
    agent, batch, noise = make(kind), batch_of(kind, rows=1, ends=0), NOISE[kind][:, :1]
    batch["is_first"][0, 4] = True
    losses = model_losses(agent, batch, noise)
    for name in ("image", "action", "reward"):
        batch[name][0, :4] = batch[name][0, 4:]
    other = model_losses(agent, batch, noise)
    torch.testing.assert_close(other[:, 4:], losses[:, 4:])
    assert not torch.allclose(other[:, :4], losses[:, :4])


@pytest.mark.parametrize("kind", SPACES)
def test_the_action_before_a_step_explains_it(kind):
    """Losses of step t depend on the action of step t - 1, not on its own."""
    agent, batch, noise = make(kind), batch_of(kind, rows=1, ends=0), NOISE[kind][:, :1]
    before = model_losses(agent, batch, noise)
    batch["action"][0, 3] = np.roll(batch["action"][0, 3], 1)
    after = model_losses(agent, batch, noise)
    same = torch.isclose(before, after, rtol=0, atol=0).all(0)[:, 0]
    assert same.tolist() == [True] * 4 + [False] * 4


def test_image_loss_falls():
    agent, batch = make("continuous", model_lr=3e-3), batch_of("continuous", ends=0)
    batch["image"][:] = 40
    first = agent.update(batch).metrics["model/image"]
    for _ in range(60):
        last = agent.update(batch).metrics["model/image"]
    floor = 32 * 32 * 3 * 0.9189385
    assert last - floor < 0.2 * (first - floor)
    video = agent.open_loop(batch, context=3)
    assert abs(video.astype(int) - 40).mean() < 20


def test_evaluation_takes_the_mode_and_exploration_draws():
    for kind in SPACES:
        agent, batch = make(kind), batch_of(kind, rows=200)
        observation = {name: array[:, 0] for name, array in batch.items()}
        # One observation for all: what differs between rows is chance.
        observation = {name: np.repeat(array[:1], 200, 0) for name, array in observation.items()}
        agent.model.latent.sample = lambda outputs, noise, agent=agent: agent.model.latent.mode(
            outputs
        )
        generator = torch.Generator().manual_seed(0)
        drawn, state = agent.act(agent.start(200), observation, generator, explore=True)
        mode, _ = agent.act(agent.start(200), observation, generator, explore=False)
        assert len(np.unique(drawn, axis=0)) > 3
        assert len(np.unique(mode, axis=0)) == 1
        outputs = agent.behaviour.actor(State(state["deter"], state["stoch"]).feature)
        expected = agent.behaviour.actor.policy(outputs).mode[0].detach().numpy()
        np.testing.assert_allclose(mode[0], expected, rtol=1e-5)


def test_images_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="16, 32, 64 or 128 pixels per side, got 48"):
        DreamerV2(DISCRETE, Spaces(4, discrete=True, image=(48, 48)), 0)
