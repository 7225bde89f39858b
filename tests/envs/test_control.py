import os
import sys

import mujoco
import numpy as np
import pytest

from curious_replay.envs.control import EPISODE_FIELDS, ControlSuite, load_task, split_task
from curious_replay.envs.drawing.camera import OPENGL, camera_problems
from curious_replay.envs.tasks import CONTROL

QUICK = ("cartpole_swingup", "finger_turn_hard", "reacher_easy", "walker_walk")

ONE_PER_DOMAIN = tuple({task.partition("_")[0]: task for task in CONTROL}.values())


def make(task="walker_walk", **options):
    return ControlSuite(task=task, **{"camera": "ray", "image_size": 32} | options)


def test_the_paper_lists_twenty_tasks():
    assert len(CONTROL) == 20
    assert split_task("cup_catch") == ("ball_in_cup", "catch")
    assert split_task("finger_turn_easy") == ("finger", "turn_easy")


def test_an_unknown_task_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown task 'walker_fly', choose one of .*walker_walk"):
        make("walker_fly")


def model_arrays(model):
    names = [name for name in dir(mujoco.MjModel) if not name.startswith("_")]
    values = {name: getattr(model, name) for name in names}
    return {name: value.copy() for name, value in values.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("task", CONTROL)
def test_every_task_draws_steps_and_tells_all_that_its_episodes_change(task):
    env = make(task)
    before = model_arrays(env.model)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    rewards = []
    for _ in range(3):
        action = rng.uniform(-1, 1, env.action_space.shape)
        observation, reward, terminated, truncated, info = env.step(action)
        rewards.append(reward)
        assert not terminated
        assert not truncated
    assert np.ptp(observation["image"]) > 50
    assert min(rewards) >= 0
    assert max(rewards) <= 2  # at most 1 a frame
    assert info["phase"] == "constant"
    env.reset()
    after = model_arrays(env.model)
    # What a task writes into its model must be part of the saved state.
    changed = {name for name in before if not np.array_equal(before[name], after[name], True)}
    assert changed <= set(EPISODE_FIELDS)


@pytest.mark.parametrize("task", ONE_PER_DOMAIN)
@pytest.mark.parametrize("name", [name for name in OPENGL if camera_problems()[name] is None])
def test_rays_draw_what_opengl_draws(task, name):
    images = []
    for camera in ("ray", name):
        env = make(task, camera=camera, image_size=64)
        env.reset(seed=2)
        for _ in range(5):
            env.step(np.full(env.action_space.shape, 0.5))
        images.append(env._observe()["image"].astype(int))
        env.close()
    difference = np.abs(images[0] - images[1])
    assert difference.mean() < 4  # of 255
    assert (difference.max(2) > 60).mean() < 0.03  # edges of checkers and limbs


@pytest.mark.parametrize("task", QUICK)
def test_rewards_and_physics_are_those_of_dm_control(task):
    env = make(task, action_repeat=1)
    env.reset(seed=3)
    theirs = load_task(task)
    theirs.reset()
    for name in EPISODE_FIELDS:
        getattr(theirs.physics.model.ptr, name)[:] = getattr(env.model, name)
    with theirs.physics.reset_context():
        theirs.physics.data.qpos[:] = env.data.qpos
        theirs.physics.data.qvel[:] = env.data.qvel
    rng = np.random.default_rng(0)
    for _ in range(20):
        action = rng.uniform(-1, 1, env.action_space.shape)
        _, reward, *_ = env.step(action)
        step = theirs.step(action)
        assert reward == step.reward
        np.testing.assert_array_equal(env.data.qpos, theirs.physics.data.qpos)


def test_actions_fill_the_range_of_every_motor():
    env = make("quadruped_walk", action_repeat=1)
    low, high = env.model.actuator_ctrlrange.T
    assert (high != 1).any()  # otherwise this test says nothing
    env.reset(seed=0)
    env.step(np.ones(12))
    np.testing.assert_allclose(env.data.ctrl, high)
    env.step(-np.ones(12))
    np.testing.assert_allclose(env.data.ctrl, low)


def test_episodes_last_1000_frames():
    env = make("cartpole_balance")
    env.reset(seed=0)
    ends = [env.step(np.zeros(1))[2:4] for _ in range(500)]
    assert ends == [(False, False)] * 499 + [(False, True)]


def test_rewards_of_repeated_frames_add_up():
    single, double = make("cartpole_balance", action_repeat=1), make("cartpole_balance")
    for env in (single, double):
        env.reset(seed=0)
    action = np.array([0.3])
    expected = single.step(action)[1] + single.step(action)[1]
    assert double.step(action)[1] == pytest.approx(expected)


@pytest.mark.parametrize("task", [*QUICK, "finger_spin", "quadruped_run"])
def test_a_saved_task_goes_on_bit_by_bit_in_a_fresh_environment(task):
    env, copy = make(task, episode_frames=40), make(task, episode_frames=40)
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(10):
        env.step(rng.uniform(-1, 1, env.action_space.shape))
    copy.set_state(env.get_state())
    np.testing.assert_array_equal(env._observe()["image"], copy._observe()["image"])
    for _ in range(30):
        action = rng.uniform(-1, 1, env.action_space.shape)
        outcomes = [each.step(action) for each in (env, copy)]
        np.testing.assert_array_equal(outcomes[0][0]["image"], outcomes[1][0]["image"])
        assert repr(outcomes[0][1:]) == repr(outcomes[1][1:])
        if outcomes[0][3]:
            images = [each.reset()[0]["image"] for each in (env, copy)]
            np.testing.assert_array_equal(*images)


def test_a_seed_decides_the_first_state():
    env = make("reacher_easy")
    first = [env.reset(seed=seed)[0]["image"] for seed in (0, 0, 1)]
    assert (first[0] == first[1]).all()
    assert (first[0] != first[2]).any()
    assert (env.reset()[0]["image"] != first[2]).any()


def test_without_a_seed_every_environment_begins_differently():
    assert (
        make("reacher_easy").reset()[0]["image"] != make("reacher_easy").reset()[0]["image"]
    ).any()


def test_loading_a_task_leaves_the_choice_of_renderer_to_the_user(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "egl")
    load_task("pendulum_swingup")
    assert os.environ["MUJOCO_GL"] == "egl"
    monkeypatch.delenv("MUJOCO_GL")
    load_task("pendulum_swingup")
    assert "MUJOCO_GL" not in os.environ
    renderers = [name for name in sys.modules if name.startswith("dm_control._render.")]
    assert renderers == ["dm_control._render.constants"]
