"""Worlds one after the other: which is in play, and that nothing else is different."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit
from helpers.trajectories import from_json, to_json

from curious_replay.envs import Switch, make
from curious_replay.envs.toys.mirror import Mirror
from curious_replay.envs.toys.toy import CountingWorld, read_count
from curious_replay.envs.vectors.vector import RestartingVectorEnv

SCHEDULE = ((0, "before"), (5, "after"), (9, "before"))


def counting(**options):
    """Two worlds that say where they are: `before` has episodes of 3 steps, `after` of 4."""
    worlds = {"before": CountingWorld(length=3), "after": CountingWorld(length=4)}
    return Switch(worlds, options.pop("schedule", SCHEDULE), **options)


def course(env, steps):
    """What is said at each step: phase, frame, step, episode, and how it ended."""
    said = []
    for _ in range(steps):
        observation, _, terminated, truncated, info = env.step(1)
        count = read_count(observation["image"])
        said.append(
            (info["phase"], info["frame"], count.step, count.episode, terminated, truncated)
        )
        if terminated or truncated:
            env.reset()
    return said


def test_the_step_of_the_change_ends_the_episode():
    env = counting()
    env.reset(seed=0)
    assert course(env, 11) == [
        ("before", 1, 1, 0, False, False),
        ("before", 2, 2, 0, False, False),
        ("before", 3, 3, 0, True, False),
        ("before", 4, 1, 1, False, False),
        ("before", 5, 2, 1, False, True),  # cut
        ("after", 6, 1, 0, False, False),
        ("after", 7, 2, 0, False, False),
        ("after", 8, 3, 0, False, False),
        ("after", 9, 4, 0, True, False),  # its own end is that of the phase too
        ("before", 10, 1, 2, False, False),  # goes on where it was
        ("before", 11, 2, 2, False, False),
    ]


def test_a_change_can_wait_for_the_end_of_the_episode():
    env = counting(at="episode")
    env.reset(seed=0)
    assert [(phase, step) for phase, _, step, *_ in course(env, 12)] == [
        *[("before", step) for step in (1, 2, 3, 1, 2, 3)],
        *[("after", step) for step in (1, 2, 3, 4)],
        *[("before", step) for step in (1, 2)],
    ]


def test_frames_are_shared_and_may_be_several_a_step():
    env = counting(schedule=((0, "before"), (16, "after")), parallel=4, frames_per_step=2)
    env.reset(seed=0)
    assert [(phase, frame) for phase, frame, *_ in course(env, 3)] == [
        ("before", 8),
        ("before", 16),
        ("after", 24),
    ]


def test_infos_have_the_phase_and_all_that_the_world_says():
    env = counting()
    _, info = env.reset(seed=0)
    assert info["log_phase"] == 0
    assert info["log_step"] == 0
    env.set_phase("after")
    assert env.step(0)[3]  # as if the schedule said so: the episode is cut
    assert env.reset()[1]["log_phase"] == 1
    env.set_phase(None)
    env.set_frame(4)
    env.reset()
    assert env.step(0)[4]["frame"] == 5


@pytest.mark.parametrize("seed", [0, 7])
def test_each_world_begins_as_it_would_alone_with_the_seed(seed):
    def starts(env, episodes, **options):
        first = env.reset(seed=seed, **options)[0]["image"]
        return [first, *(env.reset()[0]["image"] for _ in range(episodes))]

    worlds = {name: partial(Mirror, phase=name) for name in ("straight", "mirrored")}
    for phase, make_world in worlds.items():
        env = Switch(worlds, ((0, "straight"),), phase=phase)
        np.testing.assert_equal(starts(env, 5), starts(make_world(), 5))
    # And the second does so also when it is its turn later.
    env = Switch(worlds, ((0, "straight"), (1, "mirrored")))
    env.reset(seed=seed)
    env.step(0)
    late = [env.reset()[0]["image"] for _ in range(6)]
    np.testing.assert_equal(late, starts(worlds["mirrored"](), 5))


def test_gymnasium_finds_nothing_wrong():
    check_env(counting(), skip_render_check=True)
    plain = {name: gymnasium.make("MountainCar-v0") for name in ("before", "after")}
    env = Switch(plain, ((0, "before"), (5, "after")))
    check_env(env, skip_render_check=True)
    env.close()


class Limited(CountingWorld):
    """Ends by Gymnasium's time limit only."""

    def __init__(self, limit):
        super().__init__(length=10**6)
        self.limit = limit


def limited():
    worlds = {name: TimeLimit(Limited(n), n) for name, n in (("before", 4), ("after", 3))}
    return Switch(worlds, ((0, "before"), (6, "after"), (11, "before")))


@pytest.mark.parametrize("make_env", [counting, limited])
@pytest.mark.parametrize("moment", range(12))
def test_saved_and_loaded_at_any_step_it_goes_on_as_before(make_env, moment):
    env, other = make_env(), make_env()
    env.reset(seed=3)
    course(env, moment)
    other.set_state(from_json(to_json(env.get_state())))
    assert course(other, 14) == course(env, 14)


def test_it_saves_only_if_all_its_worlds_can():
    assert counting().saveable
    worlds = {"before": CountingWorld(), "after": TimeLimit(CountingWorld(), 5)}
    assert Switch(worlds, SCHEDULE).saveable
    plain = Switch({"a": gymnasium.make("CartPole-v1")}, ((0, "a"),))
    assert not plain.saveable
    with pytest.raises(ValueError, match=r"phase 'a' has no get_state and set_state: .*CartPole"):
        plain.get_state()
    plain.close()
    with pytest.raises(ValueError, match="a world of phase 'before', here are"):
        env = counting()
        env.reset(seed=0)
        Switch({"a": CountingWorld()}, ((0, "a"),)).set_state(env.get_state())


def test_many_in_processes_count_their_frames_together():
    make_env = partial(counting, schedule=((0, "before"), (6, "after")), parallel=2)
    envs = RestartingVectorEnv([make_env] * 2)
    try:
        _, infos = envs.reset(seed=0)
        phases = [list(infos["phase"])]
        for _ in range(5):
            infos = envs.step(np.ones(2, int))[-1]
            phases.append(list(infos["phase"]))
        assert phases == [["before"] * 2] * 4 + [["after"] * 2] * 2
        state = envs.get_state()
        first = [envs.step(np.ones(2, int))[0]["image"] for _ in range(6)]
        envs.set_state(state)
        again = [envs.step(np.ones(2, int))[0]["image"] for _ in range(6)]
        np.testing.assert_equal(first, again)
    finally:
        envs.close()


def world(observation, action):
    env = gymnasium.Env()
    env.observation_space, env.action_space = observation, action
    return env


TWO = spaces.Discrete(2)
LOW, HIGH = np.zeros(3, np.float32), np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ((TWO, TWO), (TWO, spaces.Discrete(3)), r"the action_space of 'a' and 'b' differ: .*3"),
        ((spaces.Box(LOW, HIGH), TWO), (spaces.Box(LOW, HIGH + LOW), TWO), None),
        (
            (spaces.Box(LOW, HIGH), TWO),
            (spaces.Box(LOW, np.array([1, 2, 1], np.float32)), TWO),
            r"observation_space .*number 1 has the bound \(high\) 1 and 2",
        ),
        (
            (spaces.Box(0, 1, (3,)), TWO),
            (spaces.Box(0, 1, (4,)), TWO),
            r"the shape \(3,\) and \(4,\)",
        ),
        (
            (spaces.Box(0, 1, (3,)), TWO),
            (spaces.Box(0, 1, (3,), np.float64), TWO),
            "the dtype float32 and float64",
        ),
        (
            (spaces.Dict(x=TWO, y=TWO), TWO),
            (spaces.Dict(x=TWO), TWO),
            r"the parts \['x', 'y'\] and \['x'\]",
        ),
        (
            (spaces.Dict(x=TWO, y=TWO), TWO),
            (spaces.Dict(x=TWO, y=spaces.Discrete(9)), TWO),
            r"in 'y', Discrete\(2\) and Discrete\(9\)",
        ),
        ((TWO, TWO), (spaces.Discrete(2, start=1), TWO), r"Discrete\(2, start=1\)"),
    ],
)
def test_worlds_of_other_spaces_are_refused_with_the_difference(one, other, difference):
    worlds = {"a": world(*one), "b": world(*other)}
    if difference is None:
        Switch(worlds, ((0, "a"),))
        return
    with pytest.raises(ValueError, match=difference):
        Switch(worlds, ((0, "a"),))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": "once"}, "at must be one of step, episode, got 'once'"),
        ({"frames_per_step": 0}, "frames_per_step must be at least 1"),
        ({"schedule": ((0, "later"),)}, r"unknown phase 'later', this environment has \['before'"),
        ({"phase": "later"}, "unknown phase 'later'"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        counting(**options)


def test_bad_use_is_refused():
    env = counting()
    for call in (lambda: env.step(0), env.render):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call()


def test_it_renders_the_world_in_play_and_closes_all():
    class Closing(CountingWorld):
        closed = False

        def close(self):
            self.closed = True

    worlds = {name: Closing(length=length) for name, length in (("before", 3), ("after", 4))}
    env = Switch(worlds, SCHEDULE)
    assert env.render_mode is None
    env.reset(seed=0)
    assert env.render() is None
    env.close()
    assert all(world.closed for world in worlds.values())
    shown = make("toy/count", render_mode="rgb_array")
    env = Switch({"a": shown}, ((0, "a"),))
    observation, _ = env.reset(seed=0)
    np.testing.assert_array_equal(env.render(), observation["image"])
