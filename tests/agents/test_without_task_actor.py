"""Plan2Explore that only explores: what learns, what is reported, who is evaluated."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.agents.batches import batch_of, check_td_where_no_step_led

from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.configs.plan2explore import Plan2ExploreConfig, Plan2ExploreV3Config
from curious_replay.agents.plan2explore import Plan2Explore
from curious_replay.agents.spaces import Spaces

SPACES = {
    "discrete": Spaces(4, discrete=True, image=(32, 32)),
    "continuous": Spaces(2, discrete=False, image=(32, 32)),
}
CONFIGS = {
    "v2": Plan2ExploreConfig(DreamerV2Config(size="debug-G", imagination=4)),
    "v3": Plan2ExploreV3Config(DreamerV3Config(size="debug", imagination=4)),
}
every_dreamer = pytest.mark.parametrize("name", CONFIGS)
every_kind = pytest.mark.parametrize("kind", SPACES)


def make(name, kind="continuous", task_actor="off", seed=0):
    config = dataclasses.replace(CONFIGS[name], task_actor=task_actor)
    return Plan2Explore(config, SPACES[kind], seed)


@every_dreamer
@every_kind
def test_all_but_the_task_learns(name, kind):
    agent = make(name, kind)
    before = {key: value.clone() for key, value in agent.named_parameters()}
    for seed in range(2):  # some heads begin at 0 and pass nothing on at first
        agent.update(batch_of(kind, seed=seed))
    for key, parameter in agent.named_parameters():
        slow = "target_critic" in key or "slow_critic" in key
        moved = not torch.equal(before[key], parameter)
        assert moved != key.startswith("dreamer.behaviour.") or slow, key


@every_dreamer
def test_world_model_and_first_weights_are_as_with_it(name):
    """What the world model learns from a batch does not hang on which actor learns after it."""
    batch, agents = batch_of("continuous"), [make(name, task_actor=each) for each in ("on", "off")]
    on, off = (agent.state_dict() for agent in agents)
    assert all(torch.equal(on[key], off[key]) for key in on)
    with_task, without = (agent.update(batch) for agent in agents)
    for signal in ("model", "likelihood", "kl"):
        assert np.array_equal(with_task.signals[signal], without.signals[signal])
    for key in on:
        if key.startswith(("dreamer.model.", "ensemble.")):
            assert torch.equal(on[key], off[key]), key


@every_dreamer
def test_metrics_of_the_task_are_absent(name):
    batch = batch_of("continuous")
    on, off = (make(name, task_actor=each).update(batch).metrics for each in ("on", "off"))
    of_task = {key for key in on if key.startswith(("actor/", "critic/"))}
    assert of_task and on.keys() - off.keys() == of_task and off.keys() < on.keys()


@every_dreamer
@every_kind
def test_td_is_still_that_of_the_explorers_critic(name, kind):
    agent, batch = make(name, kind), batch_of(kind)
    outputs, explore = [], agent._explore

    def keep(replayed, start, unread):
        outputs.append(explore(replayed, start, unread))
        return outputs[-1]

    agent._explore = keep
    td = agent.update(batch).signals["td"]
    check_td_where_no_step_led(td, batch["is_first"])
    assert np.array_equal(td, outputs[0][1]["td"].T.numpy(), equal_nan=True)


@every_dreamer
@every_kind
def test_the_exploring_policy_is_evaluated(name, kind):
    agent, batch = make(name, kind), batch_of(kind, rows=4)
    observation = {field: array[:, 0] for field, array in batch.items()}
    agent.dreamer.behaviour.actor.register_forward_hook(lambda *_: pytest.fail("task actor"))
    actions = [
        agent.act(agent.start(4), observation, torch.Generator().manual_seed(seed), explore)[0]
        for seed, explore in ((0, True), (0, False), (1, False))
    ]
    assert np.array_equal(actions[0], actions[1])
    assert not np.array_equal(actions[1], actions[2])  # drawn, not the likeliest


@every_dreamer
def test_a_run_says_who_is_evaluated(name):
    assert make(name).remarks == {"evaluated": "the exploring policy: no task actor learns"}
    assert make(name, task_actor="on").remarks == {}


@every_dreamer
def test_state_is_all_there_is(name):
    first, second, third = (batch_of("continuous", seed=seed) for seed in range(3))
    agent, again = make(name), make(name, seed=5)
    agent.update(first)
    again.load_tensors({key: value.clone() for key, value in agent.tensors().items()})
    for batch in (second, third):
        assert again.update(batch).metrics == agent.update(batch).metrics
    left, right = agent.tensors(), again.tensors()
    assert left.keys() == right.keys()
    assert all(torch.equal(left[key], right[key]) for key in left)
