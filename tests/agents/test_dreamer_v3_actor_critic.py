"""DreamerV3: what its actor and its critic learn from imagination."""

import numpy as np
import pytest
import torch
from helpers.agents.actor_critic_steps import CONT, start_of
from helpers.agents.small_v3 import make

from curious_replay.agents.blocks.rssm import State
from curious_replay.agents.blocks.shortcuts.lookup import as_tensor
from curious_replay.agents.dreamer import Imagined
from curious_replay.agents.feedback import FiniteCheck


def learn(agent, rewards=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    reward = rewards or (lambda imagined: agent.model.reward(imagined.features[1:]))
    start, finite = start_of(agent, seed), FiniteCheck(agent.device)
    return agent.behaviour.learn(agent.model, start, CONT, reward, generator, finite)


def test_imagination_has_one_more_state_than_steps():
    agent = make()
    start = State(torch.zeros(5, 16), agent.model.latent.mode(torch.randn(5, 16)))
    imagined = agent.behaviour.imagine(agent.model, start, agent.generator)
    assert imagined.features.shape == (5, 5, 32)
    assert imagined.actions.shape == (5, 5, 4)
    torch.testing.assert_close(as_tensor(imagined.features)[0], start.feature)


def gradient_of_actor(agent):
    """What one update does to the actor, as gradients; parameters are left as they were."""
    found = {}

    def catch(loss, *_, **__):
        parameters = dict(agent.behaviour.actor.named_parameters())
        gradients = torch.autograd.grad(loss, parameters.values(), retain_graph=True)
        found.update(zip(parameters, gradients, strict=True))
        return torch.zeros(())

    agent.behaviour.actor_adam.step = catch
    agent.behaviour.critic_adam.step = lambda loss, *_, **__: torch.zeros(())
    learn(agent)
    return found


def random_heads(agent):
    """Heads that say something: reward and critic begin as zeros."""
    torch.manual_seed(7)
    for head in (agent.model.reward_head, agent.behaviour.critic):
        head[-1].weight.data.normal_(std=0.5)


def test_continuous_actor_follows_the_gradient_of_its_return():
    """Against finite differences of the objective, whose normaliser is held at 1."""
    agent = make("continuous", entropy=0.1).double()
    random_heads(agent)
    agent.model.latent.sample = lambda outputs, noise: torch.tanh(outputs)  # smooth dynamics
    agent.behaviour.return_scale.update = lambda returns, fine: torch.ones(())
    # Small actions, since those beyond 1 are cut off with a gradient that is not the derivative.
    agent.behaviour.actor.network[-1].weight.data.mul_(0.3)
    noise = agent.behaviour.actor.noise
    agent.behaviour.actor.noise = lambda *shape, generator: 0.1 * noise(*shape, generator=generator)
    losses, seen = [], iter(())
    agent.behaviour.critic_adam.step = lambda loss, *_, **__: torch.zeros(())

    def objective():
        agent.behaviour.actor_adam.step = lambda loss, *_, **__: (
            losses.append(loss.item()) or torch.zeros(())
        )
        nonlocal seen
        seen = iter(inputs)
        learn(agent)
        return losses[-1]

    inputs, forward = [], agent.behaviour.actor.forward
    agent.behaviour.actor.forward = lambda feature: forward(inputs.append(feature) or feature)
    gradients = gradient_of_actor(agent)
    # No gradient passes through what the actor sees: it is held fixed here as well.
    agent.behaviour.actor.forward = lambda feature: forward(next(seen))
    weight = agent.behaviour.actor.network[-1].weight
    name = "network.1.weight"
    for index in ((0, 0), (1, 5), (3, 9)):
        value = weight.data[index].item()
        step = 1e-5
        weight.data[index] = value + step
        up = objective()
        weight.data[index] = value - step
        down = objective()
        weight.data[index] = value
        assert gradients[name][index].item() == pytest.approx((up - down) / (2 * step), rel=2e-3)


def test_discrete_actor_follows_the_score_function():
    """The gradient is that of -log pi(a) * advantage - entropy, with the advantage held fixed."""
    agent = make(entropy=0.1)
    random_heads(agent)
    caught = {}
    imagine = agent.behaviour.imagine

    def keep(*args):
        caught["imagined"] = imagine(*args)
        return caught["imagined"]

    agent.behaviour.imagine = keep
    gradients = gradient_of_actor(agent)
    imagined = caught["imagined"]
    assert isinstance(imagined, Imagined)
    assert not as_tensor(imagined.features).requires_grad
    outputs = learn_without_change(agent)
    assert imagined.outputs.requires_grad
    policy = agent.behaviour.actor.policy(agent.behaviour.actor(imagined.features[:-1]))
    chosen = (policy.log_probability(imagined.actions[:-1]) * outputs["advantage"]).sum()
    loss = (
        -(chosen + 0.1 * (outputs["weights"] * policy.entropy).sum()) / outputs["weights"].numel()
    )
    parameters = dict(agent.behaviour.actor.named_parameters())
    expected = torch.autograd.grad(loss, parameters.values())
    for (name, gradient), wanted in zip(gradients.items(), expected, strict=True):
        torch.testing.assert_close(gradient, wanted, msg=name, rtol=1e-4, atol=1e-7)


def learn_without_change(agent):
    """what an update is made of, with returns by the n-step definition, not by the recursion."""
    deep = {}
    behaviour, model = agent.behaviour, agent.model
    imagined = behaviour.imagine(model, start_of(agent), torch.Generator().manual_seed(0))
    with torch.no_grad():
        rewards = model.reward(imagined.features[1:])
        cont = torch.cat([CONT.unsqueeze(0), model.cont(imagined.features[1:])])
        values = behaviour.critic(imagined.features).mean
    steps = len(rewards)
    discount, mixing = behaviour.discount, agent.config.return_lambda
    returns = torch.zeros_like(rewards)
    for t in range(steps):
        for n in range(1, steps - t + 1):
            total, factor = torch.zeros(rewards.shape[1]), torch.ones(rewards.shape[1])
            for k in range(n):
                total = total + factor * rewards[t + k]
                factor = factor * discount * cont[t + k + 1]
            total = total + factor * values[t + n]
            share = mixing ** (n - 1) * (1 - mixing if n < steps - t else 1)
            returns[t] += share * total
    weights = torch.ones_like(rewards)
    for t in range(steps):
        weights[t] = discount**t * cont[: t + 1].prod(0)
    deep |= {"weights": weights, "returns": returns, "features": imagined.features[:-1]}
    # The normaliser was updated once, from zero, with these returns.
    low, high = np.percentile(returns.numpy(), [5, 95]) * 0.01
    deep["advantage"] = weights * (returns - values[:-1]) / max(1.0, high - low)
    return deep


def test_trajectories_from_an_end_teach_nothing():
    """Only the last of the five starts is terminal: moving it changes no gradient."""
    agent = make()
    random_heads(agent)
    agent.behaviour.critic_adam.step = lambda loss, *_, **__: torch.zeros(())
    losses = []
    agent.behaviour.actor_adam.step = lambda loss, *_, **__: losses.append(loss) or loss.detach()
    agent.behaviour.return_scale.update = lambda returns, fine: torch.ones(())
    for shift in (0.0, 1.0):
        start = start_of(agent)
        start.deter[-1] += shift
        generator = torch.Generator().manual_seed(0)
        finite = FiniteCheck(agent.device)
        agent.behaviour.learn(agent.model, start, CONT, agent._reward, generator, finite)
    assert losses[0].item() == losses[1].item()


def test_critic_learns_returns_and_stays_near_its_slow_copy():
    agent = make(critic_lr=1e-2, slow_fraction=0.02)

    def ones(imagined):
        return torch.ones(imagined.features.shape[:2])[1:]

    agent.model.cont = lambda features: torch.zeros(features.shape[:-1])
    first = learn(agent, rewards=ones).metrics["critic/value"]
    for seed in range(300):
        outputs = learn(agent, rewards=ones, seed=seed)
    assert first == pytest.approx(0, abs=1e-6)
    # Each state is worth the one reward before the predicted end.
    assert outputs.values[0].mean().item() == pytest.approx(1.0, abs=0.1)


def test_loss_of_the_critic():
    """Cross-entropy with the returns and with the slow copy's values, where anything goes on."""
    agent = make()
    random_heads(agent)
    agent.behaviour.slow_critic.network[-1].weight.data.normal_(std=0.5)
    caught = []
    agent.behaviour.actor_adam.step = lambda loss, *_, **__: torch.zeros(())
    agent.behaviour.critic_adam.step = lambda loss, *_, **__: (
        caught.append(loss.item()) or torch.zeros(())
    )
    expected = learn_without_change(agent)
    slow = agent.behaviour.slow_critic(expected["features"]).mean
    learn(agent)
    critic = agent.behaviour.critic(expected["features"])
    drawn_to = critic.loss(expected["returns"]) + critic.loss(slow)
    loss = (expected["weights"] * drawn_to).mean().item()
    assert caught == [pytest.approx(loss, rel=1e-5)]
    assert loss != pytest.approx(drawn_to.mean().item(), rel=0.05)
