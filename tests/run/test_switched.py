"""`--env switch`: runs in which one world follows another."""

import json
from dataclasses import replace

import pytest
from helpers.runs import Killed, config, kill_at_update, lines, run

from curious_replay import cli
from curious_replay.run import evaluate, load_agent
from curious_replay.run.record.files import read_json, read_lines
from curious_replay.run.settings.env_config import SwitchConfig
from curious_replay.run.worlds.environments import inspect_env, make_envs
from curious_replay.run.worlds.switched import worlds_of

SCHEDULE = ((0, "before"), (60, "after"))
SWITCH = ["train", "--env", "switch", "--agent", "fake", "--scale", "debug"]


def switch(before="own_envs:Saves", after="own_envs:Saves", **settings):
    return {
        "phases": (f"before={before}", f"after={after}"),
        "schedule": SCHEDULE,
        "arguments_json": '{"after": {"length": 4}}',
        **settings,
    }


def episodes(folder):
    return read_lines(folder / "episodes.jsonl")


def test_the_command_line_of_the_docs(tmp_path, capsys):
    phases = ["--env.phases", "before=CartPole-v1", "after=own_envs:Heavy"]
    schedule = ["--env.schedule", "0", "before", "60", "after"]
    folder = tmp_path / "run"
    steps = ["--train.steps", "120", "--logdir", str(folder)]
    assert cli.main([*SWITCH, *phases, *schedule, *steps]) == 0
    assert {line["phase"] for line in episodes(folder)} == {"before", "after"}
    assert read_json(folder / "meta.json")["schedule"] == [[0, "before"], [60, "after"]]
    capsys.readouterr()
    assert cli.main(["eval", str(folder), "--phase", "after", "--episodes", "2"]) == 0
    assert "after" in capsys.readouterr().out
    with pytest.raises(ValueError, match="phase must be one of before, after, got 'later'"):
        evaluate(load_agent(folder), episodes=1, phase="later")


def test_the_change_cuts_an_episode_or_waits_for_its_end(tmp_path):
    cut = config("switch", env=switch(schedule=((0, "before"), (65, "after"))))
    waits = replace(cut, env=replace(cut.env, at="episode"))
    for name, settings, expected in (("cut", cut, [10, 5, 4]), ("waits", waits, [10, 10, 4])):
        run(settings, tmp_path / name)
        played = [line for line in episodes(tmp_path / name) if line["mode"] == "train"]
        lengths = [line["length"] for line in played]
        phases = [line["phase"] for line in played]
        assert phases[:8] == ["before"] * 7 + ["after"]
        assert lengths[5:8] == expected


@pytest.mark.parametrize("num_envs", [1, 3])
def test_resumed_run_equals_one_never_stopped(num_envs, tmp_path, monkeypatch):
    settings = config("switch", env=switch(num_envs=num_envs), train={"steps": 120})
    run(settings, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at_update(patch, 25)
        run(settings, tmp_path / "killed")
    assert run(settings, tmp_path / "killed", resume=True).finished
    assert lines(tmp_path / "killed") == lines(tmp_path / "whole")


def test_a_world_that_cannot_be_saved_goes_on_in_the_phase_of_its_frame(tmp_path):
    env = switch(before="own_envs:Numbers", arguments_json="{}")
    settings = config("switch", env=env, train={"steps": 90})
    assert not inspect_env("switch", settings.env).can_save
    run(settings, tmp_path)
    longer = replace(settings, train=replace(settings.train, steps=130))
    run(longer, tmp_path, resume=True)
    late = [line["phase"] for line in episodes(tmp_path) if line["step"] > 90]
    assert set(late) == {"after"}


def test_logs_of_all_worlds_are_stored():
    env = SwitchConfig(**switch(before="own_envs:Distances", after="own_envs:Touches"))
    facts = inspect_env("switch", replace(env, arguments_json="{}"))
    assert {"log_distance", "log_touches", "log_place", "log_phase"} <= facts.logs.keys()
    assert facts.logs["log_distance"].dtype.kind == "f"
    assert facts.phases == ("before", "after")
    assert facts.schedule == SCHEDULE


def test_worlds_of_ours_take_settings():
    env = switch("toy/mirror", "toy/mirror", image_size=16, scale="mini")
    worlds = worlds_of(SwitchConfig(**{**env, "arguments_json": '{"after": {"room": 3}}'}))
    assert {phase: name for phase, (name, _) in worlds.items()} == {
        "before": "toy/mirror",
        "after": "toy/mirror",
    }
    before, after = (settings for _, settings in worlds.values())
    assert (before.image_size, before.scale, before.room) == (16, "mini", 5)
    assert replace(after, room=5) == before
    moved = SwitchConfig(**switch("control/cup_catch", action_repeat=3, arguments_json="{}"))
    assert [settings.frames_per_step for _, settings in worlds_of(moved).values()] == [3, 3]


def test_actions_are_held_and_frames_counted(tmp_path):
    settings = config("switch", env=switch(action_repeat=2), train={"steps": 60})
    run(settings, tmp_path)
    played = [line for line in episodes(tmp_path) if line["mode"] == "train"]
    assert {line["length"] for line in played if line["phase"] == "before"} == {5}
    assert {line["length"] for line in played if line["phase"] == "after"} == {2}
    assert [line["frame"] for line in played if line["phase"] == "before"][-1] == 60


def test_worlds_run_in_processes():
    env = SwitchConfig(**switch("toy/mirror", "toy/mirror", arguments_json="{}", num_envs=2))
    envs = make_envs("switch", env, 2)
    try:
        envs.reset(seed=0)
        envs.call("set_frame", 60)
        _, infos = envs.reset()
        assert list(infos["phase"]) == ["after"] * 2
    finally:
        envs.close()


BAD = {
    "": "--env switch needs worlds and when they change: --env.phases, as in before=CartPole-v1",
    "--env.phases a=CartPole-v1": "--env switch needs worlds and when they change",
    "--env.phases CartPole-v1": "must be given as before=CartPole-v1, got 'CartPole-v1'",
    "--env.phases a=CartPole-v1 a=Acrobot-v1": "--env.phases names a phase twice",
    "--env.phases a=CartPole-v1 --env.schedule 0 b": "names the phase 'b', --env.phases has a",
    "--env.phases a=toy/miror --env.schedule 0 a": "did you mean toy/mirror",
    "--env.phases a=switch --env.schedule 0 a": "the world of 'a' cannot be a switch itself",
    "--env.phases a=toy/mirror --env.schedule 0 a --env.action-repeat 2": "one action a frame",
    "--env.phases a=CartPole-v1 b=Acrobot-v1 --env.schedule 0 a 9 b": "the shape (4,) and",
    "--env.phases a=own_envs:Lies --env.schedule 0 a": "the world of 'a' cannot be used: reset()",
    "--env.phases a=own_envs:Missing --env.schedule 0 a": "'a', own_envs:Missing, cannot",
    '--env.phases a=own_envs:Saves --env.schedule 0 a --env.arguments-json {"b":{}}': "phase 'b'",
    '--env.arguments-json {"a":5}': "must hold an object for each phase, got 5 for 'a'",
    "--env.arguments-json 5": "must be a JSON object such as '{\"after\": {\"size\": 5}}', got '5'",
    '--env.phases a=toy/mirror --env.schedule 0 a --env.arguments-json {"a":{"rom":4}}': (
        "the world of 'a', toy/mirror: unknown setting env.rom"
    ),
    "--env.phases a=own_envs:Distances b=own_envs:Reshaped --env.schedule 0 a": "log_distance",
    "--env.phases a=own_envs:Distances b=own_envs:Placed --env.schedule 0 a": (
        "has the shape () after reset() in 'a' and (2,) after reset() in 'b'"
    ),
    "--env.at never": "--env.at",
    "--env.action-repeat 0": "--env.action-repeat must be from 1 to 100, got 0",
}


@pytest.mark.parametrize("options", BAD)
def test_what_cannot_be_is_refused_before_anything_starts(options, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    folder = tmp_path / "run"
    try:
        code = cli.main([*SWITCH, "--logdir", str(folder), *options.split()])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert BAD[options] in capsys.readouterr().err
    assert not folder.exists()


def test_settings_are_saved_and_read_back(tmp_path):
    settings = config("switch", env=switch(), train={"steps": 40})
    run(settings, tmp_path)
    assert load_agent(tmp_path).config == settings
    saved = json.loads((tmp_path / "config.json").read_text())["env"]
    assert saved["phases"] == ["before=own_envs:Saves", "after=own_envs:Saves"]
