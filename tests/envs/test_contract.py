"""What holds for every registered environment; a new one gets these tests by being registered."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers import trajectories
from helpers.trajectories import fingerprint, make_repeatable

from curious_replay.envs import find, make, names

HERE = Path(__file__).parent
ALL = names()
SIMULATED = [name for name in ALL if "mujoco" in find(name).tags]
CHANGING = [name for name in ALL if "changes" in find(name).tags]


def start_player(*arguments, **environment):
    """The program `trajectories.py` in another process."""
    return subprocess.Popen(
        [sys.executable, trajectories.__file__, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(player):
    output, errors = player.communicate()
    assert player.returncode == 0, errors
    return json.loads(output.splitlines()[-1])


@pytest.fixture(scope="module", autouse=True)
def players():
    """Processes that play all environments while the other tests of this file run."""
    started = {
        # Two that differ in hash seed and in order of play.
        "first": start_player("--save", *ALL, PYTHONHASHSEED="1"),
        "second": start_player("--reverse", *ALL, PYTHONHASHSEED="2"),
        # One that cannot load any OpenGL library.
        "blind": start_player(*SIMULATED, PYTHONPATH=str(HERE / "no_opengl")),
    }
    yield started
    for player in started.values():
        player.kill()
        player.communicate()


@pytest.fixture(scope="module")
def played(players):
    return {name: finish(player) for name, player in players.items()}


def make_quick(name, **kwargs):
    """The environment with a camera that needs no OpenGL context, where it has a camera."""
    return make_repeatable(name, **({"camera": "ray"} if name in SIMULATED else {}), **kwargs)


@pytest.mark.parametrize("name", ALL)
def test_gymnasium_finds_nothing_wrong(name):
    check_env(make_quick(name))


@pytest.mark.parametrize("name", ALL)
def test_interface(name):
    env = make_quick(name, image_size=32)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(env.action_space.sample())
    parameters = inspect.signature(type(env)).parameters.values()
    assert all(each.kind in (each.KEYWORD_ONLY, each.VAR_KEYWORD) for each in parameters)
    with pytest.raises(TypeError, match="imagesize"):
        type(env)(**find(name).kwargs, imagesize=32)
    assert env.observation_space == gymnasium.spaces.Dict(
        image=gymnasium.spaces.Box(0, 255, (32, 32, 3), np.uint8)
    )
    if isinstance(env.action_space, gymnasium.spaces.Box):
        assert (env.action_space.low == -1).all()
        assert (env.action_space.high == 1).all()
    else:
        assert isinstance(env.action_space, gymnasium.spaces.Discrete)
    _, at_reset = env.reset(seed=0)
    infos = [env.step(env.action_space.sample())[4] for _ in range(3)]
    assert all(info.keys() == infos[0].keys() for info in infos)
    assert at_reset.keys() >= infos[0].keys()
    assert isinstance(infos[0]["phase"], str)
    logged = [key for key in infos[0] if key.startswith("log_")]
    for info in (at_reset, *infos):
        for key in logged:
            first, value = np.asarray(infos[0][key]), np.asarray(info[key])
            assert value.dtype.kind in "biuf"
            assert (value.dtype, value.shape) == (first.dtype, first.shape)
    env.close()


@pytest.mark.parametrize("name", CHANGING)
def test_evaluation_can_be_put_into_any_phase(name):
    env = make_quick(name)
    for phase in env.clock.schedule.phases:
        env.set_phase(phase)
        assert env.reset(seed=0)[1]["phase"] == phase
        assert env.step(env.action_space.sample())[4]["phase"] == phase
    with pytest.raises(ValueError, match="unknown phase"):
        env.set_phase("no such phase")
    env.close()


@pytest.mark.parametrize("name", CHANGING)
def test_frames_count_on_over_resets_and_are_shared(name):
    env = make_quick(name, parallel=3)
    assert env.reset(seed=0)[1]["frame"] == 0
    frame = env.step(env.action_space.sample())[4]["frame"]
    assert frame in (3, 6)  # one or two frames a step, of three environments
    assert env.reset()[1]["frame"] == frame
    assert env.reset(seed=0)[1]["frame"] == 0
    env.close()


@pytest.mark.parametrize("name", [name for name in ALL if find(name).mini])
def test_mini_is_made_and_all_changes_come_within_minutes(name):
    env = make_quick(name, scale="mini")
    env.reset(seed=0)
    env.step(env.action_space.sample())
    assert env.clock.schedule.changes[-1][0] <= 80_000
    env.close()


def test_fingerprints_tell_courses_apart():
    """The comparisons below would mean nothing if all courses looked alike."""
    prints = {fingerprint("toy/two-rooms", make("toy/two-rooms", room=n)) for n in (5, 7, 9)}
    assert len(prints) == 3


@pytest.mark.parametrize("name", ALL)
def test_same_seed_and_actions_give_the_same_bytes_in_two_processes(name, played):
    assert played["first"][name]["straight"] == played["second"][name]["straight"]


@pytest.mark.parametrize("name", ALL)
def test_saving_and_loading_half_way_changes_nothing(name, played):
    report = played["first"][name]
    saved = [value for key, value in report.items() if key.startswith("saved at")]
    assert saved == [report["straight"]] * 2


def test_everything_runs_without_opengl(played):
    cameras = {name: report["camera"] for name, report in played["blind"].items()}
    assert cameras == dict.fromkeys(SIMULATED, "ray")
