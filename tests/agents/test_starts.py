"""Imagination that begins from some of the states of a batch."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.agents.batches import batch_of, check_td_where_no_step_led

from curious_replay.agents.blocks.rssm import State
from curious_replay.agents.configs.dreamer_pro import DreamerProConfig
from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.configs.plan2explore import Plan2ExploreConfig, Plan2ExploreV3Config
from curious_replay.agents.dreamer_pro import DreamerPro
from curious_replay.agents.dreamer_v2 import DreamerV2
from curious_replay.agents.dreamer_v3 import DreamerV3
from curious_replay.agents.plan2explore import Plan2Explore
from curious_replay.agents.spaces import Spaces

SPACES = {
    "discrete": Spaces(4, discrete=True, image=(32, 32)),
    "continuous": Spaces(2, discrete=False, image=(32, 32)),
}
V2 = DreamerV2Config(size="debug-G", imagination=4)
V3 = DreamerV3Config(size="debug", imagination=4)
PROTOTYPES = {"prototypes": 10, "prototype_size": 4, "imagination": 4}
DREAMERS = {
    "v2": (DreamerV2, V2),
    "v2-imagined": (DreamerV2, dataclasses.replace(V2, td="imagined", discount_head=False)),
    "v3": (DreamerV3, V3),
    "pro": (DreamerPro, DreamerProConfig(size="debug-D", **PROTOTYPES)),
}
EXPLORERS = {"explore-v2": Plan2ExploreConfig, "explore-v3": Plan2ExploreV3Config}
every_agent = pytest.mark.parametrize("name", [*DREAMERS, *EXPLORERS])
every_kind = pytest.mark.parametrize("kind", SPACES)
STEPS = 8 * 3  # of a batch


def make(name, kind="discrete", starts=0.4, seed=0):
    if name in EXPLORERS:
        dreamer = dataclasses.replace(V3 if name.endswith("v3") else V2, starts=starts)
        return Plan2Explore(EXPLORERS[name](dreamer), SPACES[kind], seed)
    agent, config = DREAMERS[name]
    return agent(dataclasses.replace(config, starts=starts), SPACES[kind], seed)


def dreamer_of(agent):
    return agent.dreamer if isinstance(agent, Plan2Explore) else agent


def behaviours(agent):
    dreamer = dreamer_of(agent)
    return [dreamer.behaviour, *([agent.explorer] if agent is not dreamer else [])]


def keep_starts(agent):
    """Where imagination begins, as they are given."""
    kept = []
    for behaviour in behaviours(agent):
        learn = behaviour.learn

        def keep(model, start, *rest, learn=learn):
            kept.append(start)
            return learn(model, start, *rest)

        behaviour.learn = keep
    return kept


@every_agent
@every_kind
def test_imagination_begins_from_a_share_of_the_states(name, kind):
    agent, batch = make(name, kind), batch_of(kind)
    kept = keep_starts(agent)
    feedback = agent.update(batch)
    states = STEPS if name != "pro" else 2 * STEPS - 6  # both views, not the last steps
    assert [len(start.deter) for start in kept] == [round(0.4 * states)] * len(behaviours(agent))
    assert all(np.isfinite(value) for value in feedback.metrics.values())


def test_they_are_drawn_without_repeats_with_their_ends():
    agent = make("v3", starts=0.5)
    numbers = torch.arange(24.0)
    start = State(numbers.unsqueeze(1), 2 * numbers.unsqueeze(1))
    draws = [agent.draw_starts(start, -numbers) for _ in range(50)]
    for (deter, stoch), cont in draws:
        assert len(deter.unique()) == 12
        assert torch.equal(stoch, 2 * deter) and torch.equal(cont, -deter[:, 0])
    counts = torch.cat([-cont for _, cont in draws]).int().bincount(minlength=24)
    assert counts.min() >= 10 and counts.max() <= 40  # 25 each on average


def test_there_is_always_one():
    agent = make("v3", starts=1e-6)
    kept = keep_starts(agent)
    agent.update(batch_of())
    assert len(kept[0].deter) == 1


@every_agent
def test_by_default_they_are_all_states_and_nothing_is_drawn(name, monkeypatch):
    monkeypatch.setattr(torch, "randperm", lambda *_, **__: pytest.fail("drawn"))
    agent = make(name, starts=1.0)
    for behaviour in behaviours(agent):
        behaviour.foresee = lambda *_, **__: pytest.fail("imagined twice")
    kept = keep_starts(agent)
    agent.update(batch_of())
    assert len(kept[0].deter) == (STEPS if name != "pro" else 2 * STEPS - 6)


@every_agent
@every_kind
def test_td_is_known_of_all_steps_and_decides_nothing(name, kind):
    batch = batch_of(kind)
    read, unread = make(name, kind), make(name, kind)
    found, other = read.update(batch), unread.update(batch, {"td"})
    check_td_where_no_step_led(found.signals["td"], batch["is_first"])
    assert found.signals.keys() - other.signals.keys() == {"td"}
    assert found.metrics == other.metrics
    left, right = read.tensors(), unread.tensors()
    assert all(torch.equal(left[key], right[key]) for key in left)


@pytest.mark.parametrize("name", ["v2", "v3"])
def test_td_is_what_it_is_if_imagination_begins_from_all(name):
    """The critic is fixed, and rewards are those of the state alone: no draw matters."""
    tds = []
    for starts in (1.0, 0.4):
        agent = make(name, starts=starts)
        agent.behaviour.critic_adam.step = lambda loss, *_, **__: torch.zeros(())
        agent.model.reward = lambda features: torch.full(features.shape[:-1], 0.7)
        tds.append(agent.update(batch_of()).signals["td"])
    np.testing.assert_allclose(tds[0], tds[1], rtol=1e-5, atol=1e-6)
    assert np.nanmax(np.abs(tds[0])) > 0.1


@every_agent
def test_state_is_all_there_is(name):
    first, second = batch_of(), batch_of(seed=1)
    agent, again = make(name), make(name, seed=5)
    agent.update(first)
    again.load_tensors({key: value.clone() for key, value in agent.tensors().items()})
    assert again.update(second).metrics == agent.update(second).metrics
