"""Half precision in every agent of the registry: what it costs, what it keeps, and its loss scale.

What would happen on a graphics card is tried on a CPU, with the shortcuts of CPUs switched off.
"""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from device.test_agents_on_a_device import PAGE, batch_for, every_agent, make
from device.test_graphs import capture, compared, recorded  # noqa: F401
from helpers.agents.batches import make_batch
from helpers.device.ours import OURS
from helpers.device.pretended import NAME, pretend
from helpers.device.tape import FreedMemoryError
from torch.utils._python_dispatch import TorchDispatchMode

from curious_replay.agents import dreamer_v2, precision
from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.dreamer_v3 import DreamerV3
from curious_replay.agents.interface import NonFiniteError
from curious_replay.agents.precision import FIRST_SCALE, LossScale
from curious_replay.agents.spaces import Spaces
from curious_replay.run import Choice, foreseen, preset

CPU = torch.device("cpu")
MANY = 200  # casts; in float32 an update has fewer
SPACES = Spaces(5, discrete=True, image=None, vector=4)
pytestmark = pytest.mark.usefixtures("one_thread")


def make_in(precision, name, kind):
    agent = make(name, kind)
    agent.compute_in(precision)
    return agent


@every_agent
@pytest.mark.parametrize("low", ["bfloat16", "float16"])
def test_half_precision_stays_near(name, kind, low):
    exact, rounded = (make_in(each, name, kind) for each in ("float32", low))
    batch = batch_for(exact)
    wanted, found = (agent.update(batch) for agent in (exact, rounded))
    for key, value in wanted.metrics.items():
        if "loss" in key and "actor" not in key and "explore" not in key:
            assert found.metrics[key] == pytest.approx(value, rel=0.05, abs=0.02), key
    assert found.signals.keys() == wanted.signals.keys()
    np.testing.assert_allclose(found.signals["model"], wanted.signals["model"], rtol=0.05, atol=0.1)
    if low == "bfloat16":
        gradient = "tokenizer/gradient" if name == "iris" else "model/gradient"
        assert found.metrics[gradient] == pytest.approx(wanted.metrics[gradient], rel=0.05)
    for parameter in rounded.parameters():
        assert parameter.dtype == torch.float32


@every_agent
def test_memory_and_actions_are_as_they_were(name, kind):
    agent = make_in("float16", name, kind)
    state, batch = agent.start(2), batch_for(agent)
    observation = {field: batch[field][:, 0] for field in ("image", "is_first")}
    action, after = agent.act(state, observation, torch.Generator().manual_seed(0), explore=True)
    assert action.dtype == np.float32
    assert {key: value.dtype for key, value in after.items()} == {
        key: value.dtype for key, value in state.items()
    }
    if name != "dreamerpro":
        assert agent.open_loop(batch, 3).shape == batch["image"].shape


class Casts(TorchDispatchMode):
    """How often each part of each parameter was rounded between two steps of its optimiser."""

    def __init__(self, agent):
        super().__init__()
        self.optimisers = {
            value: each for each in agent.optimisers.values() for value in each.parameters.values()
        }
        self.owners = {
            value.untyped_storage().data_ptr(): (name, value)
            for name, value in agent.named_parameters()
        }
        self.found = Counter()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if operation._schema.name == "aten::_to_copy" and kwargs.get("dtype") == torch.bfloat16:
            source = args[0]
            owner = self.owners.get(source.untyped_storage().data_ptr())
            if owner is not None:
                name, value = owner
                steps = self.optimisers[value].steps.item() if value in self.optimisers else 0
                self.found[name, steps, tuple(source.shape), source.storage_offset()] += 1
        return operation(*args, **(kwargs or {}))


@every_agent
def test_weights_are_rounded_once_after_each_change(name, kind):
    """Or twice, where two parts of an agent use them one after the other."""
    agent = make_in("bfloat16", name, kind)
    batch = batch_for(agent)
    with Casts(agent) as casts:
        agent.update(batch)
    weights = {key: count for key, count in casts.found.items() if len(key[2]) > 1}
    assert len(weights) > 5
    most = 1 if name in ("dreamerv3", "dreamerv2", "dreamerpro") else 2
    assert not {key: count for key, count in weights.items() if count > most}


def test_a_weight_that_is_rounded_at_every_step_is_found(monkeypatch):
    monkeypatch.setattr(
        "curious_replay.agents.blocks.shortcuts.shared_weight.product_dtype",
        lambda weight: weight.dtype,
    )
    agent = make_in("bfloat16", "dreamerv3", "discrete")
    batch = batch_for(agent)
    with Casts(agent) as casts:
        agent.update(batch)
    assert max(casts.found.values()) >= 8


@every_agent
def test_updates_are_recorded(name, kind, capture):  # noqa: F811
    """The default precision on a card is bfloat16."""
    with pretend():
        agents = recorded(name, kind), make(name, kind, NAME)
        for agent in agents:
            agent.compute_in("bfloat16")
        compared(*agents, [batch_for(agents[0], seed=seed) for seed in (0, 0, 1)])
    (tape,) = capture.tapes
    assert Counter(name for name, _ in tape.kernels)["_to_copy"] > MANY


def test_a_weight_that_was_rounded_before_a_recording_is_found(capture):  # noqa: F811
    """Autocast keeps it until the optimiser has changed the weight; a graph would go on with it."""
    with pretend():
        agent = recorded("dreamerv3")
        agent.compute_in("bfloat16")
        batch, weights = batch_for(agent), [each for each in agent.parameters() if each.ndim == 2]
        with agent.autocast(), pytest.raises(FreedMemoryError, match=r"torch\.bfloat16.* is gone"):
            for _ in range(2):
                for weight in weights:
                    weight @ weight.T
                agent.update(batch)


def needs(name, scale):
    """Of an update in float32 and in bfloat16."""
    config = preset(Choice(env="crafter", agent=name, replay="curious", scale=scale))
    spaces = Spaces(17, discrete=True, image=(config.env.image_size,) * 2)
    for each in ("float32", "bfloat16"):
        train = replace(config.train, precision=each)
        yield foreseen.foresee(replace(config, train=train), spaces)


def test_half_precision_takes_less_memory():
    exact, rounded = needs("dreamerv3", "mini")
    assert rounded.total < exact.total


def expected():
    """Rows of the table in docs/gpu.md: kernels and GB in float32, and in bfloat16."""
    rows = re.findall(r"^\| `([\w-]+)` \| [\d.]+ \|((?: [\d.,]+ \|){6})$", PAGE, re.M)
    return {
        name: [float(cell.replace(",", "")) for cell in re.findall(r"[\d.,]+", cells)][:4]
        for name, cells in rows
    }


def test_the_table_has_a_row_for_every_agent():
    assert [*expected()] == OURS


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_half_precision_takes_less_memory_at_paper_scale(name):
    exact, rounded = needs(name, "paper")
    assert rounded.total < exact.total
    found = [exact.kernels, exact.total / 1e9, rounded.kernels, rounded.total / 1e9]
    assert found == pytest.approx(expected()[name], rel=0.02)


def test_values_after_an_update_are_of_weights_after_it(monkeypatch):
    """The signal "td" of DreamerV2 comes from the critic that has just learned."""
    agent = make_in("bfloat16", "dreamerv2", "discrete")
    agent.optimisers["critic_adam"].lr = 0.1
    told, real = [], dreamer_v2.ActorCritic.value
    monkeypatch.setattr(
        dreamer_v2.ActorCritic,
        "value",
        lambda self, x: told.append((x, real(self, x))) or told[-1][1],
    )
    agent.update(batch_for(agent))
    ((features, values),) = told
    with torch.no_grad(), agent.autocast():
        assert torch.equal(values, real(agent.behaviour, features))


TRUE, FALSE = torch.tensor(True), torch.tensor(False)


def test_the_loss_scale_is_halved_by_a_bad_step_and_doubled_by_many_good_ones(monkeypatch):
    monkeypatch.setattr(precision, "GROWS_AFTER", 3)
    scale = LossScale(CPU)
    seen = []
    for finite in (TRUE, TRUE, FALSE, TRUE, TRUE, TRUE, TRUE):
        scale.settle(finite, TRUE)
        seen.append(scale.factor.item() / FIRST_SCALE)
    assert seen == [1, 1, 0.5, 0.5, 0.5, 1, 1]
    scale.settle(FALSE, fine=FALSE)  # what came before is to blame
    assert scale.factor == FIRST_SCALE
    for _ in range(20):
        scale.settle(FALSE, TRUE)
    assert scale.factor == 1 and not scale.excuses()


def small(precision="float16", seed=0):
    agent = DreamerV3(DreamerV3Config(size="debug"), SPACES, seed)
    agent.compute_in(precision)
    return agent


def small_batch(seed=0):
    return make_batch(2, 6, actions=5, vector=4, seed=seed)


def test_a_gradient_that_is_too_large_leaves_out_its_step_only():
    agent = small()
    agent.update(small_batch())
    adam = agent.optimisers["model_adam"]
    adam.loss_scale.factor.fill_(2.0**100)
    before = {name: value.clone() for name, value in agent.state_dict().items()}
    steps = adam.steps.item()
    metrics = agent.update(small_batch()).metrics
    changed = {
        name.split(".")[0]
        for name, value in agent.state_dict().items()
        if not torch.equal(value, before[name])
    }
    assert changed == {"behaviour"}
    assert not np.isfinite(metrics["model/gradient"])
    assert metrics["model/loss_scale"] == 2.0**99
    assert adam.steps == steps
    assert agent.optimisers["actor_adam"].steps == steps + 1


def test_a_gradient_that_no_scale_mends_is_named(monkeypatch):
    agent = small()
    agent.update(small_batch())
    adam = agent.optimisers["model_adam"]
    monkeypatch.setattr(LossScale, "unscale", lambda self, gradients: gradients[0].fill_(np.nan))
    adam.loss_scale.factor.fill_(1.0)
    with pytest.raises(NonFiniteError, match="model/gradient"):
        agent.update(small_batch())


def test_the_loss_scale_is_saved_with_the_agent():
    agent, other = small(), small(seed=1)
    agent.update(small_batch())
    agent.optimisers["critic_adam"].loss_scale.factor.fill_(64.0)
    saved = {name: value.clone() for name, value in agent.tensors().items()}
    other.load_tensors(saved)
    assert other.optimisers["critic_adam"].loss_scale.factor == 64
    assert agent.update(small_batch()).metrics == other.update(small_batch()).metrics
    exact = small("float32")
    exact.load_tensors(saved)  # it needs none
    assert not [name for name in exact.tensors() if "loss_scale" in name]
    other.load_tensors(exact.tensors())  # and here it begins
    assert other.optimisers["model_adam"].loss_scale.factor == FIRST_SCALE
