"""IRIS: stages and streams, what learns from what, acting, and its errors."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.agents.batches import make_batch
from helpers.agents.small_iris import (
    DEBUG,
    PARTS,
    batch_for,
    changed_parts,
    make,
)
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.interface import NonFiniteError, Stream
from curious_replay.agents.iris import Iris
from curious_replay.agents.iris_model import Dream, DreamStep
from curious_replay.agents.spaces import Spaces

# What learns from what, and when.


def test_each_part_learns_from_its_own_loss_only():
    agent = make()
    batch = batch_for(agent)
    pictures = agent._pictures(batch["pictures/image"]).flatten(0, 1)
    assert changed_parts(agent, lambda: agent.learn_to_see(pictures)) == {"tokenizer"}
    learned = lambda: agent.train_world_model(batch, agent._load(batch["reward"]))  # noqa: E731
    assert changed_parts(agent, learned) == {"model"}
    assert changed_parts(agent, lambda: agent.train_actor_critic(batch)) == {"actor_critic"}


@pytest.mark.parametrize(
    ("stream", "metric"),
    [
        ("pictures/image", "tokenizer/loss"),
        ("image", "model/loss"),
        ("starts/image", "actor_critic/value"),
    ],
)
def test_each_stream_reaches_its_part(stream, metric):
    batch = batch_for(make())
    before = make().update(batch).metrics
    batch[stream] = 255 - batch[stream]
    after = make().update(batch).metrics
    others = {name.split("/")[0] for name in before if before[name] != after[name]}
    assert before[metric] != after[metric]
    if stream == "image":
        assert others == {"model"}
    if stream == "starts/image":
        assert others == {"actor_critic"}


def test_parts_begin_one_after_the_other():
    agent = make(model_after=2, actor_after=3)
    batch = batch_for(agent)
    for expected in (PARTS[:1], PARTS[:1], PARTS[:2], PARTS, PARTS):
        said = []
        changed = changed_parts(agent, lambda said=said: said.append(agent.update(batch)))
        assert changed == set(expected)
        assert {name.split("/")[0] for name in said[0].metrics} == set(expected)
        assert set(said[0].signals) == (
            {"model", "likelihood", "kl", "td"} if "model" in expected else set()
        )


def test_the_tokenizer_settles_when_the_world_model_begins():
    moved = []
    agent = make(settled=0.0, model_after=2, actor_after=9)
    for _ in range(4):
        moved.append("tokenizer" in changed_parts(agent, lambda: agent.update(batch_for(agent))))
    assert moved == [True, True, False, False]
    # The first step of Adam is as long as its learning rate.
    steps = []
    for settled in (1.0, 0.25):
        agent = make(settled=settled, model_after=0, tokenizer_lr=1e-3)
        before = agent.tokenizer.codebook.detach().clone()
        agent.update(batch_for(agent))
        steps.append((agent.tokenizer.codebook - before).abs().max().item())
    assert steps == pytest.approx([1e-3, 0.25e-3], rel=0.01)


def test_streams_are_as_long_as_the_settings_say():
    streams = make(pictures=7, starts=5, burn_in=4).streams
    assert streams == {"pictures": Stream(7, 1), "starts": Stream(5, 5)}


def test_signals_are_what_a_step_cost():
    agent = make(dropout=0.0, model_lr=1e-30)
    batch = batch_for(agent)
    is_first = torch.from_numpy(batch["is_first"])
    feedback = agent.update(batch)
    signals = {name: torch.from_numpy(signal) for name, signal in feedback.signals.items()}
    costs = agent.model.costs(
        agent._tokens(batch["image"]),
        torch.from_numpy(batch["action"]).argmax(-1),
        torch.from_numpy(np.sign(batch["reward"])).long() + 1,
        torch.from_numpy(batch["is_terminal"]).long(),
        is_first,
    )
    torch.testing.assert_close(signals["kl"], costs.tokens)
    torch.testing.assert_close(signals["likelihood"], costs.reward + costs.end)
    torch.testing.assert_close(signals["model"], signals["kl"] + signals["likelihood"])
    assert (signals["likelihood"][is_first] == 0).all()
    assert (signals["likelihood"][~is_first] > 0).all()


def test_td_follows_the_critic_through_the_window():
    agent = make(actor_after=10, discount=0.9)
    batch = batch_for(agent, ends=0.3)
    found = agent.update(batch).signals["td"]
    pictures = agent._draw(agent._tokens(batch["image"]))
    values = np.zeros((3, 8))
    with torch.no_grad():
        for row in range(3):
            for t in range(8):
                if batch["is_first"][row, t]:
                    memory = agent.actor_critic.start(1)
                opinion = agent.actor_critic(pictures[t, row : row + 1], memory)
                memory, values[row, t] = opinion.memory, opinion.value
    cont = 0.9 * (1 - batch["is_terminal"][:, 1:])
    expected = np.sign(batch["reward"][:, 1:]) + cont * values[:, 1:] - values[:, :-1]
    led = ~batch["is_first"][:, 1:]
    np.testing.assert_allclose(found[:, 1:][led], expected[led], rtol=1e-4, atol=1e-5)
    assert np.isnan(found[:, 0]).all()
    assert (found[:, 1:][~led] == 0).all()


def test_what_nobody_reads_is_left_out_and_decides_nothing():
    agent, other = make(), make()
    batch = batch_for(agent)
    for _ in range(2):
        found, without = agent.update(batch), other.update(batch, {"td", "kl"})
        assert found.metrics == without.metrics
        assert set(without.signals) == {"model", "likelihood", "kl"}


def test_a_start_at_an_end_teaches_nothing():
    agent = make(starts=2)
    batch = batch_for(agent, ends=0)
    batch["starts/is_terminal"][:] = True
    batch["starts/is_terminal"][0, -1] = False
    metrics = make(starts=2).update(batch).metrics
    batch["starts/image"][1] = 255 - batch["starts/image"][1]
    same = make(starts=2).update(batch).metrics
    for name in ("actor_critic/actor", "actor_critic/critic"):
        assert same[name] == pytest.approx(metrics[name], rel=1e-5)
    batch["starts/is_terminal"][:] = True
    assert changed_parts(agent, lambda: agent.train_actor_critic(batch)) == set()


def test_the_memory_is_burned_in_without_a_gradient_and_wiped_where_an_episode_begins():
    agent = make(actor_critic_lr=1e-30, entropy=0.0)
    batch = batch_for(agent, ends=0)

    def value(**fields):
        generator = agent.generator.get_state()
        metrics = agent.train_actor_critic({**batch, **fields})
        agent.generator.set_state(generator)
        return metrics["actor_critic/value"].item()

    changed = batch["starts/image"].copy()
    changed[:, 0] = 255 - changed[:, 0]
    assert value(**{"starts/image": changed}) != value()
    begins = batch["starts/is_first"].copy()
    begins[:, -1] = True  # what was seen before is of another episode
    wiped = value(**{"starts/is_first": begins})
    assert value(**{"starts/is_first": begins, "starts/image": changed}) == wiped != value()


def test_actor_and_critic_learn_what_pays():
    """In dreams where action 2 is rewarded and nothing else is, it becomes the likeliest."""
    agent = make(starts=16, imagination=4, actor_critic_lr=1e-2, discount=0.5)
    batch = batch_for(agent)

    def step(dream, action, noise):
        reward = (action == 2).float()
        return DreamStep(dream.tokens, reward, torch.zeros_like(reward))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dream, "step", step)
        for _ in range(60):
            metrics = agent.train_actor_critic(batch)
    assert metrics["actor_critic/reward"] > 0.9
    assert metrics["actor_critic/value"] > 1.2  # of 2 at most


def test_losses_of_actor_and_critic():
    """Against returns by the n-step definition: the second start's dream ends after two steps."""
    agent = make(starts=2, imagination=5, discount=0.9, return_lambda=0.8, entropy=0.1)
    batch = batch_for(agent, ends=0)
    batch["starts/is_terminal"][:] = False
    rewards = torch.tensor([[1.0, -1.0, 0.0, 1.0], [0.0, 1.0, 1.0, -1.0]]).T
    ends = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]).T
    opinions, caught, played = [], {}, iter(zip(rewards, ends, strict=True))
    forward = agent.actor_critic.forward
    chosen = []

    def step(dream, action, noise):
        chosen.append(action)
        return DreamStep(dream.tokens, *next(played))

    def look(picture, memory):
        opinions.append(forward(picture, memory))
        return opinions[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dream, "step", step)
        patch.setattr(agent.actor_critic, "forward", look)
        patch.setattr(agent, "_fit", lambda part, losses: caught.update(losses) or {})
        agent.train_actor_critic(batch)
    dreamt = opinions[-5:]  # those before are of what was seen
    values = torch.stack([opinion.value for opinion in dreamt]).detach()
    returns = torch.zeros(4, 2)
    for start in range(4):
        for n in range(1, 5 - start):
            total, factor = torch.zeros(2), torch.ones(2)
            for k in range(start, start + n):
                total = total + factor * rewards[k]
                factor = factor * 0.9 * (1 - ends[k])
            total = total + factor * values[start + n]
            returns[start] += 0.8 ** (n - 1) * (0.2 if n < 4 - start else 1.0) * total
    logs = torch.stack([F.log_softmax(opinion.logits, -1) for opinion in dreamt[:-1]])
    taken = logs.gather(-1, torch.stack(chosen).unsqueeze(-1)).squeeze(-1)
    entropy = -(logs.exp() * logs).sum(-1)
    actor = -(taken * (returns - values[:-1]) + 0.1 * entropy).mean()
    critic = (values[:-1] - returns).square().mean()
    assert caught["actor"].item() == pytest.approx(actor.item(), rel=1e-5)
    assert caught["critic"].item() == pytest.approx(critic.item(), rel=1e-5)


# Acting.


def act(agent, rows, explore, logits):
    with torch.no_grad():
        agent.actor_critic.actor.weight.zero_()
        agent.actor_critic.actor.bias.copy_(torch.tensor(logits))
    observation = {
        "image": np.zeros((rows, 32, 32, 3), np.uint8),
        "is_first": np.ones(rows, bool),
    }
    generator = torch.Generator().manual_seed(0)
    actions, _ = agent.act(agent.start(rows), observation, generator, explore)
    return actions.mean(0)


def test_some_actions_are_random_while_collecting():
    share = act(make(exploration=0.4), 4000, True, [20.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(share, [0.7, 0.1, 0.1, 0.1], atol=0.03)


def test_the_policy_is_sharper_where_it_is_evaluated():
    share = act(make(exploration=0.4, temperature=0.5), 4000, False, [1.0, 0.0, 0.0, 0.0])
    expected = F.softmax(torch.tensor([2.0, 0.0, 0.0, 0.0]), -1)
    np.testing.assert_allclose(share, expected, atol=0.03)


def test_the_actor_sees_what_the_tokenizer_draws():
    agent = make()
    seen = []
    agent.actor_critic.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    batch = make_batch(2, 1)
    observation = {name: array[:, 0] for name, array in batch.items()}
    agent.act(agent.start(2), observation, torch.Generator(), explore=True)
    assert torch.equal(seen[0], agent._draw(agent._tokens(batch["image"]))[0])


def test_a_video_may_be_longer_than_the_context():
    video = make(context=3).open_loop(make_batch(2, 12, ends=0), context=4)
    assert video.shape == (2, 12, 32, 32, 3)


# Errors.


@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        (Spaces(6, discrete=False), "discrete actions only, and here they are 6 continuous"),
        (Spaces(4, discrete=True, image=None, vector=3), "sees an image and nothing beside it"),
        (Spaces(4, discrete=True, vector=3), "here 3 numbers are observed too"),
    ],
)
def test_worlds_that_it_cannot_live_in_are_refused(spaces, message):
    with pytest.raises(ValueError, match=message):
        Iris(DEBUG, spaces, 0)


def test_windows_longer_than_the_context_are_refused():
    agent = make(context=4)
    with pytest.raises(ValueError, match=r"windows of 8 steps are longer than .* 4"):
        agent.update(batch_for(agent))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_whose_weights_are_not_finite_is_named(part):
    agent = make()
    batch = batch_for(agent)
    module = agent.actor_critic.critic if part == "actor_critic" else getattr(agent, part)
    with torch.no_grad():
        next(module.parameters()).fill_(torch.nan)
    with pytest.raises(NonFiniteError, match=f"^{part}/"):
        agent.update(batch)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_after": 5, "actor_after": 4}, r"actor_after must be at least .* \(5\)"),
        ({"vgg": "a"}, "vgg needs lpips"),
        ({"lpips": "a"}, "lpips needs vgg"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(DEBUG, **changes)
