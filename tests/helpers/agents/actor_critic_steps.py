"""What actors and critics learn from, caught and worked out by definition."""

import torch

from curious_replay.agents.blocks.rssm import State
from curious_replay.agents.blocks.shortcuts.lookup import as_tensor

CONT = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0])


def start_of(agent, seed=0):
    torch.manual_seed(seed)
    parameter = agent.model.rssm.gru.weight
    deter = torch.tanh(torch.randn(5, 16)).to(parameter)
    return State(deter, agent.model.latent.mode(agent.model.rssm.prior(deter)).detach())


def catch(agent):
    """Let an update change nothing, and keep what it would have learned from."""
    caught = {}

    def keep(name):
        def step(loss, *_, **__):
            caught[name] = loss
            return torch.zeros(())

        return step

    agent.behaviour.actor_adam.step = keep("actor")
    agent.behaviour.critic_adam.step = keep("critic")
    imagine = agent.behaviour.imagine

    def imagined(*args):
        caught["imagined"] = imagine(*args)
        return caught["imagined"]

    agent.behaviour.imagine = imagined
    agent.behaviour.target_critic.network[-1].weight.data.normal_()  # not the critic's
    agent.behaviour.target_critic.follow = lambda critic, fine: None
    return caught


def by_definition(agent, imagined, *, first_by_head=False):
    """Returns by their n-step definition, weights and values, state by state."""
    model, behaviour, config = agent.model, agent.behaviour, agent.config
    with torch.no_grad():
        features = as_tensor(imagined.features)
        rewards = model.reward(features)
        values = behaviour.target_critic(features)[..., 0]
        if model.discount_head is None:
            discounts = torch.full_like(values, config.discount)
        else:
            discounts = torch.sigmoid(model.discount_head(features)[..., 0])
            discounts[0] = (discounts[0] if first_by_head else config.discount) * CONT
    steps = len(features) - 1
    returns, weights = torch.zeros_like(values[:-1]), torch.ones_like(values[:-1])
    for t in range(steps):
        for k in range(t):
            weights[t] *= discounts[k]
        for n in range(1, steps - t + 1):
            total, factor = torch.zeros(5), torch.ones(5)
            for k in range(n):
                total = total + factor * rewards[t + k]
                factor = factor * discounts[t + k]
            total = total + factor * values[t + n]
            share = config.return_lambda ** (n - 1)
            returns[t] += share * (1 - config.return_lambda if n < steps - t else 1) * total
    return returns, weights, values


def check_gradients(network, loss, expected):
    """Two losses pull a network the same way."""
    parameters = list(network.parameters())
    for found, wanted in zip(
        torch.autograd.grad(loss, parameters),
        torch.autograd.grad(expected, parameters),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-7)
