import logging
import multiprocessing
import os
import signal
import time
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from curious_replay.envs import make
from curious_replay.envs.toys.toy import CountingPicture, CountingWorld, read_count
from curious_replay.envs.toys.two_rooms import STAY, TwoRooms
from curious_replay.envs.vectors.pool import Restarts, WorkerError, WorkerPool
from curious_replay.envs.vectors.vector import RestartingVectorEnv, make_vector
from curious_replay.envs.vectors.worker import Failure, Worker

QUICK = Restarts(first_pause=0.0)


def break_down(kind):
    if kind == "raise":
        raise RuntimeError("the gears are worn")
    if kind == "exit":
        os._exit(3)
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1_000)  # hang


class Faulty(CountingWorld):
    """Breaks down at a step, at a reset or when made: once if `once` names a file, else always."""

    def __init__(self, *, kind, step=None, reset=None, start=False, once=None, **kwargs):
        super().__init__(**kwargs)
        self.kind, self.bad_step, self.bad_reset = kind, step, reset
        self.once = once
        self.resets = 0
        if start:
            self.maybe_break()

    def maybe_break(self):
        if self.once is None or not Path(self.once).exists():
            if self.once is not None:
                Path(self.once).touch()
            break_down(self.kind)

    def reset(self, **kwargs):
        if self.resets == self.bad_reset:
            self.maybe_break()
        self.resets += 1
        return super().reset(**kwargs)

    def step(self, action):
        if self._step + 1 == self.bad_step:
            self.maybe_break()
        return super().step(action)


class Slow(CountingWorld):
    def answer_late(self):
        time.sleep(0.5)
        return "late"


class FaultyRooms(TwoRooms):
    """Breaks down at a frame, once."""

    def __init__(self, *, frame, once, **kwargs):
        super().__init__(**kwargs)
        self.bad_frame, self.once = frame, Path(once)

    def step(self, action):
        if self.clock.frame == self.bad_frame and not self.once.exists():
            self.once.touch()
            raise RuntimeError("the door is stuck")
        return super().step(action)


@pytest.fixture
def build(request):
    """Makes vector environments and closes them at the end of the test."""

    def make_and_register(make_envs, **kwargs):
        env = RestartingVectorEnv(make_envs, **{"restarts": QUICK, **kwargs})
        request.addfinalizer(env.close)
        return env

    return make_and_register


both_ways = pytest.mark.parametrize("processes", [True, False], ids=["processes", "local"])


def counts(observations):
    return [read_count(image) for image in observations["image"]]


def zeros(env):
    return np.zeros(env.num_envs, np.int64)


@both_ways
def test_environments_step_together_and_reset_on_the_next_step(build, processes):
    worlds = [partial(CountingWorld, length=2), partial(CountingWorld, length=3)]
    env = build(worlds, processes=processes)
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    observations, infos = env.reset(seed=0)
    assert counts(observations) == [CountingPicture(0, 0, None)] * 2
    assert infos["is_first"].tolist() == [True, True]
    seen = []
    for step in range(5):
        observations, rewards, terminated, truncated, infos = env.step(np.array([step % 3, 1]))
        seen.append(
            [
                (*count, reward, end, first)
                for count, reward, end, first in zip(
                    counts(observations), rewards, terminated, infos["is_first"], strict=True
                )
            ]
        )
        assert not truncated.any()
        assert infos["log_step"].tolist() == [count.step for count in counts(observations)]
    assert [row[0] for row in seen] == [
        (1, 0, 0, 1.0, False, False),
        (2, 0, 1, 2.0, True, False),
        (0, 1, None, 0.0, False, True),  # the action is ignored
        (1, 1, 0, 1.0, False, False),
        (2, 1, 1, 2.0, True, False),
    ]
    assert [row[1][:2] for row in seen] == [(1, 0), (2, 0), (3, 0), (0, 1), (1, 1)]


def test_returned_observations_stay_as_they_are(build):
    env = build([CountingWorld])
    first, _ = env.reset(seed=0)
    second = env.step(zeros(env))[0]
    second["image"][:] = 99
    env.step(zeros(env))
    assert counts(first) == [CountingPicture(0, 0, None)]
    assert counts(env.observations) == [CountingPicture(2, 0, 0)]
    assert (second["image"] == 99).all()


@pytest.mark.parametrize(
    ("kind", "processes"),
    [("raise", True), ("exit", True), ("kill", True), ("hang", True), ("raise", False)],
)
def test_failed_worker_is_restarted_and_its_episode_truncated(
    build, tmp_path, caplog, kind, processes
):
    faulty = partial(Faulty, kind=kind, step=3, once=str(tmp_path / "broken"))
    restarts = Restarts(first_pause=0.0, step_timeout=2.0)
    env = build([CountingWorld, faulty], restarts=restarts, processes=processes)
    env.reset(seed=0)
    env.step(zeros(env))
    before, *_ = env.step(zeros(env))
    with caplog.at_level(logging.WARNING):
        observations, rewards, terminated, truncated, infos = env.step(zeros(env))
    # The other worker goes on; the failed one repeats its last observation and ends.
    assert counts(observations) == [CountingPicture(3, 0, 0), CountingPicture(2, 0, 0)]
    np.testing.assert_array_equal(observations["image"][1], before["image"][1])
    assert (rewards.tolist(), terminated.tolist()) == ([3.0, 0.0], [False, False])
    assert truncated.tolist() == [False, True]
    assert infos["worker_restarted"].tolist() == [False, True]
    assert infos["log_step"].tolist() == [3, 2]
    assert env.restarts.tolist() == [0, 1]
    reason = {
        "raise": "the gears are worn", "exit": "exit code 3", "kill": "exit code -9",
        "hang": "no answer for 2 seconds",
    }[kind]  # fmt: skip
    assert reason in caplog.text
    # The next step opens a new episode, marked as such, and the world goes on from there.
    observations, rewards, terminated, truncated, infos = env.step(zeros(env))
    assert counts(observations) == [CountingPicture(4, 0, 0), CountingPicture(0, 0, None)]
    assert infos["is_first"].tolist() == [False, True]
    assert not (terminated | truncated).any()
    assert not infos["worker_restarted"].any()
    observations, *_ = env.step(zeros(env))
    assert counts(observations) == [CountingPicture(5, 0, 0), CountingPicture(1, 0, 0)]


def test_no_transition_joins_two_episodes_whenever_a_worker_dies(build):
    env = build(
        [partial(CountingWorld, length=7)] * 2, restarts=Restarts(first_pause=0.0, limit=99)
    )
    before, _ = env.reset(seed=0)
    before, ended = counts(before), np.zeros(2, bool)
    random = np.random.default_rng(0)
    for _ in range(120):
        if random.random() < 0.1:
            os.kill(env._pool._workers[random.integers(2)].process.pid, signal.SIGKILL)
        observations, _, terminated, truncated, infos = env.step(zeros(env))
        now = counts(observations)
        for index in range(2):
            assert infos["is_first"][index] == ended[index]
            if ended[index]:
                assert (now[index].step, now[index].action) == (0, None)
            elif infos["worker_restarted"][index]:
                assert now[index] == before[index]
                assert truncated[index]
            else:
                assert now[index][:2] == (before[index].step + 1, before[index].episode)
        before, ended = now, terminated | truncated
    assert (env.restarts > 2).all()


@pytest.mark.parametrize("seed", [0, None])
def test_failure_at_reset_is_mended_within_the_reset(build, tmp_path, seed):
    faulty = partial(Faulty, kind="exit", reset=0, once=str(tmp_path / "broken"))
    env = build([CountingWorld, faulty])
    observations, infos = env.reset(seed=seed)
    assert counts(observations) == [CountingPicture(0, 0, None)] * 2
    assert env.restarts.tolist() == [0, 1]
    assert not infos["worker_restarted"].any()  # no episode was cut


def test_failure_at_an_automatic_reset_is_mended_within_the_step(build, tmp_path):
    faulty = partial(Faulty, kind="raise", reset=1, length=1, once=str(tmp_path / "broken"))
    env = build([faulty])
    env.reset(seed=0)
    assert env.step(zeros(env))[2].tolist() == [True]
    observations, _, terminated, truncated, infos = env.step(zeros(env))
    assert counts(observations) == [CountingPicture(0, 0, None)]
    assert infos["is_first"].tolist() == [True]
    assert not (terminated | truncated).any()


@both_ways
def test_run_stops_with_the_traceback_after_the_limit(build, processes):
    restarts = Restarts(first_pause=0.0, limit=2)
    worlds = [CountingWorld, partial(Faulty, kind="raise", step=1)]
    env = build(worlds, restarts=restarts, processes=processes)
    env.reset(seed=0)
    for _ in range(2):
        assert env.step(zeros(env))[3].tolist() == [False, True]  # truncated
        env.step(zeros(env))  # opens the next episode
    with pytest.raises(
        WorkerError, match=r"(?s)environment 1 failed 3 times.*the gears are worn"
    ) as stop:
        env.step(zeros(env))
    assert "in break_down" in str(stop.value)  # the worker's own traceback
    assert env.closed


def test_failures_are_forgiven_after_enough_steps(build):
    restarts = Restarts(first_pause=0.0, limit=1, forgive_after=2)
    env = build([partial(Faulty, kind="raise", step=3)], restarts=restarts)
    env.reset(seed=0)
    for _ in range(12):  # breaks at every third step of every episode
        env.step(zeros(env))
    assert env.restarts[0] == 3


def test_pause_doubles_up_to_a_longest(monkeypatch):
    pauses = []
    monkeypatch.setattr("curious_replay.envs.vectors.pool.time.sleep", pauses.append)
    restarts = Restarts(first_pause=1.0, longest_pause=5.0, limit=4)
    faulty = partial(Faulty, kind="raise", reset=0)
    context = multiprocessing.get_context("forkserver")
    space = CountingWorld().observation_space
    memory = gymnasium.vector.utils.create_shared_memory(space, ctx=context)
    pool = WorkerPool([Worker(0, faulty, memory, "forkserver")], restarts)
    with pytest.raises(WorkerError, match="failed 5 times"):
        pool.restart(0, Failure("test"), [("reset", {})])
    assert pauses == [1.0, 2.0, 4.0, 5.0]
    pool.close()


def test_restarted_worker_keeps_its_place_in_the_schedule(build, tmp_path):
    faulty = partial(
        FaultyRooms, frame=6, once=tmp_path / "broken", schedule=((0, "empty"), (4, "object")),
        parallel=2, view=None,
    )  # fmt: skip
    env = build([faulty])
    env.reset(seed=0)
    for _ in range(3):
        infos = env.step(zeros(env))[4]
    assert infos["frame"].tolist() == [6]
    infos = env.step(zeros(env))[4]  # breaks down
    assert infos["worker_restarted"].tolist() == [True]
    infos = env.step(zeros(env))[4]
    assert (infos["frame"].tolist(), infos["phase"].tolist()) == ([6], ["object"])
    assert infos["log_object_pixels"][0] > 0
    assert env.step(zeros(env))[4]["frame"].tolist() == [8]


def test_restarted_worker_keeps_the_phase_it_is_held_in(build, tmp_path):
    env = build([partial(FaultyRooms, frame=2, once=tmp_path / "broken", view=None)])
    env.set_phase("object")
    env.reset(seed=0)
    phases = [env.step(zeros(env))[4]["phase"][0] for _ in range(6)]
    assert env.restarts.tolist() == [1]
    assert phases == ["object"] * 6


def test_seed_of_a_restarted_worker_can_be_repeated(build, tmp_path):
    seeds = []
    for run in range(2):
        env = build([partial(Faulty, kind="exit", step=1, once=str(tmp_path / str(run)))])
        env.reset(seed=5)
        env.step(zeros(env))
        env.step(zeros(env))
        seeds.append(env.get_attr("np_random_seed")[0])
    assert seeds[0] == seeds[1] != 5


@both_ways
@pytest.mark.parametrize("steps", [2, 3])  # in the middle of an episode, and right at its end
def test_state_of_all_workers_is_saved_and_restored(build, steps, processes):
    worlds = [partial(CountingWorld, length=3), partial(CountingWorld, length=5)]
    env = build(worlds)
    env.reset(seed=0)
    for _ in range(steps):
        env.step(zeros(env))
    state = env.get_state()
    other = build(worlds, processes=processes)
    other.set_state(state)
    np.testing.assert_array_equal(other.observations["image"], env.observations["image"])
    for _ in range(6):
        expected, got = env.step(zeros(env)), other.step(zeros(other))
        np.testing.assert_array_equal(got[0]["image"], expected[0]["image"])
        for theirs, ours in zip(got[1:4], expected[1:4], strict=True):
            np.testing.assert_array_equal(theirs, ours)
        assert str(got[4]) == str(expected[4])


def test_state_may_be_saved_while_a_restarted_worker_waits(build, tmp_path):
    faulty = partial(Faulty, kind="exit", step=2, once=str(tmp_path / "broken"))
    env = build([faulty])
    env.reset(seed=0)
    env.step(zeros(env))
    env.step(zeros(env))  # breaks down
    other = build([faulty])
    other.set_state(env.get_state())
    observations, *_, infos = other.step(zeros(other))
    assert infos["is_first"].tolist() == [True]
    assert counts(observations)[0].step == 0


def test_state_of_another_number_of_workers_is_refused(build):
    env = build([CountingWorld] * 2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="2 environments, here are 1"):
        build([CountingWorld]).set_state(env.get_state())


@both_ways
def test_methods_and_attributes_reach_all_environments(build, processes):
    env = build([partial(CountingWorld, render_mode="rgb_array")] * 2, processes=processes)
    env.reset(seed=0)
    env.set_attr("length", [7, 8])
    assert env.get_attr("length") == (7, 8)
    env.set_attr("length", 9)
    assert env.get_attr("length") == (9, 9)
    assert [picture.shape for picture in env.render()] == [(64, 64, 3)] * 2
    with pytest.raises(ValueError, match="as many values, got 3"):
        env.set_attr("length", [1, 2, 3])


@both_ways
def test_error_in_a_call_is_raised_and_the_worker_comes_back(build, processes):
    env = build([CountingWorld], processes=processes)
    env.reset(seed=0)
    with pytest.raises(WorkerError, match="no attribute 'colour'"):
        env.get_attr("colour")
    assert env.step(zeros(env))[3].tolist() == [True]
    assert env.step(zeros(env))[4]["is_first"].tolist() == [True]


def test_late_answer_to_a_call_is_not_taken_for_another(build):
    env = build([Slow] * 2)
    env.reset(seed=0)
    env._pool.policy = Restarts(start_timeout=0.1)
    with pytest.raises(WorkerError, match="answer_late: it gave no answer"):
        env.call("answer_late")
    env._pool.policy = QUICK
    assert env.step(zeros(env))[3].tolist() == [True, True]
    assert counts(env.step(zeros(env))[0]) == [CountingPicture(0, 0, None)] * 2


@both_ways
def test_environment_that_cannot_start_is_an_error_at_once(build, processes):
    with pytest.raises(WorkerError, match=r"(?s)its start: .*the gears are worn"):
        build([CountingWorld, partial(Faulty, kind="raise", start=True)], processes=processes)


def test_unequal_environments_are_refused(build):
    with pytest.raises(ValueError, match="environment 1 has other spaces"):
        build([CountingWorld, partial(CountingWorld, image_size=32)])


def test_bad_use_is_refused(build):
    with pytest.raises(ValueError, match="at least one"):
        build([])
    env = build([CountingWorld] * 2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(zeros(env))
    with pytest.raises(ValueError, match="as many seeds"):
        env.reset(seed=[1])
    env.reset(seed=0)
    with pytest.raises(ValueError, match="as many actions, got 3"):
        env.step(np.zeros(3, np.int64))
    with pytest.raises(gymnasium.error.NoAsyncCallError):
        env.step_wait()
    env.step_async(zeros(env))
    with pytest.raises(gymnasium.error.AlreadyPendingCallError):
        env.step(zeros(env))
    env.step_wait()
    env.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        env.reset()


def test_interrupt_from_the_terminal_is_left_to_the_main_process(build):
    env = build([CountingWorld])
    env.reset(seed=0)
    os.kill(env._pool._workers[0].process.pid, signal.SIGINT)
    assert counts(env.step(zeros(env))[0]) == [CountingPicture(1, 0, 0)]
    assert env.restarts.tolist() == [0]


def test_closing_ends_all_processes(build):
    env = build([CountingWorld] * 2)
    env.reset(seed=0)
    env.step_async(zeros(env))
    env.close()
    names = {process.name for process in multiprocessing.active_children()}
    assert not any(name.startswith("environment-") for name in names)


def test_made_by_name_frames_count_together():
    for how in ({"context": "fork"}, {"processes": False}):
        env = make_vector("toy/two-rooms", 3, restarts=QUICK, **how)
        env.reset(seed=0)
        assert env.step(np.full(3, STAY))[4]["frame"].tolist() == [3, 3, 3]
        env.close()
    with pytest.raises(ValueError, match="num_envs"):
        make_vector("toy/count", 0)


def test_parallel_environments_are_those_of_one_process():
    env = make_vector("crafter", 2, deterministic=True, length=20)
    singles = [make("crafter", deterministic=True, length=20) for _ in range(2)]
    observations, _ = env.reset(seed=4)
    expected = [single.reset(seed=4 + index)[0] for index, single in enumerate(singles)]
    for step in range(20):
        for got, single in zip(observations["image"], expected, strict=True):
            np.testing.assert_array_equal(got, single["image"])
        observations, *_ = env.step(np.full(2, step % 17))
        expected = [single.step(step % 17)[0] for single in singles]
    env.close()
