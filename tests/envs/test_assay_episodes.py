"""Where episodes of the assay end, and how its saved worlds go on."""

import numpy as np
import pytest
from helpers.assay import FORWARD, STAY, ball_position, drive, make, soon


def test_the_world_goes_on_without_end_by_default():
    env = make()
    env.reset(seed=0)
    ends = [env.step(STAY)[2:4] for _ in range(300)]
    assert set(ends) == {(False, False)}


def test_replay_episodes_are_cut_without_touching_the_world():
    env, whole = make(replay_episode_steps=5), make()
    for each in (env, whole):
        each.reset(seed=0)
    for step in range(1, 13):
        observation, _, terminated, truncated, _ = env.step(FORWARD)
        expected = whole.step(FORWARD)[0]
        assert not terminated
        assert truncated == (step % 5 == 0)
        np.testing.assert_array_equal(observation["image"], expected["image"])
        if truncated:
            again, _ = env.reset()
            np.testing.assert_array_equal(again["image"], expected["image"])
    _, info = env.reset()  # in the middle of a cut episode: a true reset
    np.testing.assert_allclose(info["log_agent_position"], (0, -1.4, 1.6), atol=1e-6)


def test_true_episodes_of_a_given_length_begin_anew():
    env = make(episode_frames=6)
    env.reset(seed=0)
    assert [env.step(FORWARD)[3] for _ in range(3)] == [False, False, True]
    _, info = env.reset()
    np.testing.assert_allclose(info["log_agent_position"], (0, -1.4, 1.6), atol=1e-6)
    assert info["frame"] == 6


def test_a_true_end_wins_over_a_cut_at_the_same_step():
    env = make(episode_frames=6, replay_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(FORWARD)[3] for _ in range(3)] == [False, False, True]
    _, info = env.reset()
    np.testing.assert_allclose(info["log_agent_position"], (0, -1.4, 1.6), atol=1e-6)


def test_a_saved_world_goes_on_bit_by_bit():
    options = {"schedule": soon((0, "empty"), (60, "ball"), (200, "empty")), "reward": "released"}
    env, copy = make(**options), make(**options)
    env.reset(seed=5)
    drive(env, "magenta/shell", 50)  # the ball is there
    copy.set_state(env.get_state())
    for _ in range(60):
        action = env.action_space.sample()
        (image, *first), (other, *second) = env.step(action), copy.step(action)
        np.testing.assert_array_equal(image["image"], other["image"])
        assert repr(first) == repr(second)
    assert env.get_state()["physics"].tobytes() == copy.get_state()["physics"].tobytes()
    (image, _), (other, _) = env.reset(), copy.reset()
    np.testing.assert_array_equal(image["image"], other["image"])


def test_a_world_saved_during_a_contact_does_not_count_it_again():
    env, copy = make(scene=4, phase="ball"), make(scene=4, phase="ball")
    env.reset(seed=0)
    saved = 0
    for _ in range(300):
        last = drive(env, "magenta/shell", 1)[0]
        if last["log_contacts"]:
            copy.set_state(env.get_state())
            action = FORWARD
            assert (
                env.step(action)[-1]["log_interactions"]
                == (copy.step(action)[-1]["log_interactions"])
            )
            saved += 1
    assert saved > 5


def test_a_saved_ball_is_solid_in_an_environment_that_had_it_parked():
    env, copy = make(phase="ball"), make()
    env.reset(seed=0)
    copy.reset(seed=0)
    copy.set_state(env.get_state())
    for _ in range(60):
        _, _, _, _, info = copy.step(STAY)
    assert ball_position(info)[2] == pytest.approx(0.77, abs=2e-3)  # it rests on the floor


def test_a_state_of_another_camera_or_world_is_refused():
    env = make()
    env.reset(seed=0)
    state = env.get_state()
    with pytest.raises(ValueError, match="saved with camera 'egl', not 'ray'"):
        env.set_state(state | {"camera": "egl"})
    with pytest.raises(ValueError, match="this model needs"):
        make(variant="two-balls").set_state(state)
