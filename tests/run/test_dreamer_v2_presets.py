"""Presets of DreamerV2 and Plan2Explore, key by key, and short runs from the command line."""

import json
from dataclasses import replace

import pytest
from helpers import fake_agent  # noqa: F401  # must not change what the others are
from helpers.runs import Killed, kill_at_update, lines, run

from curious_replay import cli
from curious_replay.agents.configs.dreamer_v2 import SIZES, DreamerV2Config
from curious_replay.agents.configs.plan2explore import EnsembleConfig
from curious_replay.commands.train import parse
from curious_replay.envs import names
from curious_replay.replay import (
    Adversarial,
    Balanced,
    Count,
    Curious,
    Mixture,
    TemporalDifference,
    Uniform,
)
from curious_replay.run import Choice, Config, preset
from curious_replay.run.settings.config import SCALES, differences
from curious_replay.run.settings.replay_config import REPLAYS

OURS = ("dreamerv2", "plan2explore", "plan2explore-v3")

# What the paper ran, and the released configuration where the paper says "defaults".
BOTH = {
    "train.batch_length": 50,
    "env.num_envs": 1,
    "env.image_size": 64,
    "replay.capacity": 2_000_000,
    "replay.window": "first",
    "replay.cross_episodes": False,
    "replay.repeats": True,
    "replay.clear_at_change": 0,
    "replay.c": 1e4,
    "replay.beta": 0.7,
    "replay.eps": 0.01,
    "replay.p_max": 1e5,
    "replay.signal": "likelihood",
    "replay.dialect": "dv2",
    "eval.every": 100_000,
    "eval.episodes": 1,
    "size.depth": 48,
    "size.layers": 4,
    "size.units": 400,
    "size.latents": 32,
    "agent.kl_scale": 1.0,
    "agent.kl_balance": 0.8,
    "agent.eps": 1e-5,
    "agent.adam": "tensorflow",
    "agent.clip": 100,
    "agent.decay": 1e-6,
    "agent.imagination": 15,
    "agent.starts": 1.0,
    "agent.return_lambda": 0.95,
    "agent.target_every": 100,
    "agent.td": "predicted",
}
CRAFTER = {
    **BOTH,
    "train.steps": 1_000_000,
    "train.ratio": 16 * 50 / 5,
    "train.batch_size": 16,
    "train.prefill": 10_000,
    "train.pretrain": 1,
    "env.frames_per_step": 1,
    "size.deter": 1024,
    "size.hidden": 1024,
    "size.classes": 32,
    "size.norm": True,
    "agent.size": "D",
    "agent.reward_transform": "tanh",
    "agent.discount": 0.999,
    "agent.discount_head": True,
    "agent.grad_heads": "all",
    "agent.free_nats": 0.0,
    "agent.model_lr": 1e-4,
    "agent.actor_lr": 1e-4,
    "agent.critic_lr": 1e-4,
    "agent.entropy": 3e-3,
}
CONTROL = {
    **BOTH,
    "train.ratio": 10 * 50 / 5,
    "train.batch_size": 10,
    "train.prefill": 1000,
    "train.pretrain": 100,
    "env.frames_per_step": 2,
    "replay.alpha": 0.7,
    "size.deter": 200,
    "size.hidden": 200,
    "size.classes": 0,
    "size.norm": False,
    "agent.size": "G",
    "agent.reward_transform": "none",
    "agent.discount": 0.99,
    "agent.discount_head": False,
    "agent.grad_heads": "observed",
    "agent.free_nats": 1.0,
    "agent.model_lr": 3e-4,
    "agent.actor_lr": 8e-5,
    "agent.critic_lr": 8e-5,
    "agent.entropy": 1e-4,
}
PUBLISHED = {
    ("dreamerv2", "crafter"): {**CRAFTER, "replay.alpha": 0.5},  # the paper's main table
    ("dreamerv2", "control/walker_walk"): {**CONTROL, "train.steps": 500_000},
    ("dreamerv2", "constrained/cup_catch"): {**CONTROL, "train.steps": 750_000},
    ("plan2explore", "crafter-noreward"): {**CRAFTER, "replay.alpha": 0.7},
    ("plan2explore", "object-interaction"): {**CONTROL, "env.reward": "none"},
}


@pytest.mark.parametrize(("agent", "env"), PUBLISHED)
def test_the_paper_scale_is_what_was_published(agent, env):
    expected = PUBLISHED[agent, env]
    config = preset(Choice(env=env, agent=agent, replay="curious", scale="paper"))
    dreamer = config.agent if agent == "dreamerv2" else config.agent.dreamer
    found = {**vars(config), "agent": dreamer, "size": SIZES[dreamer.size]}
    for key, value in expected.items():
        group, _, name = key.partition(".")
        assert getattr(found[group], name) == value, key
    # Every setting of agent and replay is in the table: none is left to chance.
    named = {
        f"{group}.{name}" for group in ("agent", "replay", "size") for name in vars(found[group])
    }
    assert named - set(expected) == {"replay.storage"}  # how, not what
    if agent == "plan2explore":
        assert config.agent.ensemble == EnsembleConfig(
            members=10, loss="normal", lr=3e-4, eps=1e-5, adam="tensorflow", clip=100, decay=1e-6
        )
        assert (config.agent.intrinsic_scale, config.agent.alignment) == (1.0, "correct")
        assert (config.agent.task_actor, config.agent.normalise) == ("on", "off")


def test_a_small_explorer_of_continuous_worlds_has_more_entropy():
    """Or else it settles in a corner: see docs/agents.md."""
    entropies = {
        (agent, env): preset(Choice(env=env, agent=agent, scale="mini")).agent
        for agent in ("plan2explore", "dreamerv2")
        for env in ("object-interaction", "toy/two-rooms")
    }
    assert entropies["plan2explore", "object-interaction"].dreamer.entropy == 3e-2
    assert entropies["dreamerv2", "object-interaction"].entropy == 1e-3
    assert entropies["plan2explore", "toy/two-rooms"].dreamer.entropy == 3e-3


def test_plan2explore_on_dreamer_v3():
    config = preset(Choice(env="object-interaction", agent="plan2explore-v3", scale="paper"))
    assert config.agent.dreamer.size == "S"
    assert config.agent.ensemble == EnsembleConfig(8, "squared", 1e-4, 1e-5, "pytorch", 100, 0)
    crafter = preset(Choice(env="crafter-noreward", agent="plan2explore-v3", scale="paper"))
    assert crafter.agent.dreamer.size == "XL"
    assert crafter.replay.window == "last" and crafter.train.ratio == 512


@pytest.mark.parametrize("agent", ["dreamerv2", "plan2explore"])
def test_rules_are_the_released_ones(agent):
    loss = {"signal": "likelihood", "dialect": "dv2"}
    expected = {
        "uniform": Uniform(),
        "curious": Curious(**loss),
        "balanced": Balanced(**loss),
        "count": Count(dialect="dv2"),
        "adversarial": Adversarial(**loss),
        "td": TemporalDifference(),
        "td+adversarial": Mixture(Adversarial(**loss), TemporalDifference(), 0.5),
    }
    assert set(expected) == set(REPLAYS)
    for scale in SCALES:
        for name, rule in expected.items():
            config = preset(Choice(env="object-interaction", agent=agent, replay=name, scale=scale))
            assert config.replay.rule() == rule


@pytest.mark.parametrize("agent", OURS)
@pytest.mark.parametrize("scale", SCALES)
def test_there_is_a_preset_for_every_environment(agent, scale):
    for name in (*names(), "CartPole-v1", "my_module:MyEnv"):
        for replay in REPLAYS:
            config = preset(Choice(env=name, agent=agent, replay=replay, scale=scale))
            again = Config.from_json(json.loads(json.dumps(config.to_json())))
            assert again == config


@pytest.mark.parametrize(
    ("agent", "path", "value", "message"),
    [
        ("dreamerv2", "imagination", 1, "--agent.imagination must be from 2 to 1000, got 1"),
        ("dreamerv3", "starts", 1.5, "--agent.starts must be from 1e-06 to 1, got 1.5"),
        ("dreamerv2", "kl_balance", 1.5, "--agent.kl-balance must be from 0 to 1"),
        ("plan2explore", "dreamer.decay", 2.0, "--agent.dreamer.decay must be from 0 to 1"),
        ("plan2explore", "ensemble.members", 1, "--agent.ensemble.members must be from 2"),
        ("dreamerv3", "discount_horizon", 1.0, "--agent.discount-horizon must be from 1.001"),
        ("plan2explore-v3", "dreamer.unimix", -1.0, "--agent.dreamer.unimix must be from 0"),
        ("plan2explore", "task_actor", False, "--agent.task-actor must be 'on' or 'off'"),
        ("plan2explore", "alignment", "wrong", "--agent.alignment must be 'correct' or 'released'"),
        ("plan2explore", "dreamer.td", "replayed", "td must be"),
    ],
)
def test_settings_that_cannot_work_are_refused(agent, path, value, message):
    values = preset(Choice(env="toy/count", agent=agent, scale="debug")).to_json()
    group, (*parents, name) = values["agent"], path.split(".")
    for parent in parents:
        group = group[parent]
    group[name] = value
    with pytest.raises(ValueError, match=message):
        Config.from_json(values)


def go(folder, *options):
    return cli.main(["train", "--scale", "debug", "--logdir", str(folder), *options])


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        ("dreamerv2", "control/cartpole_balance"),
        ("plan2explore", "crafter-noreward"),
        ("plan2explore", "object-interaction"),
        ("plan2explore-v3", "toy/two-rooms"),
    ],
)
def test_a_run_from_the_command_line(agent, env, tmp_path):
    options = ["--env", env, "--agent", agent, "--train.steps", "60", "--train.threads", "1"]
    if env in ("object-interaction", "control/cartpole_balance"):
        options += ["--env.camera", "ray"]
    assert go(tmp_path / "run", *options) == 0
    written = [
        json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    ]
    names = set().union(*written)
    explores = {"ensemble/loss", "explore_actor/reward"} <= {
        n.removeprefix("train/") for n in names
    }
    assert explores == agent.startswith("plan2explore"), sorted(names)


def test_settings_of_the_parts_are_options(tmp_path):
    options = "--env toy/count --agent plan2explore --train.steps 60 --agent.alignment released"
    options += " --agent.dreamer.entropy 0.5 --agent.ensemble.members 3 --train.threads 1"
    options += " --agent.normalise on --agent.ensemble.lr 0.002 --agent.intrinsic-scale 2"
    assert go(tmp_path / "run", *options.split()) == 0
    agent = json.loads((tmp_path / "run/config.json").read_text())["agent"]
    assert agent["alignment"] == "released"
    assert (agent["dreamer"]["entropy"], agent["ensemble"]["members"]) == (0.5, 3)
    assert (agent["normalise"], agent["intrinsic_scale"]) == ("on", 2.0)
    assert agent["ensemble"]["lr"] == 2e-3
    assert '"ensemble/deviation"' in (tmp_path / "run/metrics.jsonl").read_text()
    assert agent["dreamer"]["size"] == DreamerV2Config(size="debug-D").size


@pytest.mark.parametrize("agent", ["plan2explore", "plan2explore-v3"])
def test_a_run_without_a_task_actor(agent, tmp_path):
    options = ["--env", "toy/count", "--agent", agent, "--train.steps", "60", "--eval.every", "30"]
    assert go(tmp_path / "run", *options, "--agent.task-actor", "off", "--train.threads", "1") == 0
    written = (tmp_path / "run/metrics.jsonl").read_text()
    assert '"explore_actor/loss"' in written and '"actor/loss"' not in written
    meta = json.loads((tmp_path / "run/meta.json").read_text())
    assert meta["evaluated"].startswith("the exploring policy")


@pytest.mark.parametrize("agent", ["plan2explore", "plan2explore-v3"])
def test_every_number_of_the_dreamer_within_is_an_option(agent):
    options = ["--env", "toy/count", "--scale", "debug", "--agent", agent]
    base = parse(options).config
    numbers = {n: v for n, v in vars(base.agent.dreamer).items() if isinstance(v, float)}
    assert {"model_lr", "return_lambda", "entropy"} < set(numbers)
    for name, value in numbers.items():
        option = f"--agent.dreamer.{name.replace('_', '-')}"
        found = parse([*options, option, str(0.9 * value or 0.5)]).config
        assert differences(base, found) == {option: (value, 0.9 * value or 0.5)}


def settings(agent, env, **changes):
    config = preset(Choice(env=env, agent=agent, replay="curious", scale="debug"))
    groups = {
        "env": changes,
        "train": {"steps": 80, "save_every": 20, "log_every": 5, "prefill": 15, "threads": 1},
        "eval": {"every": 0},
        "record": {"video_every": 0, "tensorboard": False},
    }
    groups["train"]["pretrain"] = 7
    return replace(config, **{n: replace(getattr(config, n), **c) for n, c in groups.items()})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "env", "changes"),
    [
        ("dreamerv2", "toy/two-rooms", {"num_envs": 4, "length": 19}),
        ("dreamerv2", "control/cartpole_balance", {"episode_frames": 40, "camera": "ray"}),
        ("plan2explore", "toy/two-rooms", {"length": 19}),
        ("plan2explore", "control/cartpole_balance", {"episode_frames": 40, "camera": "ray"}),
        ("plan2explore-v3", "toy/two-rooms", {"length": 9}),
    ],
)
def test_resumed_run_equals_one_never_stopped(agent, env, changes, tmp_path, monkeypatch):
    config = settings(agent, env, **changes)
    run(config, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at_update(patch, 24)
        run(config, tmp_path / "killed")
    assert lines(tmp_path / "killed") != lines(tmp_path / "whole")
    assert run(config, tmp_path / "killed", resume=True).finished
    assert lines(tmp_path / "killed") == lines(tmp_path / "whole")


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("agent", ["dreamerv2", "plan2explore", "dreamerpro"])
@pytest.mark.parametrize("env", ["toy/mirror", "toy/two-rooms", "CartPole-v1"])
def test_episodes_may_be_shorter_than_windows(env, agent, scale):
    """Or else only those without success, which run into the time limit, would be replayed."""
    config = preset(Choice(env=env, agent=agent, replay="curious", scale=scale))
    assert config.replay.cross_episodes
