"""DreamerPro: views, prototypes, teacher, losses, estimators, masks."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from helpers.agents.actor_critic_steps import CONT, by_definition, catch, check_gradients, start_of
from helpers.agents.batches import batch_of, check_td_where_no_step_led, count, make_batch

from curious_replay.agents.blocks.prototypes import assign
from curious_replay.agents.blocks.shifts import translate
from curious_replay.agents.configs.dreamer_pro import SIZES, DreamerProConfig
from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
from curious_replay.agents.dreamer_pro import DreamerPro, ProModel
from curious_replay.agents.dreamer_v2 import V2Model
from curious_replay.agents.feedback import FiniteCheck
from curious_replay.agents.spaces import Spaces

PROTOTYPES = {"prototypes": 7, "prototype_size": 4, "frozen_updates": 0, "imagination": 4}
DISCRETE = DreamerProConfig(size="debug-D", **PROTOTYPES)
CONTINUOUS = DreamerProConfig(
    size="debug-G", discount=0.99, discount_head=False, reward_transform="none", **PROTOTYPES
)
SPACES = {
    "discrete": Spaces(4, discrete=True, image=(32, 32)),
    "continuous": Spaces(2, discrete=False, image=(32, 32)),
}


def make(kind="discrete", seed=0, **changes):
    config = DISCRETE if kind == "discrete" else CONTINUOUS
    return DreamerPro(dataclasses.replace(config, **changes), SPACES[kind], seed)


def test_parameter_counts():
    """Those of DreamerV2 of the same widths, without decoder, with prototypes and projections."""
    spaces = Spaces(6, discrete=False)
    with torch.device("meta"):  # shapes without memory
        other = V2Model(DreamerV2Config(size="G", discount_head=False), spaces)
        model = ProModel(DreamerProConfig(size="G", discount_head=False), spaces)
    assert count(other) == 11_151_940
    added = (1536 + 1) * 32 + (232 + 1) * 32 + 2500 * 32
    assert count(model) == 11_151_940 - count(other.decoder) + added


def test_sizes_are_all_named_in_the_settings():
    assert set(DreamerProConfig.__annotations__["size"].__args__) == set(SIZES)


@pytest.mark.parametrize("size", SIZES)
def test_every_size_can_be_made(size):
    with torch.device("meta"):
        model = ProModel(DreamerProConfig(size=size), SPACES["continuous"])
    assert model.latent.size == SIZES[size].latents * max(1, SIZES[size].classes)
    assert model.decoder is None and model.vector_decoder is None


def test_without_images_there_is_nothing_to_learn_from():
    with pytest.raises(ValueError, match="choose dreamerv2 or dreamerv3"):
        DreamerPro(DISCRETE, Spaces(4, discrete=True, image=None, vector=5), 0)


def test_two_views_are_the_batch_twice_moved_apart():
    agent, spaces = make(shift=2.0), SPACES["discrete"]
    batch = batch_of(rows=30)
    replayed = agent.load(batch)
    generator = torch.Generator()
    generator.set_state(agent.generator.get_state())
    views = agent.two_views(replayed)
    pixels = 4 * torch.rand(60, 2, generator=generator) - 2
    torch.testing.assert_close(
        views.image, translate(torch.cat([replayed.image] * 2, 1), pixels), rtol=0, atol=1e-6
    )
    assert views.image.shape == (8, 60, *spaces.image, 3)
    assert pixels.min() < -1.5 and pixels.max() > 1.5 and pixels.abs().max() <= 2
    for name in ("previous_action", "reward", "is_first", "cont"):
        part, twice = getattr(replayed, name), getattr(views, name)
        assert torch.equal(twice[:, :30], part) and torch.equal(twice[:, 30:], part), name
    still = make(shift=0.0).two_views(replayed)
    torch.testing.assert_close(still.image[:, 30:], replayed.image, rtol=0, atol=1e-6)


def test_nothing_is_moved_where_it_acts():
    agent, batch = make(), batch_of(rows=2)
    agent.two_views = lambda replayed: pytest.fail("moved")
    observation = {name: array[:, 0] for name, array in batch.items()}
    agent.act(agent.start(2), observation, torch.Generator().manual_seed(0), explore=True)


def test_prototype_losses_by_definition():
    """Each view has targets of its own; the encoder predicts the other's, the state its own."""
    agent = make(sinkhorn_eps=0.2, temperature=0.3)
    torch.manual_seed(0)
    steps, rows = 5, 3
    seen, felt, taught = torch.randn(3, steps, 2 * rows, 4)
    swav, temporal = agent.prototype_losses(seen, felt, taught)
    assert swav.shape == temporal.shape == (steps - 1, 2 * rows)

    matrix = agent.model.prototypes.matrix.detach()

    def cosines(points):
        return (points / points.norm(dim=-1, keepdim=True)) @ matrix.T

    targets = []
    for view in (slice(0, rows), slice(rows, None)):
        scores = cosines(taught[1:, view]).reshape(-1, 7)  # without the first step
        targets.append(assign(scores, 0.2).view(steps - 1, rows, 7))
    for t in range(steps - 1):
        for row in range(2 * rows):
            view, place = divmod(row, rows)
            predicted = torch.log_softmax(cosines(seen[t + 1, row]) / 0.3, -1)
            expected = -(targets[1 - view][t, place] * predicted).sum()
            torch.testing.assert_close(swav[t, row], expected)
            predicted = torch.log_softmax(cosines(felt[t + 1, row]) / 0.3, -1)
            expected = -(targets[view][t, place] * predicted).sum()
            torch.testing.assert_close(temporal[t, row], expected)


@pytest.mark.parametrize("kind", SPACES)
def test_signals_add_up(kind):
    agent = make(kind, free_nats=100.0, kl_scale=2.0)
    feedback = agent.update(batch_of(kind))
    model, likelihood, kl = (feedback.signals[name] for name in ("model", "likelihood", "kl"))
    assert np.isnan(model[:, 0]).all() and np.isnan(likelihood[:, 0]).all()
    np.testing.assert_allclose(model[:, 1:], (likelihood + 2 * kl)[:, 1:], rtol=1e-6)
    # The loss has the KL of the batch, which here is held at its free nats.
    names = ["swav", "temporal", "norm", "reward"] + ["discount"] * (kind == "discrete")
    total = sum(feedback.metrics[f"model/{name}"] for name in names)
    assert feedback.metrics["model/loss"] == pytest.approx(total + 200, rel=1e-6)


def terms_of(agent, batch):
    """Terms and signals of one update of the world model, which changes nothing."""
    caught = {}

    def fit(belief, terms, signals, loss):
        caught.update(terms=terms, signals=signals, loss=loss, belief=belief)

    agent.fit = fit
    agent.model.prototypes.settle = lambda fine: None
    agent.teacher.follow = lambda model, fine: None
    agent.train_world_model(agent.two_views(agent.load(batch)))
    return caught


def test_a_step_costs_what_all_terms_say_of_it():
    agent, batch = make(norm_scale=3.0, reward_scale=20.0), batch_of()
    caught = terms_of(agent, batch)
    terms = caught["terms"]
    everywhere = terms["norm"] + terms["reward"] + terms["discount"]
    assert everywhere.shape == (8, 6)
    expected = terms["swav"] + terms["temporal"] + everywhere[1:] + terms["kl"][1:]
    torch.testing.assert_close(caught["signals"]["model"][1:], expected)
    # And replay is told the mean of the two views of a step.
    same = make(norm_scale=3.0, reward_scale=20.0).update(batch)
    mean = (expected[:, :3] + expected[:, 3:]) / 2
    np.testing.assert_allclose(same.signals["model"][:, 1:], mean.T.detach(), rtol=1e-5)


def test_scales_weigh_their_terms():
    batch = batch_of()
    plain, heavy = (
        terms_of(make(norm_scale=n, reward_scale=r), batch)["terms"] for n, r in ((1, 1), (3, 20))
    )
    torch.testing.assert_close(heavy["norm"], 3 * plain["norm"])
    torch.testing.assert_close(heavy["reward"], 20 * plain["reward"])
    torch.testing.assert_close(heavy["swav"], plain["swav"])


def test_norm_is_how_far_lengths_are_from_one():
    agent = make()
    with torch.no_grad():
        for project, length in ((agent.model.project_seen, 3.0), (agent.model.project_felt, 0.5)):
            project.weight.zero_()
            project.bias.copy_(torch.tensor([length, 0, 0, 0]))
    norm = terms_of(agent, batch_of())["terms"]["norm"]
    torch.testing.assert_close(norm, torch.full((8, 6), 2.0**2 + 0.5**2))


SEEING, STATE = {"encoder", "project_seen"}, {"encoder", "rssm"}


@pytest.mark.parametrize("frozen", [0, 5])
@pytest.mark.parametrize(
    ("term", "moved"),
    [
        ("swav", SEEING | {"prototypes"}),
        ("temporal", STATE | {"project_felt", "prototypes"}),
        ("norm", SEEING | STATE | {"project_felt"}),
        ("reward", STATE | {"reward_head"}),
        ("discount", STATE | {"discount_head"}),
    ],
)
def test_who_learns_from_which_loss(term, moved, frozen):
    agent = make(frozen_updates=frozen)
    loss = terms_of(agent, batch_of())["terms"][term].mean()
    parameters = dict(agent.model.named_parameters())
    gradients = torch.autograd.grad(loss, [*parameters.values()], allow_unused=True)
    found = {
        name.split(".")[0]
        for name, gradient in zip(parameters, gradients, strict=True)
        if gradient is not None and gradient.abs().max() > 0
    }
    assert found == (moved - {"prototypes"} if frozen else moved)


def test_prototypes_are_frozen_at_first_and_of_unit_length_always():
    agent, batch = make(frozen_updates=2, model_lr=1e-2), batch_of()
    moved = {"prototypes.matrix": [], "project_seen.weight": [], "project_felt.weight": []}
    for _ in range(4):
        before = {name: p.detach().clone() for name, p in agent.model.named_parameters()}
        agent.update(batch)
        after = dict(agent.model.named_parameters())
        for name, moves in moved.items():
            moves.append(bool((after[name] - before[name]).abs().max() > 1e-4))
        lengths = agent.model.prototypes.matrix.norm(dim=1)
        torch.testing.assert_close(lengths, torch.ones(7))
    assert moved["prototypes.matrix"] == [False, False, True, True]
    assert moved["project_seen.weight"] == moved["project_felt.weight"] == [True] * 4


def test_teacher_is_the_moving_average_of_the_encoder():
    spaces = Spaces(4, discrete=True, image=(32, 32), vector=5)
    agent = DreamerPro(dataclasses.replace(DISCRETE, model_lr=1e-2), spaces, 0)

    def student():
        return {
            f"{name}.{key}": value.detach().clone()
            for name in ("encoder", "vector_encoder", "project_seen")
            for key, value in getattr(agent.model, name).named_parameters()
        }

    def teacher():
        return {
            name.removeprefix("copies.").replace(".network.", "."): value
            for name, value in agent.teacher.named_parameters()
        }

    expected = student()
    assert expected.keys() == teacher().keys()
    for seed in range(4):
        agent.update(make_batch(vector=5, seed=seed))
        now = student()
        expected = {name: 0.95 * old + 0.05 * now[name] for name, old in expected.items()}
        for name, value in teacher().items():
            torch.testing.assert_close(value, expected[name], msg=name)
    assert not any(p.requires_grad for p in agent.teacher.parameters())
    assert not torch.allclose(now["project_seen.weight"], expected["project_seen.weight"])


def test_targets_are_the_teachers():
    """What the encoder itself makes of an image is no target."""
    agent, batch = make(), batch_of()
    before = terms_of(agent, batch)["terms"]
    other = make()
    other.teacher.copies["project_seen"].network.weight.data.normal_()
    assert not torch.allclose(terms_of(other, batch)["terms"]["swav"], before["swav"])
    other = make()
    other.model.project_seen.weight.data.normal_()  # the teacher has the old one
    other.model.prototypes = agent.model.prototypes
    torch.testing.assert_close(terms_of(other, batch)["terms"]["temporal"], before["temporal"])


@pytest.mark.parametrize("kind", SPACES)
def test_imagination_does_not_begin_at_what_may_be_an_end(kind):
    agent = make(kind)
    views = agent.two_views(agent.load(batch_of(kind)))
    start = start_of(agent)
    start = type(start)(*(part.repeat(10, 1)[:48] for part in start))  # 8 steps of 6 rows
    begun, cont = agent.begin(views, start)
    kept = 42 if kind == "discrete" else 48
    assert torch.equal(cont, views.cont.flatten()[:kept])
    assert not cont.all()  # an episode ends within a window
    assert all(torch.equal(b, s[:kept]) for b, s in zip(begun, start, strict=True))


def learn(agent, seed=0):
    generator = torch.Generator().manual_seed(seed)
    start = start_of(agent, seed)
    finite = FiniteCheck(agent.device)
    return agent.behaviour.learn(agent.model, start, CONT, agent._reward, generator, finite)


def test_discrete_actor_follows_the_score_function():
    """-log pi(a) (R of the state - its value by the critic that learns), all imagined steps."""
    agent = make(entropy=0.1)
    caught = catch(agent)
    learn(agent)
    imagined = caught["imagined"]
    returns, weights, _ = by_definition(agent, imagined, first_by_head=True)
    loss = torch.zeros(())
    for t in range(4):
        policy = agent.behaviour.actor.policy(agent.behaviour.actor(imagined.features[t]))
        advantage = returns[t] - agent.behaviour.value(imagined.features[t]).detach()
        gain = policy.log_probability(imagined.actions[t]) * advantage + 0.1 * policy.entropy
        loss = loss - (weights[t] * gain).sum() / 20
    torch.testing.assert_close(caught["actor"], loss)
    check_gradients(agent.behaviour.actor, caught["actor"], loss)


@pytest.mark.parametrize("kind", SPACES)
def test_critic_learns_the_weighted_returns(kind):
    agent = make(kind)
    caught = catch(agent)
    learn(agent)
    returns, weights, _ = by_definition(agent, caught["imagined"], first_by_head=True)
    values = agent.behaviour.value(caught["imagined"].features[:-1].detach())
    expected = (weights * (0.5 * (values - returns) ** 2 + 0.9189385)).mean()
    torch.testing.assert_close(caught["critic"], expected)


def test_continuous_actor_follows_the_gradient_of_its_return():
    """Against finite differences of the objective, with what the actor sees held fixed."""
    agent = make("continuous", entropy=0.1).double()
    caught = catch(agent)
    inputs, forward = [], agent.behaviour.actor.forward
    agent.behaviour.actor.forward = lambda feature: forward(inputs.append(feature) or feature)
    learn(agent)
    weight = agent.behaviour.actor.network[-1].weight
    (gradient,) = torch.autograd.grad(caught["actor"], weight)

    def objective():
        seen = iter(inputs)
        agent.behaviour.actor.forward = lambda feature: forward(next(seen))
        learn(agent)
        with torch.no_grad():
            returns, weights, _ = by_definition(agent, caught["imagined"], first_by_head=True)
            entropy = agent.behaviour.actor.policy(caught["imagined"].outputs).entropy
        return -(weights * (returns + 0.1 * entropy)).mean().item()

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


@pytest.mark.parametrize("td", ["predicted", "imagined", "replayed"])
@pytest.mark.parametrize("kind", SPACES)
def test_td_is_the_mean_over_both_views(kind, td):
    agent, batch = make(kind, td=td, critic_lr=1e-2), batch_of(kind)
    starts, train = [], agent.train_actor_critic
    agent.train_actor_critic = lambda views, start, **more: (
        starts.append(start) or train(views, start, **more)
    )
    outputs, learn_ = [], agent.behaviour.learn
    agent.behaviour.learn = lambda *args: outputs.append(learn_(*args)) or outputs[-1]
    found = agent.update(batch).signals["td"]
    check_td_where_no_step_led(found, batch["is_first"])
    features = starts[0].feature.view(8, 6, -1)
    with torch.no_grad():
        values = agent.behaviour.value(features)  # after its update
    discounts = agent.config.discount * torch.ones(7, 6)
    if td == "predicted":
        with torch.no_grad():
            rewards = agent.model.reward(features)[:-1]
    elif td == "imagined":
        rewards = outputs[0].rewards[1].view(-1, 6)[:7]
    else:
        rewards = torch.cat([agent.load(batch).reward[1:]] * 2, 1)
    if td != "predicted":
        discounts = discounts * torch.cat([agent.load(batch).cont[1:]] * 2, 1)
    errors = rewards + discounts * values[1:] - values[:-1]
    expected = ((errors[:, :3] + errors[:, 3:]) / 2).T.numpy()
    defined = ~batch["is_first"][:, 1:]
    np.testing.assert_allclose(found[:, 1:][defined], expected[defined], rtol=1e-4, atol=1e-6)


def beliefs(agent, batch):
    """What is not compared with other windows: points of states, losses of heads, and the KL."""
    replayed = agent.load(batch)
    noise = agent.model.latent.noise(8, len(batch["reward"]), generator=torch.Generator())
    belief = agent.model.believe(replayed, noise)
    heads = agent.model.likelihood_losses(replayed, belief)
    felt = agent.model.project_felt(belief.states.feature)
    return torch.stack([*heads.values(), agent.model.kl_loss(belief)[0], *felt.unbind(-1)])


@pytest.mark.parametrize("kind", SPACES)
def test_an_episode_does_not_depend_on_what_stands_before_it(kind):
    agent, batch = make(kind), batch_of(kind, rows=1, ends=0)
    batch["is_first"][0, 4] = True
    before = beliefs(agent, batch)
    for name in ("image", "action", "reward"):
        batch[name][0, :4] = batch[name][0, 4:]
    after = beliefs(agent, batch)
    torch.testing.assert_close(after[:, 4:], before[:, 4:])
    assert not torch.allclose(after[:, :4], before[:, :4])


@pytest.mark.parametrize("kind", SPACES)
def test_the_action_before_a_step_explains_it(kind):
    agent, batch = make(kind), batch_of(kind, rows=1, ends=0)
    before = beliefs(agent, batch)
    batch["action"][0, 3] = np.roll(batch["action"][0, 3], 1)
    same = torch.isclose(before, beliefs(agent, batch), rtol=0, atol=0).all(0)[:, 0]
    assert same.tolist() == [True] * 4 + [False] * 4


def test_rows_in_another_order_have_the_same_losses():
    torch.manual_seed(0)
    agent = make()
    points = torch.randn(3, 5, 6, 4)
    order = [2, 0, 1, 5, 3, 4]  # within each of the views
    for loss, moved in zip(
        agent.prototype_losses(*points), agent.prototype_losses(*points[:, :, order]), strict=True
    ):
        torch.testing.assert_close(moved, loss[:, order])


def test_losses_fall_below_those_of_knowing_nothing():
    """Targets are even over prototypes: who cannot tell images apart pays the log of their number.

    Eight flat images; the encoder is to tell them apart, and the state must too.
    """
    agent = make("continuous", model_lr=3e-3, prototypes=8)
    batch = batch_of("continuous", rows=4, ends=0)
    for t in range(8):
        batch["image"][:, t] = np.array([(t & 1), (t >> 1) & 1, t >> 2]) * 255
    for _ in range(100):
        last = agent.update(batch).metrics
    assert last["model/swav"] < 0.6 * math.log(8)
    assert last["model/temporal"] < 0.8 * math.log(8)


def test_half_precision_keeps_prototypes_exact():
    """Scores are divided by a small number: rounding them to 8 bits would drown the targets."""
    agent, caught = make(), []
    agent.compute_in("bfloat16")
    agent.prototype_losses = lambda *points: (
        caught.extend(points) or DreamerPro.prototype_losses(agent, *points)
    )
    assert np.isfinite(agent.update(batch_of()).signals["model"][:, 1:]).all()
    for points in caught:
        assert points.dtype == torch.float32
        assert not torch.equal(points, points.bfloat16().float())  # not rounded on the way
