"""DreamerV3: sizes, losses of the model, masks, and that its state is all there is to it."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.agents.batches import check_td_where_no_step_led, count
from helpers.agents.small_v3 import KINDS, batch_of, make

from curious_replay.agents.blocks.rssm import State
from curious_replay.agents.configs.dreamer_v3 import SIZES, DreamerV3Config
from curious_replay.agents.dreamer import ActorCriticOutputs, Belief
from curious_replay.agents.dreamer_v3 import ActorCritic, DreamerV3, V3Model
from curious_replay.agents.interface import NonFiniteError
from curious_replay.agents.spaces import Spaces


@pytest.mark.parametrize(
    ("size", "actions", "discrete", "expected"),
    [
        ("S", 17, True, 17_934_227),
        ("M", 17, True, 36_910_547),
        ("L", 17, True, 76_765_715),
        ("XL", 17, True, 200_743_571),
        ("S", 6, False, 17_926_030),
        ("tiny", 17, True, 4_295_891),
        ("XS", 17, True, 8_268_083),
    ],
)
def test_parameter_counts(size, actions, discrete, expected):
    config, spaces = DreamerV3Config(size=size), Spaces(actions, discrete)
    with torch.device("meta"):  # shapes without memory
        model = V3Model(config, spaces)
        behaviour = ActorCritic(config, spaces, model.features)
    assert count(model) + count(behaviour) == expected


def test_parts_of_tiny():
    agent = DreamerV3(DreamerV3Config(size="tiny"), Spaces(17, discrete=True), 0)
    parts = [agent.model, agent.behaviour.actor, agent.behaviour.critic]
    assert [count(part) for part in parts] == [3_831_747, 201_489, 262_655]


@pytest.mark.parametrize("kind", KINDS)
def test_signals_have_the_shape_of_the_batch(kind):
    agent, batch = make(kind), batch_of(kind)
    feedback = agent.update(batch)
    assert set(feedback.signals) == {"model", "likelihood", "kl", "td"}
    for name, signal in feedback.signals.items():
        assert signal.shape == (3, 8), name
        assert signal.dtype == np.float32
        if name != "td":
            assert np.isfinite(signal).all()
    assert all(np.isfinite(value) for value in feedback.metrics.values())
    seen = {"image", "vector"} & set(batch)
    assert {f"model/{name}" for name in (*seen, "reward", "continue", "kl", "loss")} <= set(
        feedback.metrics
    )


def test_td_knows_where_no_step_led():
    agent, batch = make(), batch_of()
    assert batch["is_first"][:, 1:].any()
    td = agent.update(batch).signals["td"]
    check_td_where_no_step_led(td, batch["is_first"])


@pytest.mark.parametrize(("kl", "cost"), [(7.3, 0.6 * 7.3), (0.4, 0.6)])
def test_what_the_kl_costs_a_step(kl, cost):
    """Its two parts, 0.5 and 0.1 of it, but not below the free nat."""
    agent = make()
    agent.model.latent.kl = lambda *_: torch.tensor([[kl]])
    belief = Belief(State(*torch.zeros(2, 1, 1, 1)), *torch.zeros(3, 1, 1, 1))
    raw, charged = agent.model.kl_loss(belief)
    assert raw.item() == pytest.approx(kl)
    assert charged.item() == pytest.approx(cost)


def test_free_nats_hold_per_step_and_stop_the_gradient():
    agent = make()
    values = torch.tensor([[0.2, 3.0]], requires_grad=True)
    agent.model.latent.kl = lambda left, right: values
    belief = Belief(State(*torch.zeros(2, 1, 2, 1)), *torch.zeros(3, 1, 2, 1))
    _, cost = agent.model.kl_loss(belief)
    assert cost.mean().item() == pytest.approx(0.6 * 2.0)
    cost.sum().backward()
    assert values.grad.tolist() == [[0.0, pytest.approx(0.6)]]


@pytest.mark.parametrize(("kl", "held"), [((0.2, 1.4), 1.2), ((0.2, 0.3), 1.0)])
def test_free_nats_hold_whatever_the_other_steps_cost(kl, held):
    agent = make()
    agent.model.latent.kl = lambda left, right: torch.tensor([kl])
    belief = Belief(State(*torch.zeros(2, 1, 2, 1)), *torch.zeros(3, 1, 2, 1))
    _, cost = agent.model.kl_loss(belief)
    assert cost.mean().item() == pytest.approx(0.6 * held)


def test_dynamics_move_the_prior_and_representation_the_posterior():
    agent = make(free_nats=0.0)
    prior, posterior = torch.randn(2, 1, 1, 16).requires_grad_()
    belief = Belief(State(*torch.zeros(2, 1, 1, 1)), prior, posterior, torch.zeros(1, 1, 1))
    for scales, moved, still in (((1.0, 0.0), prior, posterior), ((0.0, 1.0), posterior, prior)):
        agent.model.config = dataclasses.replace(
            agent.config, free_nats=0.0, dynamics_scale=scales[0], representation_scale=scales[1]
        )
        _, cost = agent.model.kl_loss(belief)
        gradient, none = torch.autograd.grad(cost.sum(), [moved, still], allow_unused=True)
        assert gradient.abs().max() > 1e-6
        assert none is None or none.abs().max() == 0


def test_signals_add_up():
    feedback = make().update(batch_of())
    model, likelihood, kl = (feedback.signals[name] for name in ("model", "likelihood", "kl"))
    np.testing.assert_allclose(model, likelihood + 0.6 * np.maximum(1, kl), rtol=1e-6)
    assert feedback.metrics["model/loss"] == pytest.approx(model.mean(), rel=1e-6)
    heads = sum(feedback.metrics[f"model/{name}"] for name in ("image", "reward", "continue"))
    assert heads == pytest.approx(likelihood.mean(), rel=1e-6)


@pytest.mark.parametrize("td", ["imagined", "predicted", "replayed"])
def test_td_error(td):
    """Worked numbers: V = 1, 2, .5, 4; the step after index 1 is terminal."""
    agent = make(td=td)
    batch = batch_of(rows=1, steps=4, ends=0)
    batch["is_terminal"][:] = [[False, False, True, False]]
    batch["reward"][:] = [[9, 0.1, 0.2, -0.3]]
    ahead = torch.tensor([0.1, 0.2, -0.3, 9.0])
    agent.model.reward = lambda features: ahead.view(4, 1)
    outputs = ActorCriticOutputs(ahead.view(1, 4), torch.tensor([[1.0, 2.0, 0.5, 4.0]]), {})
    states = State(torch.zeros(4, 16), torch.zeros(4, 16))
    error = agent._td_error(agent.load(batch), states, outputs)
    expected = [[np.nan], [1.093993994], [-1.8], [-0.3 + 332 / 333 * 4 - 0.5]]
    np.testing.assert_allclose(error.numpy(), expected, rtol=1e-6)


def model_losses(agent, batch, noise):
    replayed = agent.load(batch)
    belief = agent.model.believe(replayed, noise)
    likelihoods = agent.model.likelihood_losses(replayed, belief)
    return torch.stack([*likelihoods.values(), agent.model.kl_loss(belief)[1]])


def test_rows_in_another_order_have_the_same_losses():
    agent, batch = make("both"), batch_of("both")
    noise = torch.rand(8, 3, 4)
    order = [2, 0, 1]
    losses = model_losses(agent, batch, noise)
    moved = {name: array[order] for name, array in batch.items()}
    torch.testing.assert_close(model_losses(agent, moved, noise[:, order]), losses[..., order])


def test_an_episode_does_not_depend_on_what_stands_before_it():
    agent, batch = make(), batch_of(rows=1, ends=0)
    batch["is_first"][0, 4] = True
    noise = torch.rand(8, 1, 4)
    losses = model_losses(agent, batch, noise)
    for name in ("image", "action", "reward"):
        batch[name][0, :4] = batch[name][0, 4:]
    other = model_losses(agent, batch, noise)
    torch.testing.assert_close(other[:, 4:], losses[:, 4:])
    assert not torch.allclose(other[:, :4], losses[:, :4])


def test_the_action_before_a_step_explains_it():
    """Losses of step t depend on the action of step t - 1, not on its own."""
    agent, batch = make(), batch_of(rows=1, ends=0)
    noise = torch.rand(8, 1, 4)
    before = model_losses(agent, batch, noise)
    batch["action"][0, 3] = np.roll(batch["action"][0, 3], 1)
    after = model_losses(agent, batch, noise)
    same = torch.isclose(before, after).all(0)[:, 0]
    assert same.tolist() == [True] * 4 + [False] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_state_is_all_there_is(kind):
    batch, other = batch_of(kind), batch_of(kind, seed=1)
    agent = make(kind)
    agent.update(batch)
    saved = {name: value.clone() for name, value in agent.tensors().items()}
    expected = [agent.update(b).metrics for b in (other, batch)]
    again = make(kind, seed=5)
    again.load_tensors(saved)
    assert [again.update(b).metrics for b in (other, batch)] == expected


def test_same_seed_same_update_and_other_seed_another():
    batch = batch_of()
    first, second, third = (make(seed=seed).update(batch).metrics for seed in (0, 0, 1))
    assert first == second != third


def test_global_randomness_is_neither_used_nor_changed():
    batch = batch_of()
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    metrics = [make().update(batch).metrics]
    torch.testing.assert_close(torch.rand(3), expected)
    torch.manual_seed(2)
    metrics.append(make().update(batch).metrics)
    assert metrics[0] == metrics[1]


@pytest.mark.parametrize("kind", KINDS)
def test_acting(kind):
    agent, batch = make(kind), batch_of(kind, rows=6)
    generator = torch.Generator().manual_seed(0)
    observation = {name: array[:, 0] for name, array in batch.items()}
    action, state = agent.act(agent.start(6), observation, generator, explore=True)
    assert action.shape == (6, agent.spaces.actions)
    assert action.dtype == np.float32
    if agent.spaces.discrete:
        assert (action.sum(1) == 1).all() and set(action.flat) == {0.0, 1.0}
    else:
        assert np.abs(action).max() <= 1
    assert all(len(value) == 6 for value in state.values())


def test_a_first_step_wipes_the_memory_of_its_row_only():
    agent, batch = make(), batch_of(rows=2, ends=0)

    def actions(first):
        state, generator = agent.start(2), torch.Generator().manual_seed(0)
        for t in range(3):
            fields = {name: array[:, t] for name, array in batch.items()}
            fields["is_first"] = np.array([t == 0, t == 0 or (first and t == 2)])
            _, state = agent.act(state, fields, generator, explore=True)
        return state["deter"]

    kept, wiped = actions(first=False), actions(first=True)
    torch.testing.assert_close(kept[0], wiped[0])
    assert not torch.allclose(kept[1], wiped[1])


def test_open_loop_sees_the_context_only():
    agent, batch = make(), batch_of(ends=0)
    before = agent.tensors()["generator"].clone()
    video = agent.open_loop(batch, context=3)
    assert video.shape == batch["image"].shape
    assert video.dtype == np.uint8
    changed = {**batch, "image": batch["image"].copy()}
    changed["image"][:, 3:] = 0
    assert np.array_equal(agent.open_loop(changed, context=3), video)
    changed["image"][:, 2] = 0
    assert not np.array_equal(agent.open_loop(changed, context=3), video)
    assert torch.equal(agent.tensors()["generator"], before)


def test_what_is_not_finite_is_named_and_changes_nothing():
    agent, batch = make(), batch_of()
    agent.update(batch)
    before = {name: value.clone() for name, value in agent.state_dict().items()}
    batch["reward"][0, 3] = np.nan
    with pytest.raises(NonFiniteError, match="model/reward"):
        agent.update(batch)
    for name, value in agent.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_returns_that_are_not_finite_leave_no_trace():
    """In the scale of returns they would stay for ever."""
    agent, batch = make(), batch_of()
    agent.update(batch)
    predict = agent.model.reward
    agent.model.reward = lambda features: predict(features) * torch.nan
    with pytest.raises(NonFiniteError, match="actor/return"):
        agent.update(batch)
    agent.model.reward = predict
    assert np.isfinite([*agent.update(batch).metrics.values()]).all()


def test_sizes_are_all_named_in_the_settings():
    names = DreamerV3Config.__annotations__["size"].__args__
    assert set(names) == set(SIZES)
