"""Plan2Explore: the ensemble, what the explorer strives for, and that the Dreamer is left alone."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.agents.batches import batch_of, check_td_where_no_step_led, count
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import DREAMER_V2, DREAMER_V2_NORM, DREAMER_V3, NORM_EPS
from curious_replay.agents.blocks.ensemble import Ensemble, disagreement
from curious_replay.agents.blocks.rssm import State
from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.configs.plan2explore import (
    EnsembleConfig,
    Plan2ExploreConfig,
    Plan2ExploreV3Config,
)
from curious_replay.agents.dreamer_v2 import DreamerV2, V2Model
from curious_replay.agents.dreamer_v3 import DreamerV3, V3Model
from curious_replay.agents.interface import NonFiniteError
from curious_replay.agents.plan2explore import Plan2Explore
from curious_replay.agents.spaces import Spaces

SPACES = {
    "discrete": Spaces(4, discrete=True, image=(32, 32)),
    "continuous": Spaces(2, discrete=False, image=(32, 32)),
}
V2 = Plan2ExploreConfig(DreamerV2Config(size="debug-G", imagination=4))
V2_NORM = Plan2ExploreConfig(DreamerV2Config(size="debug-D", imagination=4))
V3 = Plan2ExploreV3Config(DreamerV3Config(size="debug", imagination=4))
CONFIGS = {"v2": V2, "v2-norm": V2_NORM, "v3": V3}


def make(config=V2, kind="continuous", seed=0, **changes):
    return Plan2Explore(dataclasses.replace(config, **changes), SPACES[kind], seed)


@pytest.mark.parametrize(
    ("size", "spaces", "expected"),
    [("D", Spaces(17, discrete=True), 17_214_240), ("G", Spaces(6, discrete=False), 5_896_320)],
)
def test_parameter_counts(size, spaces, expected):
    with torch.device("meta"):  # shapes without memory
        model = V2Model(DreamerV2Config(size=size), spaces)
        layers, units, style = model.head_shape
        inputs = model.features + spaces.actions
        ensemble = Ensemble(10, inputs, layers, units, model.latent.size, style)
    assert count(ensemble) == expected


def test_sizes_on_dreamer_v3_are_those_of_its_heads():
    for size, shape in (("S", (2, 512)), ("XL", (5, 1024))):
        with torch.device("meta"):
            model = V3Model(DreamerV3Config(size=size), SPACES["discrete"])
        assert model.head_shape == (*shape, DREAMER_V3)
    assert V3.ensemble == EnsembleConfig(8, "squared", 1e-4, 1e-5, "pytorch", 100.0, 0.0)
    assert V2.ensemble == EnsembleConfig(10, "normal", 3e-4, 1e-5, "tensorflow", 100.0, 1e-6)


@pytest.mark.parametrize("name", CONFIGS)
def test_an_ensemble_can_have_a_shape_of_its_own(name):
    shaped = dataclasses.replace(CONFIGS[name].ensemble, layers=3, units=11)
    ensemble = make(CONFIGS[name], ensemble=shaped).ensemble
    assert [layer.weight.shape[-1] for layer in ensemble.hidden] == [11] * 3
    as_heads = make(CONFIGS[name])
    layers, units, _ = as_heads.dreamer.model.head_shape
    assert [layer.weight.shape[-1] for layer in as_heads.ensemble.hidden] == [units] * layers


def member_by_member(ensemble, x, norm, bias, activation):
    """The same networks, one after the other."""
    predictions = []
    for m in range(ensemble.members):
        y = x
        for layer in ensemble.hidden:
            y = F.linear(y, layer.weight[m].T, layer.bias[m, 0] if bias else None)
            if norm:
                y = F.layer_norm(y, y.shape[-1:], layer.scale[m, 0], layer.offset[m, 0], NORM_EPS)
            y = activation(y)
        predictions.append(F.linear(y, ensemble.weight[m].T, ensemble.bias[m, 0]))
    return torch.stack(predictions)


@pytest.mark.parametrize("style", [DREAMER_V2, DREAMER_V2_NORM, DREAMER_V3])
def test_ensemble_equals_its_members_with_all_gradients(style):
    torch.manual_seed(0)
    ensemble = Ensemble(3, 5, 2, 7, 4, style).double()
    for parameter in ensemble.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)  # also biases and norms
    x = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(3, 6, 4, dtype=torch.float64)
    slow = member_by_member(ensemble, x, style.norm, style.bias, style.activation)
    fast = ensemble(x)
    torch.testing.assert_close(fast, slow)
    inputs = [x, *ensemble.parameters()]
    for left, right in zip(
        torch.autograd.grad((fast * weights).sum(), inputs),
        torch.autograd.grad((slow * weights).sum(), inputs),
        strict=True,
    ):
        assert right.abs().max() > 0
        torch.testing.assert_close(left, right)


def test_disagreement_is_the_mean_deviation_with_its_gradient():
    torch.manual_seed(0)
    predictions = torch.randn(4, 3, 5, dtype=torch.float64, requires_grad=True)
    found = disagreement(predictions)
    torch.testing.assert_close(found, predictions.std(0, correction=0).mean(-1))
    assert torch.autograd.gradcheck(disagreement, predictions)
    agreed = torch.ones(4, 3, 5, requires_grad=True)
    disagreement(agreed).sum().backward()
    assert not agreed.grad.any()


def test_members_begin_with_different_weights():
    ensemble = Ensemble(4, 5, 2, 7, 3, DREAMER_V2)
    first, second, *_ = ensemble(torch.ones(1, 5))
    assert not torch.allclose(first, second)
    limit = np.sqrt(6 / (5 + 7))
    assert limit * 0.8 < ensemble.hidden[0].weight.abs().max().item() <= limit


def trained(agent, batch):
    replayed = agent.dreamer.load(batch)
    learned = agent.dreamer.train_world_model(replayed)
    return replayed, learned


def catch(agent, name):
    caught = []

    def step(loss, *_, **__):
        caught.append(loss)
        return torch.zeros(())

    agent.optimisers[name].step = step
    return caught


@pytest.mark.parametrize("target", ["sample", "mean", "embedding"])
@pytest.mark.parametrize("alignment", ["correct", "released"])
@pytest.mark.parametrize("name", ["v2", "v3"])
def test_ensemble_learns_the_next_state(name, alignment, target):
    """Against a loop over steps; where a new episode begins there is nothing to learn."""
    ensemble = dataclasses.replace(CONFIGS[name].ensemble, target=target)
    agent = make(CONFIGS[name], alignment=alignment, ensemble=ensemble)
    batch = batch_of("continuous")
    assert batch["is_first"][:, 1:].any()
    before = agent.dreamer.load(batch)
    embedded = agent.dreamer.model.embed(before.image, before.vector)
    replayed, learned = trained(agent, batch)
    caught = catch(agent, "ensemble_adam")
    agent.train_ensemble(replayed, learned)
    states, total, pairs = learned.belief.states, 0.0, 0
    goals = states.stoch
    if target == "mean" and name == "v2":
        goals = learned.belief.posterior.chunk(2, -1)[0]
    elif target == "mean":
        latent = agent.dreamer.model.latent
        logits = learned.belief.posterior.unflatten(-1, (latent.latents, latent.classes))
        goals = (0.99 * logits.softmax(-1) + 0.01 / latent.classes).flatten(-2)
    elif target == "embedding":
        goals = embedded
    size = agent.dreamer.model.embedding if target == "embedding" else states.stoch.shape[-1]
    assert goals.shape[-1] == size
    if target == "mean":
        assert not torch.equal(goals, states.stoch)
    for row in range(3):
        for t in range(7):
            if batch["is_first"][row, t + 1]:
                continue
            pairs += 1
            moved = t if alignment == "correct" else t - 1
            known = moved >= 0
            action = batch["action"][row, moved] if known else np.zeros(2)
            inputs = torch.cat([states.feature[t, row], torch.from_numpy(action).float()])
            goal = goals[t + 1, row]
            for prediction in agent.ensemble(inputs.unsqueeze(0))[:, 0]:
                square = (prediction - goal).square().sum()
                total += square if name == "v3" else 0.5 * square + len(goal) * 0.9189385
    assert caught[0].item() == pytest.approx((total / pairs).item(), rel=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["v2", "v3"])
def test_an_update_with_what_is_seen_for_a_target(name, precision):
    ensemble = dataclasses.replace(CONFIGS[name].ensemble, target="embedding")
    agent = make(CONFIGS[name], ensemble=ensemble)
    agent.compute_in(precision)
    found = agent.update(batch_of("continuous")).metrics
    assert 0 < found["ensemble/loss"] < np.inf
    assert found["explore_actor/reward"] > 0


@pytest.mark.parametrize("target", ["sample", "mean", "embedding"])
@pytest.mark.parametrize("name", CONFIGS)
def test_no_gradient_of_the_ensemble_reaches_the_world_model(name, target):
    ensemble = dataclasses.replace(CONFIGS[name].ensemble, target=target)
    agent = make(CONFIGS[name], ensemble=ensemble)
    replayed, learned = trained(agent, batch_of("continuous"))
    caught = catch(agent, "ensemble_adam")
    agent.train_ensemble(replayed, learned)
    parameters = [*agent.dreamer.model.parameters()]
    found = torch.autograd.grad(caught[0], parameters, allow_unused=True, retain_graph=True)
    assert all(gradient is None for gradient in found)
    for gradient in torch.autograd.grad(caught[0], [*agent.ensemble.parameters()]):
        assert gradient.abs().max() > 0


def imagined_of(agent, start, generator):
    return agent.explorer.imagine(agent.dreamer.model, start, generator)


def start_of(agent, rows=5):
    torch.manual_seed(0)
    deter = torch.tanh(torch.randn(rows, 16))
    model = agent.dreamer.model
    return State(deter, model.latent.mode(model.rssm.prior(deter)).detach())


@pytest.mark.parametrize("alignment", ["correct", "released"])
def test_novelty_is_the_disagreement_at_each_state(alignment):
    agent = make(alignment=alignment, intrinsic_scale=3.0)
    imagined = imagined_of(agent, start_of(agent), agent.generator)
    found = agent.novelty(imagined)
    assert found.shape == (5, 5)
    for t in range(5):
        if alignment == "correct":
            action = imagined.actions[t]
        else:
            action = imagined.actions[t - 1] if t else torch.zeros(5, 2)
        predictions = agent.ensemble(torch.cat([imagined.features[t], action], -1))
        torch.testing.assert_close(found[t], 3 * disagreement(predictions))


def test_released_alignment_does_not_see_the_action_that_is_taken():
    for alignment in ("correct", "released"):
        agent = make(alignment=alignment)
        imagined = imagined_of(agent, start_of(agent), agent.generator)
        actions = imagined.actions.detach().clone()
        actions[2] = -actions[2]
        moved = agent.novelty(imagined._replace(actions=actions))
        same = torch.isclose(moved, agent.novelty(imagined)).all(1).tolist()
        seen = 2 if alignment == "correct" else 3
        assert same == [t != seen for t in range(5)]


@pytest.mark.parametrize(("name", "cut"), [("v2", slice(0, -1)), ("v3", slice(1, None))])
def test_explorer_strives_for_novelty_of_the_states_that_its_dreamer_counts(name, cut):
    agent = make(CONFIGS[name])
    replayed, learned = trained(agent, batch_of("continuous"))
    novelty, seen = agent.novelty, []
    agent.novelty = lambda imagined: seen.append(novelty(imagined)) or seen[-1]
    outputs, _ = agent._explore(replayed, learned.start)
    torch.testing.assert_close(outputs.rewards, seen[0][cut].detach())
    assert (outputs.rewards > 0).all()


def test_continuous_explorer_gets_gradients_through_the_ensemble():
    agent = make()
    imagined = imagined_of(agent, start_of(agent), agent.generator)
    agent.novelty(imagined)[1:].sum().backward()
    gradients = [p.grad.abs().max().item() for p in agent.explorer.actor.parameters()]
    assert min(gradients) > 0


@pytest.mark.parametrize("name", CONFIGS)
def test_disagreement_falls_on_what_the_ensemble_has_learned(name):
    settings = dataclasses.replace(CONFIGS[name].ensemble, lr=3e-3)
    agent, batch = make(CONFIGS[name], ensemble=settings), batch_of("continuous", ends=0)
    replayed, learned = trained(agent, batch)
    feature = learned.belief.states.feature.detach()
    known = torch.cat([feature[:-1], replayed.previous_action[1:]], -1).flatten(0, 1)
    with torch.no_grad():
        before = disagreement(agent.ensemble(known)).mean()
        for _ in range(300):
            with torch.enable_grad():
                metrics = agent.train_ensemble(replayed, learned)
        after = disagreement(agent.ensemble(known)).mean()
        strange = disagreement(agent.ensemble(5 * torch.randn_like(known))).mean()
    assert torch.isfinite(metrics["ensemble/loss"])
    assert after < 0.3 * before
    assert strange > 3 * after


@pytest.mark.parametrize("kind", SPACES)
def test_td_is_that_of_the_explorers_critic(kind):
    """reward of the state left + discount * next value - value, with its own novelty and critic."""
    agent, batch = make(kind=kind), batch_of(kind)
    explore, caught = agent._explore, {}

    def keep(replayed, start, unread):
        caught["start"] = start
        outputs, td = explore(replayed, start, unread)
        caught["novelty"] = outputs.rewards[0].view(8, 3)
        return outputs, td

    agent._explore = keep
    td = agent.update(batch).signals["td"]
    check_td_where_no_step_led(td, batch["is_first"])
    with torch.no_grad():
        values = agent.explorer.value(caught["start"].feature).view(8, 3)
    discount = agent.dreamer.config.discount
    expected = (caught["novelty"][:-1] + discount * values[1:] - values[:-1]).T.numpy()
    known = ~batch["is_first"][:, 1:]
    np.testing.assert_allclose(td[:, 1:][known], expected[known], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("kind", SPACES)
def test_world_model_and_task_actor_learn_as_without_it(name, kind):
    """Up to the point where the ensemble comes in, an update is that of the Dreamer alone."""
    config, batch = CONFIGS[name], batch_of(kind)
    alone = (DreamerV3 if name == "v3" else DreamerV2)(config.dreamer, SPACES[kind], 0)
    wrapped = make(config, kind)
    expected, found = alone.update(batch), wrapped.update(batch)
    for key, value in expected.metrics.items():
        assert found.metrics[key] == value, key
    for key in ("model", "likelihood", "kl"):
        assert np.array_equal(found.signals[key], expected.signals[key])
    for key, value in alone.state_dict().items():
        assert torch.equal(wrapped.state_dict()[f"dreamer.{key}"], value), key


@pytest.mark.parametrize("name", CONFIGS)
def test_everything_learns(name):
    agent = make(CONFIGS[name])
    before = {key: value.clone() for key, value in agent.state_dict().items()}
    for seed in range(2):  # some heads begin at 0 and pass nothing on at first
        agent.update(batch_of("continuous", seed=seed))
    slow = ("target_critic", "slow_critic")
    for key, parameter in agent.named_parameters():
        moved = not torch.equal(before[key], parameter)
        assert moved or any(part in key for part in slow), key


def test_explorer_collects_and_the_task_actor_is_evaluated():
    for name, config in CONFIGS.items():
        agent, batch = make(config), batch_of("continuous", rows=4)
        observation = {field: array[:, 0] for field, array in batch.items()}
        actors = {"explorer": agent.explorer.actor, "task": agent.dreamer.behaviour.actor}
        used = []
        for who, actor in actors.items():
            actor.register_forward_hook(lambda *_, who=who, used=used: used.append(who))
        for explore in (True, False):
            generator = torch.Generator().manual_seed(0)
            agent.act(agent.start(4), observation, generator, explore)
        assert used == ["explorer", "task"], name


def test_evaluation_on_dreamer_v2_takes_the_mode():
    agent, batch = make(), batch_of("continuous", rows=4)
    agent.dreamer.model.latent.sample = lambda outputs, noise: agent.dreamer.model.latent.mode(
        outputs
    )
    observation = {field: array[:, 0] for field, array in batch.items()}
    for explore, same in ((False, True), (True, False)):
        actions = [
            agent.act(agent.start(4), observation, torch.Generator().manual_seed(s), explore)[0]
            for s in (0, 1)
        ]
        assert np.array_equal(*actions) == same


def test_explorer_begins_with_weights_of_its_own():
    agent = make()
    own, other = agent.dreamer.behaviour.actor, agent.explorer.actor
    assert not torch.equal(own.network[0].weight, other.network[0].weight)
    again = make()
    assert torch.equal(again.explorer.actor.network[0].weight, other.network[0].weight)
    assert torch.equal(again.ensemble.weight, agent.ensemble.weight)


def test_signals_that_the_explorer_cannot_give_are_refused():
    with pytest.raises(ValueError, match="td must be"):
        Plan2ExploreConfig(DreamerV2Config(td="replayed"))
    with pytest.raises(ValueError, match="td must be"):
        Plan2ExploreV3Config(DreamerV3Config(td="predicted"))


def test_what_is_not_finite_in_exploration_is_named():
    agent, batch = make(), batch_of("continuous")
    agent.ensemble.weight.data[0, 0, 0] = torch.nan
    with pytest.raises(NonFiniteError, match="ensemble/loss"):
        agent.update(batch)
    agent.train_ensemble = lambda replayed, learned: {}
    with pytest.raises(NonFiniteError, match="explore_actor/loss"):
        agent.update(batch)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("kind", SPACES)
def test_bfloat16_runs_and_stays_near(name, kind):
    exact, rounded = (make(CONFIGS[name], kind) for _ in range(2))
    rounded.compute_in("bfloat16")
    full, half = (agent.update(batch_of(kind)).metrics for agent in (exact, rounded))
    for key in ("model/loss", "ensemble/loss", "explore_actor/reward"):
        assert half[key] == pytest.approx(full[key], rel=0.02), key
        assert half[key] != full[key], key
