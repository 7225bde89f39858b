"""Agents learn: better than what can be had without learning, and a task from pixels."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from curious_replay.agents.blocks.prototypes import assign, cross_entropy
from curious_replay.agents.blocks.rssm import State
from curious_replay.agents.configs.dreamer_pro import DreamerProConfig
from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.dreamer_pro import DreamerPro
from curious_replay.agents.dreamer_v3 import DreamerV3
from curious_replay.agents.spaces import Spaces
from curious_replay.envs import make
from curious_replay.replay import ReplayBuffer, Uniform
from curious_replay.run import Choice, preset, train

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


def random_walk(steps, length, seed=0):
    """A buffer of `toy/mirror` under a random policy."""
    env = make("toy/mirror", image_size=32, room=4)
    rng = np.random.default_rng(seed)
    buffer = ReplayBuffer(steps, length, rule=Uniform(), seed=seed)
    observation, _ = env.reset(seed=seed)
    reward, first, terminated, truncated = 0.0, True, False, False
    for _ in range(steps):
        last = terminated or truncated
        action = int(rng.integers(4))
        step = {
            "image": observation["image"],
            "action": np.zeros(4, np.float32) if last else np.eye(4, dtype=np.float32)[action],
            "reward": np.float32(reward),
            "is_first": first,
            "is_last": last,
            "is_terminal": terminated,
        }
        buffer.add({name: np.asarray(value)[None] for name, value in step.items()})
        if last:
            observation, _ = env.reset()
            reward, first, terminated, truncated = 0.0, True, False, False
        else:
            observation, reward, terminated, truncated, _ = env.step(action)
            first = False
    return buffer


def blind_walk(agent, test, context):
    """Mean error of an image, summed over pixels, of walking on blindly and of standing still."""
    cont = ~np.logical_or.accumulate(test["is_first"][:, context:], axis=1)
    ahead, pictures = agent.open_loop(test, context)[:, context:] / 255, test["image"] / 255
    truth, present = pictures[:, context:], pictures[:, context - 1 : context]
    wrongs = (((guess - truth) ** 2).sum((2, 3, 4)) for guess in (ahead, present))
    return [wrong[cont].mean() for wrong in wrongs]


def test_world_model_beats_the_mean_picture_and_standing_still():
    """Two floors, computed from the data: what a model that ignores its input can reach."""
    buffer = random_walk(600, 12)
    config = DreamerV3Config(size="micro", model_lr=2e-3, imagination=1)
    agent = DreamerV3(config, Spaces(4, discrete=True, image=(32, 32)), seed=0)
    for _ in range(500):
        losses = agent.update(buffer.sample(8)).metrics
    test = buffer.sample(32)
    pictures = test["image"] / 255
    # Loss of the best constant prediction: the variance of each pixel, summed.
    of_the_mean = pictures.var((0, 1)).sum()
    assert losses["model/image"] < 0.5 * of_the_mean
    assert losses["model/reward"] < 0.5  # nats; it begins at log 255 = 5.54

    # After 4 steps of context the model walks on blindly: it must know what an action does.
    wrong, of_standing_still = blind_walk(agent, test, 4)
    assert wrong < 0.8 * of_standing_still


@torch.no_grad()
def misses(agent, batch, context):
    """Nats by which DreamerPro misses the prototypes of images after `context` steps, [T, B] each.

    Walking blindly by the actions, taking the last image for all that follow, and the least that
    a prediction can cost that is the same for all images: the entropy of their mean target.
    """
    replayed, model = agent.load(batch), agent.model
    taught = model.prototypes(agent.teacher.project(agent.teacher.embed(replayed.image, None)))
    targets = assign(taught.flatten(0, 1), agent.config.sinkhorn_eps).view_as(taught)
    states = model.believe(replayed, None).states
    state = State(states.deter[context - 1], states.stoch[context - 1])
    walked = []
    for action in replayed.previous_action[context:]:
        state = model.rssm.imagine(state, action, None)
        walked.append(model.prototypes(model.project_felt(state.feature)))
    present = model.embed(replayed.image[context - 1], None)
    still = model.prototypes(model.project_seen(present))
    mean = targets.mean((0, 1))
    return (
        cross_entropy(targets[context:], torch.stack(walked), agent.config.temperature),
        cross_entropy(targets[context:], still, agent.config.temperature),
        -(mean * mean.log()).sum().item(),
    )


def test_prototypes_of_the_future_are_known_better_than_without_looking_or_moving():
    buffer = random_walk(600, 12)
    config = DreamerProConfig(
        size="nano-D", model_lr=1e-3, imagination=1, prototypes=64, frozen_updates=100, shift=1.0
    )
    agent = DreamerPro(config, Spaces(4, discrete=True, image=(32, 32)), seed=0)
    for _ in range(450):
        losses = agent.update(buffer.sample(8)).metrics
    test, context = buffer.sample(32), 4
    blindly, still, constant = misses(agent, test, context)
    assert 0.95 * np.log(64) < constant <= np.log(64) + 1e-3  # targets are even
    assert losses["model/swav"] < 0.75 * constant
    assert losses["model/temporal"] < 0.75 * constant
    cont = ~np.logical_or.accumulate(test["is_first"][:, context:], axis=1).T
    wrong, of_standing_still = (loss.numpy()[cont].mean() for loss in (blindly, still))
    assert wrong < 0.75 * min(constant, of_standing_still)
    # Reward: below that of the best constant prediction, which pays half the variance.
    assert losses["model/reward"] - 0.9189385 < 0.5 * 0.5 * np.tanh(test["reward"]).var()


@pytest.mark.parametrize(
    ("agent", "steps"), [("dreamerv3", 1200), ("dreamerpro", 1500), ("iris", 1500)]
)
def test_a_pixel_task_is_solved(agent, steps, tmp_path):
    choice = Choice(env="toy/mirror", agent=agent, replay="uniform", scale="mini")
    config = preset(choice, seed=0)
    config = replace(
        config,
        train=replace(config.train, steps=steps, threads=1),
        eval=replace(config.eval, every=0),
        record=replace(config.record, video_every=0),
    )
    train(config, tmp_path / "run", console=Console(quiet=True))
    lines = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    episodes = [json.loads(line) for line in lines]
    first, last = episodes[:15], episodes[-30:]
    assert np.mean([episode["return"] for episode in first]) < 0.7
    assert np.mean([episode["return"] for episode in last]) > 0.95
    assert np.mean([episode["length"] for episode in last]) < 8


def test_continuous_actions_are_learned_through_the_dynamics(tmp_path):
    settings = preset(Choice(env="steering:Steering", replay="uniform", scale="mini"))
    settings = replace(
        settings,
        env=replace(settings.env, processes=False),
        agent=replace(
            settings.agent, size="micro", model_lr=2e-3, actor_lr=1e-3, critic_lr=1e-3,
            imagination=6, discount_horizon=20.0,
        ),
        train=replace(
            settings.train, steps=1000, prefill=200, ratio=128.0, batch_size=16, batch_length=8,
            threads=1,
        ),
        eval=replace(settings.eval, every=0),
    )  # fmt: skip
    train(settings, tmp_path / "run", console=Console(quiet=True))
    lines = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    returns = [json.loads(line)["return"] for line in lines]
    assert np.mean(returns[:20]) < 6  # by chance
    assert np.mean(returns[-20:]) > 8
