"""Runs in MiniGrid: resumed exactly, seen as symbols, and at every scale."""

import pytest
from helpers.runs import Killed, config, kill_at_update, lines, run

from curious_replay.run import Choice, preset
from curious_replay.run.record.files import read_lines
from curious_replay.run.settings.grid_config import MiniGridConfig
from curious_replay.run.worlds.environments import inspect_env

CHANGING = {
    "minigrid/key-swap": ((0, "matching"), (60, "swapped")),
    "minigrid/lava": ((0, "walls"), (60, "lava"), (90, "walls")),
    "minigrid/new-object": ((0, "empty"), (60, "object")),
}


@pytest.mark.parametrize("name", ["minigrid/DoorKey-5x5", *CHANGING])
def test_resumed_run_equals_one_never_stopped(name, tmp_path, monkeypatch):
    changes = {"schedule": CHANGING[name], "length": 17} if name in CHANGING else {}
    settings = config(name, env={"num_envs": 2, **changes}, train={"steps": 160})
    run(settings, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at_update(patch, 45)
        run(settings, tmp_path / "killed")
    assert run(settings, tmp_path / "killed", resume=True).finished
    assert lines(tmp_path / "killed") == lines(tmp_path / "whole")
    if name in CHANGING:
        seen = {line["phase"] for line in read_lines(tmp_path / "whole" / "episodes.jsonl")}
        assert seen == {phase for _, phase in CHANGING[name]}


def test_symbols_are_a_vector_for_the_agent():
    facts = inspect_env("minigrid/DoorKey-5x5", MiniGridConfig(observation="symbols"))
    assert (facts.spaces.image, facts.spaces.vector, facts.spaces.actions) == (None, 147, 7)
    assert facts.can_save
    assert not facts.has_phases


@pytest.mark.parametrize("name", ["minigrid/DoorKey-5x5", "minigrid/FourRooms", *CHANGING])
@pytest.mark.parametrize("scale", ["paper", "mini", "debug"])
def test_presets_last_until_after_the_last_change(name, scale):
    settings = preset(Choice(env=name, scale=scale))
    facts = inspect_env(name, settings.env)
    assert facts.spaces.image == ((64, 64) if scale == "paper" else (32, 32))
    if scale != "debug":
        last = max((frame for frame, _ in facts.schedule or ()), default=0)
        assert settings.train.steps > last
