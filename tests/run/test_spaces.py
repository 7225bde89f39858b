import json
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from helpers.runs import config, lines, run
from own_envs import Dictionary, Distances, Saves

from curious_replay.envs.vectors.vector import RestartingVectorEnv
from curious_replay.run.record.files import read_lines
from curious_replay.run.settings.env_config import UserEnvConfig
from curious_replay.run.worlds.environments import (
    Adapted,
    UnfitEnvironmentError,
    inspect_env,
    make_env,
)
from curious_replay.run.worlds.spaces import Actions


def test_continuous_actions_are_scaled_to_their_bounds():
    box = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))
    actions = Actions.of(box)
    got = actions.to_env(np.array([[0.5, -1], [-7, 7], [1, 0]], np.float32))
    assert got.tolist() == [[1, 0], [-2, 10], [2, 5]]
    assert got.dtype == np.float32
    assert all(box.contains(row) for row in got)
    # facts: .5, -2, 4 become .5, -1, 1 where actions are in [-1, 1] already
    unit = Actions.of(spaces.Box(-1, 1, (1,), np.float32))
    assert unit.to_env(np.array([[0.5], [-2], [4]], np.float32)).ravel().tolist() == [0.5, -1, 1]


def test_discrete_actions_are_indices_from_their_start():
    actions = Actions.of(spaces.Discrete(3, start=-1))
    assert actions.to_env(np.eye(3, dtype=np.float32)).tolist() == [-1, 0, 1]
    rows = actions.random(np.random.default_rng(0), 500)
    assert rows.shape == (500, 3)
    assert (rows.sum(-1) == 1).all()
    assert (rows.sum(0) > 120).all()


def test_random_numbers_fill_the_bounds():
    rows = Actions.of(spaces.Box(-3, 5, (2, 2))).random(np.random.default_rng(0), 500)
    assert rows.shape == (500, 4)
    assert rows.min() < -0.95
    assert rows.max() > 0.95


@pytest.mark.parametrize(
    ("name", "image", "vector"),
    [
        ("own_envs:Gray", (64, 64), 0),
        ("own_envs:Colour", (64, 64), 0),
        ("own_envs:Numbers", None, 3),
        ("own_envs:Dictionary", (64, 64), 5),
        ("CartPole-v1", None, 4),
        ("Pendulum-v1", None, 3),
    ],
)
def test_many_kinds_of_environments_can_be_used(name, image, vector):
    facts = inspect_env(name, UserEnvConfig())
    assert facts.spaces.image == image
    assert facts.spaces.vector == vector


def test_pictures_are_resized_and_numbers_put_in_one_row():
    env = make_env("own_envs:Dictionary", UserEnvConfig(image_size=32))
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert observation["image"].shape == (32, 32, 3)
    assert observation["image"].mean() == pytest.approx(Dictionary.PICTURE.mean(), abs=1)
    assert observation["vector"].tolist() == [1, 2, 3, 4, 5]


def test_actions_are_repeated_and_rewards_summed():
    env = make_env(
        "own_envs:Numbers", UserEnvConfig(action_repeat=3, arguments_json='{"length": 7}')
    )
    env.reset(seed=0)
    steps = [env.step(0)[1:4] for _ in range(3)]
    assert steps == [(3, False, False), (3, False, False), (1, True, False)]


def test_counts_are_summed_over_the_frames_of_a_step():
    """Events in any frame count; places, phases and frames are those of the last one."""
    env = make_env(
        "own_envs:Touches", UserEnvConfig(action_repeat=4, arguments_json='{"length": 6}')
    )
    env.reset(seed=0)
    infos = [env.step(0)[4] for _ in range(2)]
    assert [info["log_touches"] for info in infos] == [4, 2]  # the episode ends at frame 6
    assert [info["log_near"] for info in infos] == [4, 2]
    assert [info["log_bytes"] for info in infos] == [800, 400]
    assert [info["log_share"] for info in infos] == [2, 1]
    assert [info.get("log_event", 0) for info in infos] == [2, 0]  # at frames 1 and 4
    assert [info["log_place"].tolist() for info in infos] == [[4, 0], [6, 0]]
    assert [info["log_phase"] for info in infos] == [3, 3]
    assert [info["frame"] for info in infos] == [40, 60]


@pytest.mark.parametrize("repeat", [1, 4])
def test_logs_of_all_kinds_of_numbers_are_recorded_by_episode(repeat, tmp_path):
    run(config("own_envs:Touches", env={"action_repeat": repeat}, train={"steps": 40}), tmp_path)
    line = read_lines(tmp_path / "episodes.jsonl")[0]
    found = {name: line[f"log/{name}"] for name in ("touches", "near", "bytes", "share")}
    assert found == {"touches": 11, "near": 11, "bytes": 2200, "share": 5.5}  # 10 and the reset


class Fixed(gymnasium.Env):
    def __init__(self, observation, action):
        self.observation_space, self.action_space = observation, action


BOX = spaces.Box(-1, 1, (3,), np.float32)


@pytest.mark.parametrize(
    ("observation", "action", "message"),
    [
        (spaces.Discrete(4), spaces.Discrete(2), r"observation is Discrete\(4\).*FlattenObs"),
        (spaces.Box(0, 255, (3, 64, 64), np.uint8), spaces.Discrete(2), "transpose"),
        (spaces.Box(0, 255, (64, 64, 4), np.uint8), spaces.Discrete(2), "1 or 3 colours"),
        (spaces.Box(0, 1, (64, 64, 3), np.float32), spaces.Discrete(2), "must be uint8"),
        (spaces.Dict(a=BOX, b=spaces.Text(3)), spaces.Discrete(2), "observation 'b' is Text"),
        (
            spaces.Dict({k: spaces.Box(0, 255, (8, 8, 3), np.uint8) for k in "ab"}),
            spaces.Discrete(2),
            "2 images",
        ),
        (spaces.Dict(), spaces.Discrete(2), "empty"),
        (BOX, spaces.MultiDiscrete([2, 2]), "action space is MultiDiscrete"),
        (BOX, spaces.Box(-np.inf, np.inf, (2,)), "no bounds.*RescaleAction"),
        (BOX, spaces.Box(0, 5, (2,), np.int64), "int64 numbers"),
    ],
)
def test_what_cannot_be_used_is_said_plainly(observation, action, message):
    with pytest.raises(UnfitEnvironmentError, match=message):
        Adapted(Fixed(observation, action), 64, 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_envs:Missing", "cannot be used: AttributeError.*Missing"),
        ("nowhere:Env", "cannot be used: ModuleNotFoundError"),
        ("own_envs:NoEnvironment", "makes a NoEnvironment; right would be a gymnasium.Env"),
        ("own_envs:Lies", "reset.. returned an observation of dtype float64; right would be uint8"),
        ("own_envs:Outside", "observation that reset.. returns is not in its observation_space"),
        ("own_envs:NoReward", "returned the reward None"),
        ("own_envs:TextLog", "log_name.*must be numbers"),
        ("own_envs:Reshaped", r"has the shape \(\) after reset.. and \(2,\) after step"),
        ("own_envs:Dated", r"get_state\(\).when is datetime64.*cannot be saved"),
        ("nowhere-v3", "unknown environment 'nowhere-v3'"),
    ],
)
def test_what_fails_at_the_first_try_is_said_with_its_name(name, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run(config(name), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("key", ["phase", "frame"])
@pytest.mark.parametrize(("method", "silent"), [("reset", "step"), ("step", "reset")])
def test_phase_and_frame_are_told_by_reset_and_step_or_by_neither(method, silent, key):
    settings = UserEnvConfig(arguments_json=json.dumps({"method": method, "key": key}))
    message = rf"{method}\(\) gives info\['{key}'\] and {silent}\(\) does not.*right would be both"
    with pytest.raises(UnfitEnvironmentError, match=message):
        inspect_env("own_envs:TellsOnce", settings)


def test_an_environment_with_a_state_is_resumed_exactly(tmp_path):
    assert inspect_env("own_envs:Saves", UserEnvConfig()).can_save
    whole = config("own_envs:Saves", train={"steps": 100})
    run(whole, tmp_path / "whole")
    run(config("own_envs:Saves", train={"steps": 50}), tmp_path / "parts")
    run(whole, tmp_path / "parts", resume=True)
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")


def test_time_limits_of_gymnasium_are_part_of_the_state():
    env = make_env("own_envs:SavesLimited-v0", UserEnvConfig())
    env.reset(seed=0)
    for _ in range(6):
        env.step(0)
    other = make_env("own_envs:SavesLimited-v0", UserEnvConfig())
    other.set_state(env.get_state())
    assert [other.step(0)[3] for _ in range(4)] == [False, False, False, True]
    assert other.unwrapped.count == 10
    assert isinstance(other.unwrapped, Saves)


def test_an_environment_without_a_state_begins_a_new_episode(tmp_path):
    settings = config("CartPole-v1", train={"steps": 60})
    run(config("CartPole-v1", train={"steps": 30}), tmp_path)
    assert run(settings, tmp_path, resume=True).finished


def test_what_runs_do_not_use_of_an_info_may_be_anything(tmp_path):
    """Every step is saved, and every checkpoint can be read."""
    settings = config("own_envs:Talkative", train={"steps": 40, "save_every": 1})
    assert run(settings, tmp_path).finished
    longer = config("own_envs:Talkative", train={"steps": 60, "save_every": 1})
    assert run(longer, tmp_path, resume=True).finished


def test_a_log_that_only_steps_have_is_stored(tmp_path):
    assert [*inspect_env("own_envs:Talkative", UserEnvConfig()).logs] == ["log_count"]
    run(config("own_envs:Talkative", train={"steps": 40}), tmp_path)
    assert read_lines(tmp_path / "episodes.jsonl")[0]["log/count"] == sum(range(10))


def test_a_log_that_begins_whole_keeps_its_fractions(tmp_path):
    assert (
        inspect_env("own_envs:Distances", UserEnvConfig()).logs["log_distance"].dtype == np.float64
    )
    run(config("own_envs:Distances", train={"steps": 40}), tmp_path)
    assert read_lines(tmp_path / "episodes.jsonl")[0]["log/distance"] == 7.5


def test_fractions_are_kept_beside_an_environment_that_begins_with_a_whole_number():
    make = [partial(Distances, length) for length in (3, 5)]
    envs = RestartingVectorEnv(make, processes=False)
    envs.reset(seed=0)
    told = [envs.step(np.zeros(2, np.int64))[4]["log_distance"].tolist() for _ in range(6)]
    assert told == [[0.75, 0.75]] * 3 + [[0, 0.75]] + [[0.75, 0.75], [0.75, 0]]
    envs.close()


@pytest.mark.parametrize(("kind", "phase"), [("Steered", "late"), ("Scheduled", "early")])
def test_a_world_without_a_state_goes_on_at_its_frame_if_it_can(kind, phase, tmp_path):
    run(config(f"own_envs:{kind}", train={"steps": 40}), tmp_path)
    run(config(f"own_envs:{kind}", train={"steps": 55}), tmp_path, resume=True)
    assert read_lines(tmp_path / "episodes.jsonl")[-1]["phase"] == phase
