"""DreamerV2: what its actor and its critic learn from imagination."""

import pytest
import torch
from helpers.agents.actor_critic_steps import CONT, by_definition, catch, check_gradients, start_of
from helpers.agents.batches import batch_of
from helpers.agents.small_v2 import SPACES, make

from curious_replay.agents.blocks.shortcuts.lookup import as_tensor
from curious_replay.agents.dreamer import Imagined
from curious_replay.agents.feedback import FiniteCheck


def learn(agent, reward=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    start, finite = start_of(agent, seed), FiniteCheck(agent.device)
    reward = reward or agent._reward
    return agent.behaviour.learn(agent.model, start, CONT, reward, generator, finite)


def test_discrete_actor_follows_the_score_function():
    """-log pi(a) (R of the next state - target value), 3 of the 4 imagined steps."""
    agent = make(entropy=0.1)
    caught = catch(agent)
    learn(agent)
    imagined = caught["imagined"]
    assert isinstance(imagined, Imagined)
    assert not as_tensor(imagined.features).requires_grad
    returns, weights, values = by_definition(agent, imagined)
    loss = torch.zeros(())
    for t in range(3):
        policy = agent.behaviour.actor.policy(
            agent.behaviour.actor(as_tensor(imagined.features)[t])
        )
        advantage = returns[t + 1] - values[t]
        gain = policy.log_probability(imagined.actions[t]) * advantage + 0.1 * policy.entropy
        loss = loss - (weights[t] * gain).sum() / 15
    torch.testing.assert_close(caught["actor"], loss)
    check_gradients(agent.behaviour.actor, caught["actor"], loss)


@pytest.mark.parametrize("kind", SPACES)
def test_critic_learns_the_weighted_returns(kind):
    agent = make(kind)
    caught = catch(agent)
    learn(agent)
    returns, weights, _ = by_definition(agent, caught["imagined"])
    values = agent.behaviour.value(caught["imagined"].features[:-1].detach())
    expected = (weights * (0.5 * (values - returns) ** 2 + 0.9189385)).mean()
    torch.testing.assert_close(caught["critic"], expected)
    assert torch.autograd.grad(expected, agent.behaviour.critic[-1].weight)[0].abs().max() > 0


@pytest.mark.parametrize("ends", [False, True])
def test_continuous_actor_follows_the_gradient_of_its_return(ends):
    """Against finite differences of the objective, with what the actor sees held fixed."""
    agent = make("continuous", entropy=0.1, discount_head=ends).double()
    caught = catch(agent)
    inputs, forward = [], agent.behaviour.actor.forward
    agent.behaviour.actor.forward = lambda feature: forward(inputs.append(feature) or feature)
    learn(agent)
    weight = agent.behaviour.actor.network[-1].weight
    (gradient,) = torch.autograd.grad(caught["actor"], weight)
    _, held, _ = by_definition(
        agent, caught["imagined"]
    )  # no gradient passes through how much a state counts

    def objective():
        seen = iter(inputs)
        agent.behaviour.actor.forward = lambda feature: forward(next(seen))
        learn(agent)
        with torch.no_grad():
            returns, _, _ = by_definition(agent, caught["imagined"])
            entropy = agent.behaviour.actor.policy(caught["imagined"].outputs[:-1]).entropy
        return -(held[:-1] * (returns[1:] + 0.1 * entropy)).mean().item()

    assert objective() == pytest.approx(caught["actor"].item(), rel=1e-6)
    assert gradient.abs().max() > 1e-4
    for index in ((0, 0), (1, 5), (2, 3), (3, 9)):
        value, step = weight.data[index].item(), 1e-5
        weight.data[index] = value + step
        up = objective()
        weight.data[index] = value - step
        down = objective()
        weight.data[index] = value
        expected = (up - down) / (2 * step)
        assert gradient[index].item() == pytest.approx(expected, rel=1e-4, abs=1e-8)


def test_from_an_end_only_the_first_state_counts():
    agent = make()
    caught = catch(agent)
    learn(agent)
    _, weights, _ = by_definition(agent, caught["imagined"])
    assert weights[:, -1].tolist() == [1, 0, 0, 0]
    assert (weights[:, :-1] > 0).all()
    # Moving what is imagined after the end changes nothing but the discounted first step.
    before = caught["critic"].item()
    reward = agent.model.reward

    def more_after_the_end(imagined):
        rewards = reward(imagined.features[:-1]).clone()
        rewards[1:, -1] += 100
        return rewards

    learn(agent, more_after_the_end)
    assert caught["critic"].item() == before


def test_without_a_discount_head_no_end_counts():
    agent = make("continuous")
    caught = catch(agent)
    learn(agent)
    _, weights, _ = by_definition(agent, caught["imagined"])
    expected = torch.tensor([1, 0.99, 0.9801, 0.970299]).unsqueeze(1).expand(4, 5)
    torch.testing.assert_close(weights, expected)
    assert "model/discount" not in agent.update(batch_of("continuous")).metrics


def test_targets_come_from_the_copy_which_is_renewed_in_time():
    agent = make("continuous", target_every=3)
    behaviour = agent.behaviour
    own, copied = behaviour.critic[-1].weight, behaviour.target_critic.network[-1].weight
    equal = []
    for seed in range(7):
        learn(agent, seed=seed)
        equal.append(torch.equal(own, copied))
    assert equal == [True, False, False, True, False, False, True]


def test_critic_learns_what_comes():
    """A reward of 1 in each state and a discount of 0: every state is worth 1."""
    agent = make("continuous", critic_lr=1e-2, discount=0.0)

    def ones(imagined):
        return torch.ones(imagined.features.shape[:2])[:-1]

    for _ in range(100):
        learn(agent, ones)
    values = agent.behaviour.value(start_of(agent).feature)
    torch.testing.assert_close(values, torch.ones(5), rtol=0, atol=0.1)
