"""What must hold for every agent, whatever it learns: shapes, seeds, memory, and its state."""

import numpy as np
import pytest
import torch
from helpers.agents.batches import check_td_where_no_step_led, make_batch, with_streams

from curious_replay.agents.configs.dreamer_pro import DreamerProConfig
from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.configs.iris import IrisConfig
from curious_replay.agents.configs.plan2explore import Plan2ExploreConfig, Plan2ExploreV3Config
from curious_replay.agents.dreamer_pro import DreamerPro
from curious_replay.agents.dreamer_v2 import DreamerV2
from curious_replay.agents.interface import NonFiniteError
from curious_replay.agents.iris import Iris
from curious_replay.agents.plan2explore import Plan2Explore
from curious_replay.agents.spaces import Spaces

KINDS = {
    "discrete": (Spaces(4, discrete=True, image=(32, 32)), {}),
    "small": (Spaces(4, discrete=True, image=(16, 16)), {"size": 16}),
    "continuous": (Spaces(2, discrete=False, image=(32, 32)), {"actions": 2, "discrete": False}),
    "vector": (Spaces(4, discrete=True, image=None, vector=5), {"size": 0, "vector": 5}),
    "both": (Spaces(4, discrete=True, image=(32, 32), vector=5), {"vector": 5}),
}
DISCRETE = DreamerV2Config(size="debug-D", imagination=4)
GAUSSIAN = DreamerV2Config(size="debug-G", imagination=4, discount_head=False)
STREAMS = {"pictures": (4, 1), "starts": (3, 3)}  # of IRIS; others leave them aside
IRIS = IrisConfig(
    size="debug", context=8, pictures=4, starts=3, burn_in=2, imagination=3,
    model_after=0, actor_after=0,
)  # fmt: skip
PROTOTYPES = {"prototypes": 10, "prototype_size": 4, "frozen_updates": 1, "imagination": 4}
AGENTS = {
    "dreamer_pro-discrete": (DreamerPro, DreamerProConfig(size="debug-D", **PROTOTYPES)),
    "dreamer_pro-gaussian": (
        DreamerPro,
        DreamerProConfig(size="debug-G", discount_head=False, **PROTOTYPES),
    ),
    "iris": (Iris, IRIS),
    "dreamer_v2-discrete": (DreamerV2, DISCRETE),
    "dreamer_v2-gaussian": (DreamerV2, GAUSSIAN),
    "plan2explore-v2": (Plan2Explore, Plan2ExploreConfig(GAUSSIAN)),
    "plan2explore-v3": (
        Plan2Explore,
        Plan2ExploreV3Config(DreamerV3Config(size="debug", imagination=4)),
    ),
}
every_agent = pytest.mark.parametrize("name", AGENTS)
UNKNOWN = {
    DreamerPro: ("vector",),  # needs images
    Iris: ("continuous", "vector", "both"),  # sees images only, and has discrete actions
}
every_agent_and_kind = pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name, (agent, _) in AGENTS.items()
        for kind in KINDS
        if kind not in UNKNOWN.get(agent, ())
    ],
)


def make(name, kind="discrete", seed=0):
    agent, config = AGENTS[name]
    return agent(config, KINDS[kind][0], seed)


def batch_of(kind="discrete", **kwargs):
    kwargs = {**KINDS[kind][1], **kwargs}
    return with_streams(make_batch(**kwargs), STREAMS, **kwargs)


@every_agent_and_kind
def test_signals_have_the_shape_of_the_batch(name, kind):
    feedback = make(name, kind).update(batch_of(kind))
    assert set(feedback.signals) == {"model", "likelihood", "kl", "td"}
    for signal_name, signal in feedback.signals.items():
        assert signal.shape == (3, 8), signal_name
        assert signal.dtype == np.float32
        if signal_name != "td":
            # DreamerPro compares no image of a window's first step with prototypes.
            unknown = name.startswith("dreamer_pro") and signal_name != "kl"
            assert np.isfinite(signal[:, int(unknown) :]).all()
            assert np.isnan(signal[:, : int(unknown)]).all()
    assert all(np.isfinite(value) for value in feedback.metrics.values())


@every_agent
def test_what_adam_is_given_lies_alike_in_memory(name, monkeypatch):
    fused, seen = torch._fused_adam_, []

    def look(parameters, gradients, first, second, *others, **settings):
        for one, *values in zip(parameters, gradients, first, second, strict=True):
            assert all(value.stride() == one.stride() for value in values)
        seen.append(len(parameters))
        return fused(parameters, gradients, first, second, *others, **settings)

    monkeypatch.setattr(torch, "_fused_adam_", look)
    make(name).update(batch_of())
    assert len(seen) >= 2


@every_agent
def test_td_knows_where_no_step_led(name):
    batch = batch_of()
    assert batch["is_first"][:, 1:].any()
    check_td_where_no_step_led(make(name).update(batch).signals["td"], batch["is_first"])


@every_agent_and_kind
def test_state_is_all_there_is(name, kind):
    batch, other = batch_of(kind), batch_of(kind, seed=1)
    agent = make(name, kind)
    agent.update(batch)
    saved = {key: value.clone() for key, value in agent.tensors().items()}
    expected = [agent.update(b) for b in (other, batch)]
    again = make(name, kind, seed=5)
    again.load_tensors(saved)
    for feedback, b in zip(expected, (other, batch), strict=True):
        found = again.update(b)
        assert found.metrics == feedback.metrics
        for key, signal in feedback.signals.items():
            assert np.array_equal(found.signals[key], signal, equal_nan=True), key
    left, right = agent.tensors(), again.tensors()
    assert left.keys() == right.keys()
    assert all(torch.equal(left[key], right[key]) for key in left)


@every_agent
def test_state_can_be_taken_before_the_first_update(name):
    agent, again, batch = make(name), make(name, seed=3), batch_of()
    again.load_tensors({key: value.clone() for key, value in agent.tensors().items()})
    assert again.update(batch).metrics == agent.update(batch).metrics


@every_agent
def test_same_seed_same_update_and_other_seed_another(name):
    batch = batch_of()
    first, second, third = (make(name, seed=seed).update(batch).metrics for seed in (0, 0, 1))
    assert first == second != third


@every_agent
def test_global_randomness_is_neither_used_nor_changed(name):
    batch = batch_of()
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    metrics = [make(name).update(batch).metrics]
    torch.testing.assert_close(torch.rand(3), expected)
    torch.manual_seed(2)
    metrics.append(make(name).update(batch).metrics)
    assert metrics[0] == metrics[1]


@pytest.mark.parametrize("explore", [True, False])
@every_agent_and_kind
def test_acting(name, kind, explore):
    agent, batch = make(name, kind), batch_of(kind, rows=6)
    generator = torch.Generator().manual_seed(0)
    observation = {field: array[:, 0] for field, array in batch.items()}
    before = agent.tensors()["generator"].clone()
    action, state = agent.act(agent.start(6), observation, generator, explore)
    assert torch.equal(agent.tensors()["generator"], before)
    assert action.shape == (6, agent.spaces.actions)
    assert action.dtype == np.float32
    if agent.spaces.discrete:
        assert (action.sum(1) == 1).all() and set(action.flat) == {0.0, 1.0}
    else:
        assert np.abs(action).max() <= 1
    assert all(len(value) == 6 for value in state.values())
    agent.act(state, observation, generator, explore)


@every_agent
def test_a_first_step_wipes_the_memory_of_its_row_only(name):
    agent, batch = make(name), make_batch(rows=2, ends=0)

    def memory(first):
        state, generator = agent.start(2), torch.Generator().manual_seed(0)
        for t in range(3):
            fields = {field: array[:, t] for field, array in batch.items()}
            fields["is_first"] = np.array([t == 0, t == 0 or (first and t == 2)])
            _, state = agent.act(state, fields, generator, explore=True)
        return next(iter(state.values()))

    kept, wiped = memory(first=False), memory(first=True)
    torch.testing.assert_close(kept[0], wiped[0])
    assert not torch.allclose(kept[1], wiped[1])


@every_agent
def test_open_loop_sees_the_context_only_and_disturbs_nothing(name):
    agent, batch = make(name), batch_of(ends=0)
    if isinstance(agent, DreamerPro):
        with pytest.raises(ValueError, match="without a decoder of images"):
            agent.open_loop(batch, context=3)
        return
    before = {key: value.clone() for key, value in agent.tensors().items()}
    video = agent.open_loop(batch, context=3)
    assert video.shape == batch["image"].shape
    assert video.dtype == np.uint8
    changed = {**batch, "image": batch["image"].copy()}
    changed["image"][:, 3:] = 0
    assert np.array_equal(agent.open_loop(changed, context=3), video)
    after = agent.tensors()
    assert all(torch.equal(after[key], value) for key, value in before.items())


@every_agent
def test_what_is_not_finite_is_named_and_changes_nothing(name):
    agent, batch = make(name), batch_of()
    agent.update(batch)
    before = {key: value.clone() for key, value in agent.state_dict().items()}
    batch["reward"][0, 3] = np.nan
    with pytest.raises(NonFiniteError, match="model/reward"):
        agent.update(batch)
    for key, value in agent.state_dict().items():
        assert torch.equal(value, before[key]), key


@every_agent
def test_after_a_failed_update_a_loaded_copy_goes_on_alike(name):
    agent, again, batch = make(name), make(name, seed=5), batch_of()
    agent.update(batch)
    with pytest.raises(NonFiniteError):
        agent.update({**batch, "reward": np.full_like(batch["reward"], np.nan)})
    again.load_tensors({key: value.clone() for key, value in agent.tensors().items()})
    assert again.update(batch).metrics == agent.update(batch).metrics


@every_agent
def test_a_batch_of_two_steps_is_enough(name):
    batch = batch_of(steps=2, rows=1)
    batch["is_first"][:] = True  # nothing leads anywhere
    metrics = make(name).update(batch).metrics
    assert all(np.isfinite(value) for value in metrics.values())


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_batches_begin_where_memory_of_tensors_does(dtype):
    """Wherever NumPy has put them: else products might round differently after a resume."""
    agent = DreamerV2(DISCRETE, KINDS["vector"][0], 0)
    for offset in range(1, 5):
        array = np.arange(20, dtype=dtype)[offset:]
        loaded = agent._load(array)
        assert loaded.data_ptr() % 64 == 0
        assert loaded.dtype == torch.float32
        assert loaded.tolist() == array.tolist()
