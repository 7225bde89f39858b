"""Disagreement divided by its running deviation."""

import numpy as np
import pytest
import torch
from helpers.agents.batches import batch_of

from curious_replay.agents.blocks.returns import RunningDeviation
from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.configs.plan2explore import Plan2ExploreConfig, Plan2ExploreV3Config
from curious_replay.agents.plan2explore import Plan2Explore
from curious_replay.agents.spaces import Spaces

SPACES = Spaces(2, discrete=False, image=(32, 32))
FINE = torch.tensor(True)
CONFIGS = {
    "v2": (Plan2ExploreConfig, DreamerV2Config(size="debug-G", imagination=4)),
    "v3": (Plan2ExploreV3Config, DreamerV3Config(size="debug", imagination=4)),
}
every_dreamer = pytest.mark.parametrize("name", CONFIGS)


def make(name, normalise="on", seed=0):
    kind, dreamer = CONFIGS[name]
    return Plan2Explore(kind(dreamer, normalise=normalise), SPACES, seed)


def test_running_deviation_by_its_definition():
    running, weights, batches = RunningDeviation(decay=0.5), [0.125, 0.25, 0.5], []
    assert running.value == 1
    for numbers in ([1.0, 5.0], [2.0, 2.0], [0.0, 4.0]):
        batches.append(torch.tensor(numbers, dtype=torch.float64))
        x = torch.cat([batches[-1].float(), torch.full((2,), 1e3)])
        running.update(x, x < 1e3, FINE)
    for counts, fine in ((x < 0, FINE), (x > 0, ~FINE)):  # nothing counts, or may
        running.update(x, counts, fine)
    mean = sum(w * x.mean() for w, x in zip(weights, batches, strict=True)) / sum(weights)
    square = sum(w * x.square().mean() for w, x in zip(weights, batches, strict=True))
    expected = (square / sum(weights) - mean**2).sqrt()
    assert running.value.item() == pytest.approx(expected.item(), rel=1e-5)


def test_numbers_that_never_differ_have_a_deviation_above_0():
    running = RunningDeviation()
    for _ in range(3):
        running.update(torch.ones(4), torch.ones(4) > 0, FINE)
    assert 0 < running.value < 1e-2


@every_dreamer
def test_novelty_is_divided_by_what_the_batches_said(name):
    agents, batch = [make(name, each) for each in ("on", "off")], batch_of("continuous")
    metrics = [agent.update(batch).metrics for agent in agents]
    on, off = agents
    deviation = on.deviation.value
    assert metrics[0]["ensemble/deviation"] == pytest.approx(deviation.item())
    assert "ensemble/deviation" not in metrics[1]
    # One update of the ensemble is the same with and without.
    assert all(map(torch.equal, on.ensemble.parameters(), off.ensemble.parameters()))
    start = on.dreamer.train_world_model(on.dreamer.load(batch)).start
    imagined = on.explorer.imagine(on.dreamer.model, start, on.generator)
    torch.testing.assert_close(on.novelty(imagined), off.novelty(imagined) / deviation)
    assert deviation != 1


@every_dreamer
def test_deviation_is_that_of_real_transitions(name):
    agent, batch = make(name), batch_of("continuous")
    seen = []
    agent.deviation.update = lambda *given: seen.append(given)
    agent.update(batch)
    ((apart, counts, fine),) = seen
    assert (apart > 0).all() and fine
    assert np.array_equal(counts.view(-1, 3).T, ~batch["is_first"][:, 1:])


@every_dreamer
def test_state_is_all_there_is(name):
    first, second = batch_of("continuous"), batch_of("continuous", seed=1)
    agent, again = make(name), make(name, seed=5)
    agent.update(first)
    saved = {key: value.clone() for key, value in agent.tensors().items()}
    assert saved["network.deviation.weight"] > 0
    again.load_tensors(saved)
    assert again.update(second).metrics == agent.update(second).metrics
    assert "network.deviation.weight" not in make(name, "off").tensors()
