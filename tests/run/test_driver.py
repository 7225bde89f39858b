from functools import partial

import numpy as np
import pytest
import torch
from helpers.fake_agent import FakeAgent, FakeConfig

from curious_replay.envs.toys.toy import CountingWorld, read_count
from curious_replay.envs.toys.two_rooms import TwoRooms
from curious_replay.envs.vectors.pool import Restarts
from curious_replay.envs.vectors.vector import RestartingVectorEnv
from curious_replay.replay import ReplayBuffer
from curious_replay.run.loop.driver import Counters, Driver
from curious_replay.run.settings.env_config import ChangingConfig, SimulatedConfig
from curious_replay.run.settings.grid_config import CountConfig, TwoRoomsConfig
from curious_replay.run.worlds.environments import inspect_env, make_envs


def drive(name, settings, rounds, prefill=0, num_envs=1, envs=None):
    """Some rounds; returns driver, buffer and what was said of episodes."""
    facts = inspect_env(name, settings)
    agent = FakeAgent(FakeConfig(), facts.spaces, 0)
    buffer = ReplayBuffer(1000, 2, num_envs=num_envs)
    episodes = []
    driver = Driver(
        envs or make_envs(name, settings, num_envs), facts, agent, buffer, Counters(),
        episodes.append, seed=3, prefill=prefill, frames_per_step=settings.frames_per_step,
    )  # fmt: skip
    for _ in range(rounds):
        driver.send()
        driver.receive()
    driver.envs.close()
    return driver, buffer, episodes


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("prefill", [0, 1000])
@pytest.mark.parametrize("ending", ["terminated", "truncated"])
def test_steps_hold_what_was_seen_and_what_was_chosen_then(num_envs, prefill, ending):
    settings = CountConfig(length=5, ending=ending, processes=False, image_size=32)
    driver, buffer, _ = drive("toy/count", settings, 20, prefill, num_envs)
    names = ("image", "action", "reward", "is_first", "is_last", "is_terminal", "log_step")
    for env in range(num_envs):
        ids = np.array([i for i in buffer.ids() if i % num_envs == env])
        assert len(ids) == 20
        columns = {name: buffer.read(ids, name) for name in names}
        steps = [{name: columns[name][index] for name in names} for index in range(len(ids))]
        for index, step in enumerate(steps):
            count = read_count(step["image"])
            assert count.step == index % 6  # 5 decisions, 6 observations
            assert count.episode == index // 6
            assert step["reward"] == count.step == step["log_step"]
            assert step["is_first"] == (count.step == 0)
            assert step["is_last"] == (count.step == 5)
            assert step["is_terminal"] == (count.step == 5 and ending == "terminated")
            if step["is_last"]:
                assert not step["action"].any()
            elif index + 1 < len(steps):
                assert step["action"].sum() == 1
                assert read_count(steps[index + 1]["image"]).action == step["action"].argmax()
    assert driver.counters.step == num_envs * (20 - 3)  # three ends, at which nothing is decided
    assert driver.counters.episode == 3 * num_envs


def test_random_prefill_then_the_policy():
    settings = CountConfig(length=50, processes=False, image_size=32)
    _, buffer, _ = drive("toy/count", settings, 40, prefill=20)
    actions = buffer.read(buffer.ids(), "action").argmax(-1)
    assert len(set(actions[:20])) == 3
    other = drive("toy/count", settings, 40, prefill=21)[1]
    assert (other.read(other.ids(), "action").argmax(-1)[:20] == actions[:20]).all()


def test_episodes_are_summed_up():
    settings = CountConfig(length=5, processes=False, image_size=32)
    _, _, episodes = drive("toy/count", settings, 20, num_envs=2)
    assert len(episodes) == 6
    first = episodes[0]
    assert first["return"] == first["log/step"] == 15
    assert first["length"] == 5
    assert first["phase"] == "constant"
    assert [episode["env"] for episode in episodes[:2]] == [0, 1]


def test_frames_are_those_of_all_environments():
    settings = TwoRoomsConfig(length=7, processes=False, image_size=32)
    driver, _, _ = drive("toy/two-rooms", settings, 30, num_envs=4)
    assert driver.counters.frame == driver.counters.step == 4 * (30 - 3)
    settings = SimulatedConfig(processes=False, image_size=32, action_repeat=3, camera="ray")
    driver, buffer, _ = drive("control/cartpole_balance", settings, 5)
    assert (driver.counters.step, driver.counters.frame) == (5, 15)
    actions = buffer.read(buffer.ids(), "action")
    assert actions.shape == (5, 1)
    assert (np.abs(actions) <= 1).all()


def written(buffer, name, env=0):
    """One field of all steps of an environment, oldest first."""
    ids = buffer.ids()
    return buffer.read(ids[ids % buffer.num_envs == env], name).tolist()


@pytest.mark.parametrize("num_envs", [1, 2])
def test_the_last_step_of_an_episode_may_be_short_and_is_stored_with_its_frame(num_envs):
    """Five frames, two of them a step: the last step has one. Environments count together."""
    settings = ChangingConfig(
        processes=False, image_size=32, action_repeat=2, episode_frames=5, camera="ray",
        schedule=((0, "constrained"), (5, "free")),
    )  # fmt: skip
    _, buffer, _ = drive("constrained/cartpole_swingup_sparse", settings, 8, num_envs=num_envs)
    for env in range(num_envs):
        true = [0, 2, 4, 5, 5, 7, 9, 10]
        assert written(buffer, "log_frame", env) == [num_envs * frame for frame in true]
    assert written(buffer, "log_phase") == [0] * 4 + [1] * 4


def test_where_environments_do_not_count_frames_steps_are_counted():
    settings = CountConfig(length=2, processes=False, image_size=32)
    _, buffer, _ = drive("toy/count", settings, 6, num_envs=2)
    assert written(buffer, "log_frame") == written(buffer, "log_frame", 1) == [0, 2, 4, 4, 6, 8]
    assert written(buffer, "log_phase") == [0] * 6


class Leaves(TwoRooms):
    """Fails once, at its third step."""

    failed = False

    def step(self, action):
        if self.clock.frame == 4 and not Leaves.failed:
            Leaves.failed = True
            raise RuntimeError("broken on purpose")
        return super().step(action)


def test_a_restarted_worker_goes_on_with_its_frame_and_phase():
    Leaves.failed = False
    schedule = ((0, "empty"), (8, "object"))
    settings = TwoRoomsConfig(length=50, schedule=schedule, processes=False, image_size=32)
    envs = RestartingVectorEnv(
        [partial(kind, length=50, schedule=schedule, parallel=2, image_size=32)
         for kind in (Leaves, TwoRooms)],
        restarts=Restarts(first_pause=0), processes=False,
    )  # fmt: skip
    driver, buffer, _ = drive("toy/two-rooms", settings, 7, num_envs=2, envs=envs)
    # The step that failed took no frame, and neither did the reset that follows.
    assert written(buffer, "is_first", 0) == [True, False, False, False, True, False, False]
    assert written(buffer, "log_frame", 0) == [0, 2, 4, 4, 4, 6, 8]
    assert written(buffer, "log_frame", 1) == [0, 2, 4, 6, 8, 10, 12]
    assert [driver.phases[i] for i in written(buffer, "log_phase", 0)] == ["empty"] * 6 + ["object"]
    assert [driver.phases[i] for i in written(buffer, "log_phase", 1)][3:5] == ["empty", "object"]


class Breaks(CountingWorld):
    """Fails once, at its third step."""

    failed = False

    def step(self, action):
        if self._step == 2 and not Breaks.failed:
            Breaks.failed = True
            raise RuntimeError("broken on purpose")
        return super().step(action)


def test_a_failed_worker_ends_its_episode():
    Breaks.failed = False
    settings = CountConfig(length=50, processes=False, image_size=64)
    envs = RestartingVectorEnv(
        [Breaks, CountingWorld], restarts=Restarts(first_pause=0), processes=False
    )
    _, buffer, episodes = drive("toy/count", settings, 6, num_envs=2, envs=envs)
    (episode,) = episodes
    assert episode["env"] == 0
    assert episode["worker_restarted"] == 1
    ids = np.arange(0, 12, 2)
    assert buffer.read(ids, "is_last").tolist() == [False, False, False, True, False, False]
    assert buffer.read(ids, "is_first").tolist() == [True, False, False, False, True, False]
    assert not buffer.read(ids, "is_terminal").any()
    assert buffer.read(ids + 1, "reward").tolist() == [0, 1, 2, 3, 4, 5]


def misplaced(tensor):
    """The same numbers, one number after where memory of tensors begins."""
    room = torch.empty(tensor.numel() + 1, dtype=tensor.dtype)
    return room[1:].view(tensor.shape).copy_(tensor)


def test_a_resumed_policy_lies_in_memory_as_one_that_never_stopped():
    """For products of two or three rows round differently where memory begins elsewhere."""
    settings = CountConfig(length=5, processes=False, image_size=32)
    driver, _, _ = drive("toy/count", settings, 3, num_envs=2)
    saved = driver.tensors()
    moved = {n: misplaced(t) if n.startswith("policy.") else t for n, t in saved.items()}
    driver.load_tensors(moved)
    assert driver.policy
    for name, value in driver.policy.items():
        assert torch.equal(value, saved[f"policy.{name}"])
        assert value.data_ptr() % 64 == 0
