"""IRIS in a run: presets key by key, every option, streams from replay, and exact resume."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers.fake_agent import FakeAgent
from helpers.runs import Killed, config, kill_at_update, lines, run
from test_train_command import options_of

from curious_replay import cli
from curious_replay.agents.configs.iris import SIZES
from curious_replay.agents.interface import Feedback, Stream
from curious_replay.commands.train import parse
from curious_replay.envs import names
from curious_replay.run import Choice, Config, preset
from curious_replay.run.record.files import read_lines
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.config import SCALES, differences
from curious_replay.run.settings.replay_config import REPLAYS

PUBLISHED = {
    "train.steps": 1_000_000,
    "train.ratio": 64 * 20,  # an update for each step
    "train.batch_size": 64,
    "train.batch_length": 20,
    "train.prefill": 6 * 200,
    "env.num_envs": 1,
    "env.image_size": 64,
    "env.frames_per_step": 1,
    "replay.capacity": 1_000_000,
    "replay.window": "last",
    "replay.cross_episodes": True,
    "replay.repeats": True,
    "replay.c": 1e4,
    "replay.beta": 0.7,
    "replay.alpha": 0.7,
    "replay.eps": 0.01,
    "replay.p_max": 1e5,
    "replay.signal": "model",
    "replay.dialect": "paper",
    "eval.episodes": 16,
    "size.channels": 64,
    "size.groups": 32,
    "size.blocks": 2,
    "size.codes": 512,
    "size.code": 512,
    "size.layers": 10,
    "size.heads": 4,
    "size.width": 256,
    "size.units": 512,
    "size.eye": (32, 32, 64, 64),
    "size.initial": 0.02,
    "agent.size": "paper",
    "agent.context": 20,
    "agent.dropout": 0.1,
    "agent.pictures": 256,
    "agent.starts": 64,
    "agent.burn_in": 20,
    "agent.imagination": 20,
    "agent.model_after": (26 - 6) * 200,
    "agent.actor_after": (51 - 6) * 200,
    "agent.tokenizer_lr": 1e-4,
    "agent.settled": 1,
    "agent.model_lr": 1e-4,
    "agent.actor_critic_lr": 1e-4,
    "agent.eps": 1e-8,
    "agent.clip": 10,
    "agent.decay": 0.01,
    "agent.reconstruction": "absolute",
    "agent.commitment": 1.0,
    "agent.vgg": "",
    "agent.lpips": "",
    "agent.discount": 0.995,
    "agent.return_lambda": 0.95,
    "agent.entropy": 1e-3,
    "agent.exploration": 0.01,
    "agent.temperature": 0.5,
}
# A value for each option of the agent, other than that of any preset.
VALUES = {
    "--agent.size": "small",
    "--agent.context": "12",
    "--agent.dropout": "0.3",
    "--agent.pictures": "7",
    "--agent.starts": "7",
    "--agent.burn-in": "7",
    "--agent.imagination": "7",
    "--agent.model-after": "2",
    "--agent.actor-after": "77",
    "--agent.tokenizer-lr": "7e-4",
    "--agent.settled": "0.3",
    "--agent.model-lr": "7e-4",
    "--agent.actor-critic-lr": "7e-4",
    "--agent.eps": "1e-6",
    "--agent.clip": "5",
    "--agent.decay": "0.1",
    "--agent.reconstruction": "squared",
    "--agent.commitment": "0.3",
    "--agent.vgg": "vgg.pth --agent.lpips lpips.pth",
    "--agent.lpips": "lpips.pth --agent.vgg vgg.pth",
    "--agent.discount": "0.9",
    "--agent.return-lambda": "0.9",
    "--agent.entropy": "0.02",
    "--agent.exploration": "0.05",
    "--agent.temperature": "0.7",
}
IRIS = ["--env", "toy/mirror", "--agent", "iris", "--scale", "debug"]


def test_the_paper_scale_is_what_was_published():
    found = preset(Choice(env="crafter", agent="iris", replay="curious", scale="paper"))
    groups = {**vars(found), "size": SIZES[found.agent.size]}
    for key, value in PUBLISHED.items():
        group, _, name = key.partition(".")
        assert getattr(groups[group], name) == value, key
    named = {f"{group}.{name}" for group in ("agent", "replay", "size") for name in
             vars(groups[group])}  # fmt: skip
    assert named - set(PUBLISHED) == {"replay.storage", "replay.clear_at_change"}  # not the paper's


@pytest.mark.parametrize("scale", SCALES)
def test_there_is_a_preset_for_every_environment(scale):
    for name in (*names(), "CartPole-v1", "my_module:MyEnv"):
        for replay in REPLAYS:
            made = preset(Choice(env=name, agent="iris", replay=replay, scale=scale))
            assert Config.from_json(json.loads(json.dumps(made.to_json()))) == made


@pytest.mark.parametrize("name", VALUES)
def test_every_option_changes_what_it_says(name):
    base, new = (parse([*IRIS, *more]).config for more in ([], [name, *VALUES[name].split()]))
    both = {"--agent.vgg", "--agent.lpips"}
    assert set(differences(base, new)) == (both if name in both else {name})


def test_help_shows_exactly_these_options(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        cli.main(["train", *IRIS, "--help"])
    shown = set(re.findall(r"(?<![\w`])--agent\.[\w.-]*", capsys.readouterr().out))
    assert shown == set(options_of(parse(IRIS).config.agent, "agent")) == set(VALUES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--agent.context 4", r"--train.batch-length must be at most --agent.context \(4\), got 8"),
        ("--train.batch-length 9", "--train.batch-length must be at most --agent.context"),
        ("--agent.imagination 1", "--agent.imagination must be from 2 to 1000, got 1"),
        ("--agent.exploration 2", "--agent.exploration must be from 0 to 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        parse([*IRIS, *options.split()]).config  # noqa: B018


def test_continuous_actions_are_refused_before_the_start(tmp_path, capsys):
    options = ["--env", "control/cartpole_balance", "--agent", "iris", "--scale", "debug"]
    folder = tmp_path / "run"
    assert cli.main(["train", *options, "--env.camera", "ray", "--logdir", str(folder)]) == 2
    assert "IRIS knows discrete actions only" in capsys.readouterr().err
    assert not folder.exists()


def settings(env="toy/two-rooms", rule="curious", num_envs=1, length=19, **groups):
    made = preset(Choice(env=env, agent="iris", replay=rule, scale="debug"))
    groups = {
        "env": {"length": length, "num_envs": num_envs},
        "train": {"steps": 40, "save_every": 20, "log_every": 5, "prefill": 15, "threads": 1},
        "eval": {"every": 0},
        "record": {"video_every": 0, "tensorboard": False},
        **groups,
    }
    return replace(made, **{n: replace(getattr(made, n), **c) for n, c in groups.items()})


def resumes_exactly(chosen, kill_at, folder, monkeypatch):
    run(chosen, folder / "whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at_update(patch, kill_at)
        run(chosen, folder / "killed")
    assert lines(folder / "killed") != lines(folder / "whole")
    assert run(chosen, folder / "killed", resume=True).finished
    assert lines(folder / "killed") == lines(folder / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("rule", REPLAYS)
def test_resumed_run_equals_one_never_stopped(rule, tmp_path, monkeypatch):
    """Saved at step 20, after two updates: before the world model learns."""
    chosen = settings(rule=rule)
    chosen = replace(chosen, train=replace(chosen.train, steps=32))
    resumes_exactly(chosen, 6, tmp_path, monkeypatch)
    last = read_lines(tmp_path / "whole" / "metrics.jsonl")[-1]
    assert last["update"] > 7  # all parts have learned


@pytest.mark.slow
@pytest.mark.parametrize(("env", "num_envs"), [("toy/two-rooms", 4), ("crafter", 1)])
def test_resumed_in_the_middle_of_dreams(env, num_envs, tmp_path, monkeypatch):
    chosen = settings(env, num_envs=num_envs, length=15)
    chosen = replace(chosen, agent=replace(chosen.agent, model_after=1, actor_after=2))
    chosen = replace(chosen, train=replace(chosen.train, ratio=16.0, steps=20 + 10 * num_envs))
    resumes_exactly(chosen, 12, tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("iris") / "plain"
    run(settings(length=9), folder)
    return folder


def test_watching_does_not_disturb(plain, tmp_path):
    chosen = settings(length=9)
    watched = replace(
        chosen,
        eval=replace(chosen.eval, every=20),
        record=replace(chosen.record, video_every=20),
    )
    run(watched, tmp_path / "watched")
    assert len(list((tmp_path / "watched" / "videos").iterdir())) == 4
    name = "metrics.jsonl"
    assert lines(tmp_path / "watched")[name] == lines(plain)[name]


def test_the_record_says_that_there_is_no_perceptual_loss(plain):
    said = json.loads((plain / "meta.json").read_text())["perceptual_loss"]
    assert said == "none: the tokenizer learns from absolute error and codebook only"


def test_steps_are_visited_when_the_world_model_learns_from_them(plain):
    for line in read_lines(plain / "metrics.jsonl"):
        assert line["replay/updated"] == 2 * 8 * max(0, line["update"] - 3)


class Streaming(FakeAgent):
    """Wants windows of its own beside the batch, and learns nothing to predict before update 5."""

    seen: tuple = ()

    @property
    def streams(self):
        return {"single": Stream(5, 1), "long": Stream(3, 7)}

    def update(self, batch, unread=()):
        Streaming.seen = {name: array.shape for name, array in batch.items()}
        for name in ("image", "reward", "is_first"):
            assert (batch[f"long/{name}"].shape[:2], batch[name].shape[:2]) == ((3, 7), (2, 4))
        feedback = super().update(batch)
        more = {"single": float(batch["single/reward"].mean()),
                "long": float(batch["long/image"].mean())}  # fmt: skip
        signals = feedback.signals if self.calls > 5 else {}
        return Feedback(signals, {**feedback.metrics, **more})


def test_streams_are_part_of_batches_and_of_checkpoints(tmp_path, monkeypatch):
    entry = AGENTS["fake"]
    monkeypatch.setitem(AGENTS, "fake", replace(entry, kind=Streaming))
    chosen = config("toy/two-rooms", env={"length": 11}, train={"steps": 80})
    resumes_exactly(chosen, 25, tmp_path, monkeypatch)
    assert Streaming.seen["single/image"][:2] == (5, 1)
    last = read_lines(tmp_path / "whole" / "metrics.jsonl")[-1]
    assert last["replay/updated"] == 2 * 4 * (last["update"] - 5)
    # The batch and the next one that is drawn ahead, each with its streams.
    assert last["replay/sampled"] == (last["update"] + 1) * (2 + 5 + 3)
    assert np.isfinite(last["long"])
