"""Every agent of the registry on a pretended device: all it does, and what that costs.

docs/gpu.md has the ceilings. They are of the second update at debug scale, of 2 windows of 8 steps.
"""

import copy
import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.agents.batches import make_batch, with_streams
from helpers.device.ours import OURS
from helpers.device.pretended import NAME, Events, MixedDevicesError, pretend

from curious_replay.agents import iris
from curious_replay.agents.blocks import heads, maths
from curious_replay.agents.blocks.tokens.transformer import Transformer, seeded
from curious_replay.agents.dreamer_v3 import DreamerV3
from curious_replay.agents.interface import Feedback, NonFiniteError
from curious_replay.agents.precision import LossScale
from curious_replay.agents.spaces import Spaces
from curious_replay.errors import UsageError
from curious_replay.run import Choice, preset
from curious_replay.run.loop import probe
from curious_replay.run.settings.agents import AGENTS

PAGE = (Path(__file__).parents[2] / "docs/gpu.md").read_text()
WORLDS = {"discrete": "crafter", "continuous": "object-interaction"}
COSTS = ("synchronisations", "transfers", "bytes", "kernels")
MOST_SYNCHRONISATIONS = 3
ACTIONS = 5
AT_ONCE = {"model_after": 0, "actor_after": 0, "dropout": 0.0}  # where an agent has such settings

pytestmark = pytest.mark.usefixtures("one_thread")


def make(name, kind, device="cpu", seed=0):
    config = preset(Choice(env=WORLDS[kind], agent=name, replay="curious", scale="debug"))
    known = {field: value for field, value in AT_ONCE.items() if hasattr(config.agent, field)}
    pixels = config.env.image_size
    spaces = Spaces(ACTIONS, discrete=kind == "discrete", image=(pixels, pixels))
    return AGENTS[name].make(replace(config.agent, **known), spaces, seed, device)


def batch_for(agent, rows=2, steps=8, seed=0):
    shape = {"actions": ACTIONS, "size": agent.spaces.image[0], "discrete": agent.spaces.discrete}
    streams = {name: (each.windows, each.length) for name, each in agent.streams.items()}
    return with_streams(make_batch(rows, steps, seed=seed, **shape), streams, **shape)


def is_possible(name, kind):
    try:
        make(name, kind)
    except UsageError:  # says that such actions are not for it
        return False
    return True


PAIRS = [(name, kind) for name in OURS for kind in WORLDS if is_possible(name, kind)]
every_agent = pytest.mark.parametrize(("name", "kind"), PAIRS)


@pytest.fixture(autouse=True)
def same_random_numbers(monkeypatch):
    """Dropout is off; a device would begin its numbers elsewhere than a CPU."""
    monkeypatch.setattr(iris, "seeded", lambda generator: nullcontext())


@dataclass
class History:
    """Of an agent on the device: its second update, what it was after that, and the next two.

    The last of them is from another batch.
    """

    second: Feedback
    events: Events
    saved: dict[str, torch.Tensor]
    third: Feedback
    fourth: Feedback


@cache
def history(name, kind):
    with pretend() as events:
        agent = make(name, kind, NAME)
        batch = batch_for(agent)
        agent.update(batch)
        events.clear()
        second = agent.update(batch)
        counted = copy.deepcopy(events)
        saved = {key: value.detach().cpu().clone() for key, value in agent.tensors().items()}
        third = agent.update(batch)
        return History(second, counted, saved, third, agent.update(batch_for(agent, seed=1)))


@every_agent
def test_updates_say_what_they_say_on_the_cpu(name, kind):
    found, agent = history(name, kind).second, make(name, kind)
    batch = batch_for(agent)
    agent.update(batch)
    wanted = agent.update(batch)
    assert found.metrics == pytest.approx(wanted.metrics, rel=2e-4, abs=2e-5)
    assert found.signals.keys() == wanted.signals.keys()
    for key, signal in wanted.signals.items():
        np.testing.assert_allclose(found.signals[key], signal, rtol=2e-4, atol=2e-4)


def ceilings():
    """Rows of the table, by agent and kind of actions."""
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \|((?: [\d,]+ \|){4})$", PAGE, re.M)
    return {
        (name, kind): [int(cell.replace(",", "")) for cell in re.findall(r"[\d,]+", cells)]
        for name, kind, cells in rows
    }


def test_the_table_has_a_row_for_every_agent():
    assert [*ceilings()] == PAIRS


def too_much(events, name, kind):
    """What an update takes more of than the table says."""
    found, most = events.totals(), dict(zip(COSTS, ceilings()[name, kind], strict=True))
    return {cost: getattr(events, cost) for cost in COSTS if found[cost] > most[cost]}


@every_agent
def test_an_update_takes_no_more_than_the_table_says(name, kind):
    events = history(name, kind).events
    assert events.totals()["synchronisations"] <= MOST_SYNCHRONISATIONS
    assert not too_much(events, name, kind)
    for cost, most in zip(COSTS, ceilings()[name, kind], strict=True):
        found = events.totals()[cost]
        assert most <= 1.1 * found + 1, f"{cost} can be {found} in docs/gpu.md"


def before_the_world_model_learns(waste):
    """A fault: `waste` is done with each batch that was replayed."""

    def plant(monkeypatch):
        train = DreamerV3.train_world_model
        monkeypatch.setattr(
            DreamerV3, "train_world_model", lambda self, batch: train(self, batch, *waste(batch))
        )

    return plant


def compute_again(batch):
    """Four kernels for each step of each window."""
    for reward in batch.reward.flatten():
        maths.symlog(reward)
    return ()


def copy_once_more(batch):
    """A byte, from memory that is pinned: the host waits for nothing."""
    torch.zeros(1, dtype=torch.uint8).pin_memory().to(batch.reward.device, non_blocking=True)
    return ()


def widen_on_the_host(monkeypatch):
    """Images cross as float32."""
    put = DreamerV3._put
    monkeypatch.setattr(DreamerV3, "_put", lambda self, field: put(self, widened(field)))


def widened(field):
    return field.astype(np.float32) if isinstance(field, np.ndarray) else field


WASTE = {
    "kernels": before_the_world_model_learns(compute_again),
    "transfers": before_the_world_model_learns(copy_once_more),
    "bytes": widen_on_the_host,
}


@pytest.mark.parametrize("cost", WASTE)
def test_what_an_agent_wastes_is_found(cost, monkeypatch):
    WASTE[cost](monkeypatch)
    with pretend() as events:
        agent = make("dreamerv3", "discrete", NAME)
        batch = batch_for(agent)
        agent.update(batch)
        events.clear()
        agent.update(batch)
    found = too_much(events, "dreamerv3", "discrete")
    assert cost in found and "synchronisations" not in found


@every_agent
def test_the_host_waits_for_what_is_fed_back_only(name, kind):
    (place,) = history(name, kind).events.synchronisations
    assert place.startswith("copy to host at agents/feedback.py:")


@every_agent
def test_acting_and_looking_ahead(name, kind):
    with pretend():
        agents = [make(name, kind, device, seed=5) for device in (NAME, "cpu")]
        for agent in agents:
            agent.load_tensors(history(name, kind).saved)
        batch = batch_for(agents[0], rows=8, steps=5, seed=1)
        for explore in (True, False):
            found, wanted = (acted(agent, batch, explore) for agent in agents)
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        if AGENTS[name].predicts_images:
            found, wanted = (agent.open_loop(batch, 3).astype(int) for agent in agents)
            assert np.abs(found - wanted).max() <= 1
            scenes = probe.Scenes(range(8), batch, batch["image"][..., 0] > 0, seen=3)
            assert len([*probe.Probe(scenes).lines(agents[0])]) == 8 * 2


def acted(agent, batch, explore, steps=3):
    state, generator = agent.start(8), torch.Generator().manual_seed(0)
    actions = []
    for t in range(steps):
        observation = {field: batch[field][:, t] for field in ("image", "is_first")}
        action, state = agent.act(state, observation, generator, explore)
        actions.append(action)
    return np.stack(actions)


@every_agent
def test_a_saved_agent_goes_on_exactly(name, kind):
    with pretend():
        agent = make(name, kind, NAME, seed=5)
        agent.load_tensors(history(name, kind).saved)
        assert agent.update(batch_for(agent)).metrics == history(name, kind).third.metrics


@pytest.mark.parametrize("name", OURS)
def test_what_is_not_finite_is_named_and_changes_nothing(name):
    with pretend():
        agent = make(name, "discrete", NAME)
        saved = history(name, "discrete").saved
        agent.load_tensors(saved)
        batch = batch_for(agent)
        batch["reward"][0, 3] = np.nan
        with pytest.raises(NonFiniteError, match="model/reward"):
            agent.update(batch)
        for key, value in agent.tensors().items():
            assert key == "generator" or torch.equal(value.cpu(), saved[key]), key


@pytest.mark.parametrize("name", OURS)
def test_a_loss_scale_makes_the_host_wait_for_nothing(name):
    with pretend() as events:
        agent = make(name, "discrete", NAME)
        for optimiser in agent.optimisers.values():
            optimiser.loss_scale = LossScale(agent.device)
        batch = batch_for(agent)
        agent.update(batch)
        events.clear()
        metrics = agent.update(batch).metrics
    assert events.totals()["synchronisations"] == 1
    assert {value for key, value in metrics.items() if key.endswith("/loss_scale")} == {2.0**15}


def test_constants_of_the_host_in_an_agent_are_found(monkeypatch):
    make_two_hot = heads.TwoHot.__init__
    monkeypatch.setattr(
        heads.TwoHot,
        "__init__",
        lambda self, logits, bins: make_two_hot(self, logits, heads.even_bins(len(bins))),
    )
    with pretend(), pytest.raises(MixedDevicesError, match="agents/blocks/heads"):
        agent = make("dreamerv3", "discrete", NAME)
        agent.update(batch_for(agent))


def test_numbers_that_an_agent_reads_are_found(monkeypatch):
    monkeypatch.setattr(heads, "symlog", lambda x: maths.symlog(x) if x.max() < 1e9 else x)
    with pretend() as events:
        agent = make("dreamerv3", "discrete", NAME)
        batch = batch_for(agent)
        events.clear()
        agent.update(batch)
    assert events.totals()["synchronisations"] > 1


def test_dropout_goes_by_the_generator_of_the_device_and_the_host_waits_for_nothing():
    torch.manual_seed(1)
    with pretend() as events:
        network = Transformer(1, 2, 8).to(NAME)
        x = torch.randn(1, 3, 8).to(NAME)
        generator = torch.Generator(NAME).manual_seed(0)
        state, everywhere = generator.get_state(), torch.get_rng_state()
        events.clear()
        said = []
        for _ in range(2):
            with seeded(generator):
                said.append(network(x, dropout=0.5))
        assert not events.synchronisations
        assert torch.equal(torch.get_rng_state(), everywhere)
        with seeded(generator.set_state(state)):
            said.append(network(x, dropout=0.5))
        first, second, again = (each.detach().cpu() for each in said)
    assert torch.equal(first, again) and not torch.equal(first, second)
