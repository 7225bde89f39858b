"""Presets of DreamerPro, key by key, its options, and short runs from the command line."""

import json
import re
from dataclasses import replace

import pytest
from helpers.runs import Killed, kill_at_update, lines, run

from curious_replay import cli
from curious_replay.agents.configs.dreamer_pro import SIZES, DreamerProConfig
from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
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
from curious_replay.run.settings.config_io import bounds_of
from curious_replay.run.settings.replay_config import REPLAYS

# What was published. The paper says "defaults" on Crafter; where those do not fit discrete actions
# and episodes that end, these are DreamerV2's there (discount, entropy, rewards, ends).
BOTH = {
    "train.ratio": 50 * 51 / 5,
    "train.batch_size": 50,
    "train.batch_length": 51,
    "env.num_envs": 1,
    "env.image_size": 64,
    "replay.capacity": 2_000_000,
    "replay.clear_at_change": 0,
    "replay.window": "first",
    "replay.cross_episodes": False,
    "replay.repeats": True,
    "replay.c": 1e4,
    "replay.beta": 0.7,
    "replay.alpha": 0.7,
    "replay.eps": 0.01,
    "replay.p_max": 1e5,
    "replay.signal": "model",
    "replay.dialect": "dv2",
    "eval.every": 100_000,
    "record.video_every": 0,
    "size.depth": 48,
    "size.layers": 4,
    "size.units": 400,
    "size.latents": 32,
    "size.norm": False,
    "agent.grad_heads": "all",
    "agent.kl_scale": 1.0,
    "agent.kl_balance": 0.8,
    "agent.model_lr": 3e-4,
    "agent.eps": 1e-5,
    "agent.adam": "tensorflow",
    "agent.clip": 100,
    "agent.decay": 1e-6,
    "agent.imagination": 14,
    "agent.starts": 1.0,
    "agent.return_lambda": 0.95,
    "agent.target_every": 100,
    "agent.td": "predicted",
    "agent.prototypes": 2500,
    "agent.prototype_size": 32,
    "agent.frozen_updates": 10_000,
    "agent.temperature": 0.1,
    "agent.reward_scale": 1.0,
    "agent.teacher_fraction": 0.05,
    "agent.shift": 3.0,
}
CRAFTER = {
    **BOTH,
    "train.steps": 1_000_000,
    "train.prefill": 10_000,
    "train.pretrain": 1,
    "env.frames_per_step": 1,
    "size.deter": 400,
    "size.hidden": 400,
    "size.classes": 32,
    "agent.size": "D",
    "agent.reward_transform": "tanh",
    "agent.discount": 0.999,
    "agent.discount_head": True,
    "agent.free_nats": 0.0,
    "agent.actor_lr": 1e-4,
    "agent.critic_lr": 1e-4,
    "agent.entropy": 3e-3,
    "agent.sinkhorn_eps": 0.05,
    "agent.norm_scale": 1.0,
}
CONTROL = {
    **BOTH,
    "train.steps": 500_000,
    "train.prefill": 2500,
    "train.pretrain": 100,
    "env.frames_per_step": 2,
    "size.deter": 200,
    "size.hidden": 200,
    "size.classes": 0,
    "agent.size": "G",
    "agent.reward_transform": "none",
    "agent.discount": 0.99,
    "agent.discount_head": False,
    "agent.free_nats": 1.0,
    "agent.actor_lr": 8e-5,
    "agent.critic_lr": 8e-5,
    "agent.entropy": 1e-4,
    "agent.sinkhorn_eps": 0.0125,
    "agent.norm_scale": 0.0,
}
PUBLISHED = {"crafter": CRAFTER, "control/walker_walk": CONTROL}


@pytest.mark.parametrize("env", PUBLISHED)
def test_the_paper_scale_is_what_was_published(env):
    expected = PUBLISHED[env]
    config = preset(Choice(env=env, agent="dreamerpro", replay="curious", scale="paper"))
    found = {**vars(config), "size": SIZES[config.agent.size]}
    for key, value in expected.items():
        group, _, name = key.partition(".")
        assert getattr(found[group], name) == value, key
    # Every setting of agent and replay is in the table: none is left to chance.
    named = {
        f"{group}.{name}" for group in ("agent", "replay", "size") for name in vars(found[group])
    }
    assert named - set(expected) == {"replay.storage"}  # how, not what


def test_rules_have_the_whole_loss_above_its_minimum():
    loss = {"signal": "model", "dialect": "dv2"}
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
            config = preset(Choice(env="crafter", agent="dreamerpro", replay=name, scale=scale))
            assert config.replay.rule() == rule


@pytest.mark.parametrize("scale", SCALES)
def test_there_is_a_preset_for_every_environment(scale):
    for name in (*names(), "CartPole-v1", "my_module:MyEnv"):
        for replay in REPLAYS:
            config = preset(Choice(env=name, agent="dreamerpro", replay=replay, scale=scale))
            again = Config.from_json(json.loads(json.dumps(config.to_json())))
            assert again == config


# A value for each option of the agent, other than that of the preset; flags have none.
VALUES = {
    "--agent.size": "nano-G",
    "--agent.reward-transform": "none",
    "--agent.discount": "0.9",
    "--agent.discount-head": "",
    "--agent.no-discount-head": "",
    "--agent.grad-heads": "observed",
    "--agent.kl-scale": "2",
    "--agent.kl-balance": "0.5",
    "--agent.free-nats": "0.5",
    "--agent.model-lr": "7e-4",
    "--agent.actor-lr": "7e-5",
    "--agent.critic-lr": "7e-5",
    "--agent.eps": "1e-6",
    "--agent.adam": "pytorch",
    "--agent.clip": "10",
    "--agent.decay": "1e-5",
    "--agent.imagination": "7",
    "--agent.starts": "0.5",
    "--agent.return-lambda": "0.9",
    "--agent.entropy": "1e-2",
    "--agent.target-every": "7",
    "--agent.td": "replayed",
    "--agent.prototypes": "20",
    "--agent.prototype-size": "3",
    "--agent.frozen-updates": "1",
    "--agent.sinkhorn-eps": "0.2",
    "--agent.temperature": "0.3",
    "--agent.norm-scale": "2",
    "--agent.reward-scale": "20",
    "--agent.teacher-fraction": "0.2",
    "--agent.shift": "0.5",
}
CHOICE = ["--agent", "dreamerpro", "--env", "toy/count", "--replay", "td+adversarial"]
CHOICE += ["--scale", "debug"]


def test_help_shows_exactly_these_options(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        cli.main(["train", *CHOICE, "--help"])
    text = capsys.readouterr().out
    assert set(re.findall(r"(?<![\w`])--agent\.[\w.-]*", text)) == set(VALUES)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain") / "run"
    assert go(folder) == 0
    return folder


def go(folder, *more):
    quiet = ["--eval.every", "0", "--record.no-tensorboard", "--train.threads", "1"]
    short = ["--train.steps", "56", "--train.log-every", "8", "--env.length", "12"]
    return cli.main(["train", *CHOICE, "--logdir", str(folder), *quiet, *short, *more])


@pytest.mark.parametrize("name", VALUES)
def test_every_option_changes_what_it_says_and_what_is_learned(name, plain, tmp_path):
    given = [name, VALUES[name]] if VALUES[name] else [name]
    changes = differences(parse(CHOICE).config, parse([*CHOICE, *given]).config)
    if name == "--agent.discount-head":  # is so anyway
        assert not changes
        return
    assert list(changes) == [name.replace(".no-", ".")]
    assert go(tmp_path / "run", *given) == 0
    assert lines(tmp_path / "run")["metrics.jsonl"] != lines(plain)["metrics.jsonl"]


@pytest.mark.parametrize(
    ("group", "name", "value", "message"),
    [
        ("agent", "prototypes", 1, "--agent.prototypes must be from 2"),
        ("agent", "imagination", 1, "--agent.imagination must be from 2 to 1000, got 1"),
        ("agent", "starts", 0.0, "--agent.starts must be from 1e-06 to 1, got 0.0"),
        ("agent", "teacher_fraction", 1.5, "--agent.teacher-fraction must be from 0 to 1"),
        ("agent", "size", "S", "--agent.size must be 'D' or 'G'"),
        ("agent", "sinkhorn_eps", 0.0, "--agent.sinkhorn-eps must be from"),
        ("record", "video_every", 10, "--record.video-every needs an agent that predicts images"),
        ("record", "probe_every", 10, "--record.probe-every needs an agent that predicts images"),
    ],
)
def test_settings_that_cannot_work_are_refused(group, name, value, message):
    values = preset(Choice(env="object-interaction", agent="dreamerpro", scale="debug")).to_json()
    values[group][name] = value
    with pytest.raises(ValueError, match=message):
        Config.from_json(values)


def settings(env, replay, **changes):
    config = preset(Choice(env=env, agent="dreamerpro", replay=replay, scale="debug"))
    train = {"steps": 80, "save_every": 20, "log_every": 5, "prefill": 15, "threads": 1}
    groups = {
        "env": changes,
        "train": {**train, "pretrain": 7},
        "eval": {"every": 0},
        "record": {"tensorboard": False},
    }
    return replace(config, **{n: replace(getattr(config, n), **c) for n, c in groups.items()})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "replay", "changes"),
    [
        *(("toy/two-rooms", replay, {"num_envs": 4, "length": 19}) for replay in REPLAYS),
        ("crafter", "curious", {"length": 15}),
        ("control/cartpole_balance", "curious", {"episode_frames": 40, "camera": "ray"}),
    ],
)
def test_resumed_run_equals_one_never_stopped(env, replay, changes, tmp_path, monkeypatch):
    config = settings(env, replay, **changes)
    run(config, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at_update(patch, 24)
        run(config, tmp_path / "killed")
    assert lines(tmp_path / "killed") != lines(tmp_path / "whole")
    assert run(config, tmp_path / "killed", resume=True).finished
    assert lines(tmp_path / "killed") == lines(tmp_path / "whole")
    written = [
        json.loads(line) for line in (tmp_path / "whole/metrics.jsonl").read_text().splitlines()
    ]
    assert {"model/swav", "model/temporal", "model/norm"} <= set().union(*written)


def test_the_first_step_of_a_window_keeps_its_priority(tmp_path):
    """It has no loss: priorities that are not known are counted, and stay as they were."""
    run(settings("toy/two-rooms", "curious", length=19), tmp_path / "run")
    last = json.loads((tmp_path / "run/metrics.jsonl").read_text().splitlines()[-1])
    assert last["replay/refused"] == last["update"] * 2  # one step of each of two windows


def test_settings_that_have_another_default_here_keep_their_bounds():
    assert bounds_of(DreamerV2Config).items() <= bounds_of(DreamerProConfig).items()
