"""Joint limits of the Constrained Control Suite, read from the compiled models."""

import numpy as np
import pytest

from curious_replay.envs.constrained import ConstrainedControl
from curious_replay.envs.control import ControlSuite
from curious_replay.envs.tasks import CONSTRAINED

# Joint: (number in the model, constrained, released); metres or degrees; None is no limit.
PUBLISHED = {
    "cup_catch": {"ball_z": (3, (-0.151, -0.091), None)},
    "cartpole_swingup_sparse": {"hinge_1": (1, (175, 185), None)},
    "cheetah_run": {
        "bthigh": (3, (50, 60), (-30, 60)),
        "fthigh": (6, (-57, -52), (-57, 0.4)),
        "fshin": (7, (-70, -60), (-70, 50)),
        "ffoot": (8, (-28, -26), (-28, 28)),
    },
}
SOON = ((0, "constrained"), (40, "free"))


def make(task, **options):
    return ConstrainedControl(task=task, **{"camera": "ray", "image_size": 32} | options)


def limits(env):
    """(limited, range in metres or degrees) of every published joint."""
    found = {}
    for name, (number, *_) in PUBLISHED[env.task].items():
        joint = env.model.joint(name)
        assert joint.id == number
        unit = 1 if name == "ball_z" else 180 / np.pi
        found[name] = (bool(env.model.jnt_limited[number]), tuple(joint.range * unit))
    return found


def expected(task, column):
    wanted = {name: values[column] for name, values in PUBLISHED[task].items()}
    return {
        name: (True, pytest.approx(bounds)) if bounds else (False, (0, 0))
        for name, bounds in wanted.items()
    }


@pytest.mark.parametrize("task", CONSTRAINED)
def test_limits_are_as_published_before_and_after_release(task):
    env = make(task, schedule=SOON, episode_frames=20)
    env.reset(seed=0)
    assert limits(env) == expected(task, 1)
    for _ in range(20):
        _, _, _, over, info = env.step(np.zeros(env.action_space.shape))
        assert info["phase"] == "constrained"
        if over:
            _, info = env.reset()
    assert info["frame"] == 40
    assert info["phase"] == "free"
    assert limits(env) == expected(task, 2)


@pytest.mark.parametrize("task", CONSTRAINED)
def test_nothing_else_in_the_model_is_changed(task):
    env, stock = make(task), ControlSuite(task=task, camera="ray", image_size=32)
    env.reset(seed=0)
    joints = [number for number, *_ in PUBLISHED[task].values()]
    others = np.setdiff1d(np.arange(env.model.njnt), joints)
    np.testing.assert_array_equal(env.model.jnt_range[others], stock.model.jnt_range[others])
    np.testing.assert_array_equal(env.model.jnt_limited[others], stock.model.jnt_limited[others])
    np.testing.assert_array_equal(env.model.dof_damping, stock.model.dof_damping)
    np.testing.assert_array_equal(env.model.geom_size, stock.model.geom_size)


@pytest.mark.parametrize("task", CONSTRAINED)
def test_released_models_are_the_stock_ones(task):
    env, stock = make(task, phase="free"), ControlSuite(task=task, camera="ray", image_size=32)
    env.reset(seed=0)
    joints = [number for number, *_ in PUBLISHED[task].values()]
    np.testing.assert_array_equal(env.model.jnt_limited[joints], stock.model.jnt_limited[joints])
    np.testing.assert_allclose(env.model.jnt_range[joints], stock.model.jnt_range[joints])


def test_release_waits_for_the_next_episode():
    env = make("cartpole_swingup_sparse", schedule=((0, "constrained"), (10, "free")))
    env.reset(seed=0)
    for _ in range(20):
        _, _, _, _, info = env.step(np.zeros(1))
    assert (info["frame"], info["phase"]) == (40, "constrained")
    _, info = env.reset()
    assert info["phase"] == "free"


def test_the_published_release_is_at_the_501st_episode():
    env = make("cartpole_swingup_sparse")
    env.reset(seed=0)
    env.set_frame(499_000)
    assert env.reset()[1]["phase"] == "constrained"
    env.set_frame(500_000)
    assert env.reset()[1]["phase"] == "free"


def swing(phase):
    """Angles of the pole, in degrees, while the cart is driven to and fro."""
    env = make("cartpole_swingup_sparse", phase=phase)
    env.reset(seed=0)
    angles = []
    for step in range(200):
        env.step(np.array([1.0 if step % 40 < 20 else -1.0]))
        angles.append(np.degrees(env.data.qpos[1]))
    return np.array(angles)


def test_the_pole_hangs_until_it_is_released():
    held, free = swing("constrained"), swing("free")
    assert np.abs(held - 180).max() < 8  # limits are soft
    assert np.abs(free - 180).max() > 20


def test_the_ball_of_the_cup_is_kept_down_until_it_is_released():
    heights = {}
    for phase in ("constrained", "free"):
        env = make("cup_catch", phase=phase)
        env.reset(seed=0)
        assert env.data.qpos[3] >= 0.2  # spawns as in dm_control
        heights[phase] = []
        for step in range(100):
            env.step(np.array([0.0, 1.0 if step % 20 < 10 else -1.0]))
            heights[phase].append(env.data.qpos[3])
    assert min(heights["constrained"][10:]) > -0.17  # limits are soft
    assert max(heights["constrained"][10:]) < -0.07
    assert np.ptp(heights["free"][10:]) > 0.1


def test_images_differ_once_the_joints_do():
    held, free = (make("cheetah_run", phase=phase) for phase in ("constrained", "free"))
    images = [env.reset(seed=0)[0]["image"] for env in (held, free)]
    assert (images[0] != images[1]).any()
    again = make("cheetah_run", phase="constrained").reset(seed=0)[0]["image"]
    np.testing.assert_array_equal(images[0], again)


def test_a_saved_constraint_holds_in_a_fresh_environment():
    env, copy = (make("cheetah_run", schedule=SOON) for _ in range(2))
    env.reset(seed=0)
    env.set_frame(1000)  # free by the clock, constrained until the episode ends
    env.step(np.zeros(6))
    copy.set_state(env.get_state())
    assert limits(copy) == expected("cheetah_run", 1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        action = rng.uniform(-1, 1, 6)
        outcomes = [each.step(action) for each in (env, copy)]
        np.testing.assert_array_equal(outcomes[0][0]["image"], outcomes[1][0]["image"])
        assert repr(outcomes[0][1:]) == repr(outcomes[1][1:])


def test_a_task_without_limits_is_refused():
    with pytest.raises(ValueError, match="no limits are known for 'walker_walk'"):
        make("walker_walk")
