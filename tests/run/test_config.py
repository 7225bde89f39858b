import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import fake_agent  # noqa: F401  # must not change what the others are

from curious_replay.agents.configs.dreamer_v3 import SIZES
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
from curious_replay.run.settings.config import SCALES
from curious_replay.run.settings.config_io import LATER, RENAMED
from curious_replay.run.settings.replay_config import REPLAYS

# What the paper ran, and the released configuration where the paper says "defaults".
PUBLISHED_DREAMER_V3 = {
    "train.ratio": 512,
    "train.batch_size": 16,
    "train.batch_length": 64,
    "train.prefill": 1100,
    "replay.capacity": 1_000_000,
    "replay.window": "last",
    "replay.cross_episodes": True,
    "replay.repeats": True,
    "replay.clear_at_change": 0,
    "replay.c": 1e4,
    "replay.beta": 0.7,
    "replay.alpha": 0.7,
    "replay.eps": 0.01,
    "replay.p_max": 1e5,
    "replay.signal": "model",
    "replay.dialect": "paper",
    "env.image_size": 64,
    "size.latents": 32,
    "size.classes": 32,
    "agent.unimix": 0.01,
    "agent.bins": 255,
    "agent.free_nats": 1.0,
    "agent.dynamics_scale": 0.5,
    "agent.representation_scale": 0.1,
    "agent.model_lr": 1e-4,
    "agent.model_eps": 1e-8,
    "agent.model_clip": 1000,
    "agent.actor_lr": 3e-5,
    "agent.critic_lr": 3e-5,
    "agent.actor_critic_eps": 1e-5,
    "agent.actor_critic_clip": 100,
    "agent.imagination": 15,
    "agent.starts": 1.0,
    "agent.discount_horizon": 333,
    "agent.return_lambda": 0.95,
    "agent.entropy": 3e-4,
    "agent.return_decay": 0.99,
    "agent.slow_fraction": 0.02,
    "agent.td": "imagined",
}
PUBLISHED = {
    "crafter": {
        **PUBLISHED_DREAMER_V3,
        "train.steps": 1_000_000,
        "env.num_envs": 1,
        "env.frames_per_step": 1,
        "env.length": 10_000,
        "agent.size": "XL",
        "size.deter": 4096,
        "size.units": 1024,
        "size.depth": 96,
        "size.layers": 5,
    },
    "control/walker_walk": {
        **PUBLISHED_DREAMER_V3,
        "train.steps": 500_000,
        "env.num_envs": 1,  # with prioritised replay; see below for uniform replay
        "env.frames_per_step": 2,
        "agent.size": "S",
        "size.deter": 512,
        "size.units": 512,
        "size.depth": 32,
        "size.layers": 2,
    },
}


@pytest.mark.parametrize("env", PUBLISHED)
def test_the_paper_scale_is_what_was_published(env):
    config = preset(Choice(env=env, agent="dreamerv3", replay="curious", scale="paper"))
    found = {"size": SIZES[config.agent.size], **vars(config)}
    for key, value in PUBLISHED[env].items():
        group, _, name = key.partition(".")
        assert getattr(found[group], name) == value, key
    # Every setting of agent, replay and the world is in the table: none is left to chance.
    groups = {"agent": config.agent, "replay": config.replay}
    named = {f"{group}.{name}" for group, values in groups.items() for name in vars(values)}
    ours = {"replay.storage"}  # how, not what
    assert named - set(PUBLISHED[env]) == ours


def test_uniform_replay_ran_with_four_environments_on_control_tasks():
    def envs(env, replay):
        return preset(Choice(env=env, replay=replay, scale="paper")).env.num_envs

    assert envs("control/walker_walk", "uniform") == 4
    assert envs("crafter", "uniform") == 1
    assert {envs("control/walker_walk", replay) for replay in REPLAYS if replay != "uniform"} == {1}


def test_gradients_are_clipped_sooner_on_control_tasks_at_mini_scale_only():
    clips = {
        (env, scale): preset(Choice(env=env, scale=scale)).agent.model_clip
        for env in ("control/cartpole_balance", "crafter")
        for scale in SCALES
    }
    assert [key for key, clip in clips.items() if clip != 1000.0] == [
        ("control/cartpole_balance", "mini")
    ]
    assert clips["control/cartpole_balance", "mini"] == 10.0


def test_rules_are_those_of_the_settings():
    expected = {
        "uniform": Uniform(),
        "curious": Curious(),
        "balanced": Balanced(),
        "count": Count(),
        "adversarial": Adversarial(),
        "td": TemporalDifference(),
        "td+adversarial": Mixture(Adversarial(), TemporalDifference(), 0.5),
    }
    assert set(expected) == set(REPLAYS)
    for name, rule in expected.items():
        assert preset(Choice(replay=name)).replay.rule() == rule


@pytest.mark.parametrize("scale", SCALES)
def test_there_is_a_preset_for_every_environment(scale):
    for name in (*names(), "CartPole-v1", "my_module:MyEnv"):
        for replay in REPLAYS:
            config = preset(Choice(env=name, replay=replay, scale=scale))
            again = Config.from_json(json.loads(json.dumps(config.to_json())))
            assert again == config


def changed(values, path, value):
    *parents, name = path.split(".")
    for parent in parents:
        values = values[parent]
    values[name] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("train.stepps", 1, r"unknown setting train\.stepps"),
        ("extra", {}, "unknown setting extra"),
        ("train.steps", "many", "--train.steps must be int, got 'many'"),
        ("train.steps", True, "--train.steps must be int"),
        ("train.ratio", "1", "--train.ratio must be float"),
        ("train.device", "tpu", "--train.device must be 'auto' or 'cpu' or 'cuda', got 'tpu'"),
        ("env.schedule", [[0]], "--env.schedule takes 2 values at a time"),
        ("env.schedule", "empty", "--env.schedule must be a list"),
        ("env.view", "wide", "--env.view must be int"),
        ("choice.replay", "best", "--replay must be one of"),
        ("replay.td", 3, r"replay\.td must be a group"),
        ("seed", "x", "--seed must be a whole number"),
        ("eval.every", -1, "--eval.every must be at least 0"),
    ],
)
def test_a_saved_config_is_read_strictly(path, value, message):
    config = preset(Choice(env="toy/two-rooms", replay="td+adversarial", scale="debug"))
    values = json.loads(json.dumps(config.to_json()))
    changed(values, path, value)
    with pytest.raises(ValueError, match=message):
        Config.from_json(values)


def test_a_missing_setting_is_named():
    values = preset(Choice()).to_json()
    del values["train"]["ratio"]
    with pytest.raises(ValueError, match=r"train\.ratio is missing"):
        Config.from_json(values)
    with pytest.raises(ValueError, match="'replay' is missing"):
        Config.from_json({name: v for name, v in values.items() if name != "replay"})


def flat(values, path=""):
    """{"group.name": value} of settings within settings."""
    found = {}
    for name, value in values.items():
        inside = isinstance(value, dict)
        found |= flat(value, f"{path}{name}.") if inside else {f"{path}{name}": value}
    return found


def test_settings_of_earlier_versions_are_read():
    """What came later is as it was before, if LATER says how that was."""
    old = (Path(__file__).parent / "saves" / "first-configs.jsonl").read_text().splitlines()
    seen = set()
    for values in map(json.loads, old):
        read = Config.from_json(values)
        seen |= {read.choice.env, read.choice.agent, read.choice.replay}
        assert read.replay.repeats and read.record.keep_at == ()
        written = flat(json.loads(json.dumps(read.to_json())))
        before = {RENAMED.get(name, name): value for name, value in flat(values).items()}
        assert written == {**written, **before}
        assert written.keys() - before.keys() <= LATER.keys()
    assert {"object-interaction", "crafter", "iris", "plan2explore", "td+adversarial"} <= seen


def test_numbers_from_json_keep_their_kind():
    values = json.loads(json.dumps(preset(Choice()).to_json()))
    values["train"]["ratio"] = 64
    assert isinstance(Config.from_json(values).train.ratio, float)


def test_videos_need_steps_to_predict():
    config = preset(Choice(scale="debug"))
    with pytest.raises(ValueError, match="video-context must be below"):
        replace(config, record=replace(config.record, video_context=8))
