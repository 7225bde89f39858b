"""How the assay behaves: schedules, driving, contacts, rewards, its errors."""

import math

import numpy as np
import pytest
from helpers.assay import FORWARD, STAY, ball_position, drive, make, soon, total

from curious_replay.envs.arena import MAGENTA, YELLOW
from curious_replay.envs.object_interaction import (
    SCENES,
    ball_pixels,
    released_reward,
    variant_schedule,
)
from curious_replay.envs.schedule import Schedule


def test_the_agent_starts_in_the_middle_and_falls_facing_anywhere():
    env = make()
    headings = []
    for seed in range(20):
        _, info = env.reset(seed=seed)
        np.testing.assert_allclose(info["log_agent_position"], (0, -1.4, 1.6), atol=1e-6)
        headings.append(info["log_agent_heading"])
    assert min(headings) >= 0
    assert max(headings) < 2 * math.pi
    assert np.ptp(headings) > 4


def test_full_speed_ahead_is_6_8_metres_per_second():
    env = make(scene=8, action_repeat=1)
    env.reset(seed=0)
    for action in [STAY] * 30 + [FORWARD] * 100:  # land first
        env.step(action)
    speed = env.data.qvel[env.model.joint("agent/y").dofadr[0]]
    assert speed == pytest.approx(6.8, abs=0.1)


def test_positive_steer_turns_clockwise():
    env = make()
    _, start = env.reset(seed=0)
    for _ in range(5):
        _, _, _, _, info = env.step(np.array([0, 1], np.float32))
    turned = (info["log_agent_heading"] - start["log_agent_heading"] + math.pi) % (2 * math.pi)
    assert turned - math.pi < -0.1


def test_the_ball_comes_at_t0_and_goes_at_t1():
    env = make(
        schedule=soon((0, "empty"), (4, "ball"), (10, "empty")), action_repeat=1, image_size=64
    )
    env.reset(seed=0)
    parked, seen = [], []
    for _ in range(12):
        _, _, _, _, info = env.step(STAY)
        (parked if info["phase"] == "empty" else seen).append((info["frame"], ball_position(info)))
    assert [frame for frame, _ in seen] == [4, 5, 6, 7, 8, 9]
    for _, position in seen:
        np.testing.assert_allclose(position[:2], (3.5, -4.9), atol=1e-3)
    for _, position in parked:
        np.testing.assert_allclose(position, (-8.4, 14.0, 0.97), atol=0.05)


def test_the_ball_drops_20_centimetres_and_rests():
    env = make(variant="unchanging")
    _, info = env.reset(seed=0)
    assert ball_position(info)[2] == pytest.approx(0.77 + 0.2, abs=1e-6)
    for _ in range(60):
        _, _, _, _, info = env.step(STAY)
    np.testing.assert_allclose(ball_position(info), (3.5, -4.9, 0.77), atol=2e-3)


def test_images_differ_from_t0_to_t1_and_only_then():
    changing = make(schedule=soon((0, "empty"), (6, "ball"), (14, "empty")), image_size=64)
    empty = make(schedule=soon((0, "empty"), (10**9, "ball")), image_size=64)
    for env in (changing, empty):
        env.reset(seed=4)
        env.data.qpos[env.model.joint("agent/steer").qposadr[0]] = math.pi / 4  # at the ball
    for _ in range(10):
        (first, *_, info), (second, *_, other) = changing.step(STAY), empty.step(STAY)
        same = (first["image"] == second["image"]).all()
        assert same == (info["phase"] == "empty")
        assert (info["log_magenta_pixels"] > 20) == (info["phase"] == "ball")
        assert other["log_magenta_pixels"] == 0


@pytest.mark.parametrize(
    ("variant", "changes"),
    [
        ("changing", ((0, "empty"), (500_000, "ball"))),
        ("unchanging", ((0, "ball"),)),
        ("removal", ((0, "empty"), (500_000, "ball"), (1_500_000, "empty"))),
        ("two-balls", ((0, "yellow"), (500_000, "both"))),
        ("two-balls-reversed", ((0, "ball"), (500_000, "both"))),
    ],
)
def test_variants_follow_the_published_schedules(variant, changes):
    assert variant_schedule(variant).changes == changes
    assert make(variant=variant).clock.schedule.changes == changes


def test_the_published_t0_counts_frames_of_all_parallel_environments():
    env = make(parallel=4)
    env.reset(seed=0)
    env.set_frame(500_000 - 16)
    phases = [env.step(STAY)[-1]["phase"] for _ in range(3)]  # 8 frames of 4 environments a step
    assert phases == ["empty", "ball", "ball"]


def test_the_yellow_ball_is_first_where_asked():
    env = make(variant="two-balls")
    _, info = env.reset(seed=0)
    np.testing.assert_allclose(info["log_yellow_position"][:2], (3.5, 2.1), atol=1e-6)
    np.testing.assert_allclose(info["log_magenta_position"][:2], (-8.4, 14.0), atol=1e-6)
    env.set_phase("both")
    _, _, _, _, info = env.step(STAY)
    np.testing.assert_allclose(info["log_magenta_position"][:2], (3.5, -4.9), atol=1e-3)


def test_evaluation_can_hold_any_phase():
    env = make(phase="ball")
    _, info = env.reset(seed=0)
    assert info["phase"] == "ball"
    np.testing.assert_allclose(ball_position(info)[:2], (3.5, -4.9), atol=1e-6)
    env.set_phase("empty")
    _, info = env.reset()
    assert ball_position(info)[1] == pytest.approx(14.0)
    with pytest.raises(ValueError, match="unknown phase 'yellow'"):
        env.set_phase("yellow")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_driver_that_steers_at_the_ball_touches_it(seed):
    env = make(variant="unchanging")
    env.reset(seed=seed)
    infos = drive(env, "magenta/shell", 400)
    contacts, interactions = total(infos, "log_contacts"), total(infos, "log_interactions")
    assert 5 <= interactions <= contacts
    assert total(infos, "log_magenta_contacts") == contacts
    assert total(infos, "log_magenta_interactions") == interactions


def test_a_driver_that_stays_away_touches_nothing():
    env = make(variant="unchanging")
    env.reset(seed=0)
    infos = drive(env, None, 400)
    for key in ("log_contacts", "log_interactions", "log_wall_contacts"):
        assert total(infos, key) == 0


def test_driving_into_a_wall_counts_wall_contacts_only():
    env = make()
    env.reset(seed=0)
    infos = [env.step(FORWARD)[-1] for _ in range(150)]
    assert total(infos, "log_wall_contacts") > 20
    assert total(infos, "log_contacts") == 0


def test_pushing_is_one_interaction_with_many_contacts():
    env = make(scene=4, phase="ball")  # 4.2 m behind the ball, facing it and the far wall
    env.reset(seed=0)
    infos = drive(env, "magenta/shell", 300)
    touching = [info["log_contacts"] > 0 for info in infos]
    began = [info["log_interactions"] > 0 for info in infos]
    # A step after one with contact in its last frame cannot begin a new interaction by itself.
    assert sum(touching) > sum(began) > 0
    assert total(infos, "log_contacts") > 2 * total(infos, "log_interactions")


@pytest.mark.parametrize("number", SCENES)
def test_scenes_face_the_ball_from_fixed_places(number):
    places = {
        1: ((0, -11.2), (0, 5.6), 90),
        2: ((0, -11.2), (1.4, 5.6), 90),
        3: ((0, -4.2), (0, 5.6), 90),
        4: ((0, 1.4), (0, 5.6), 90),
        5: ((-7, -8.4), (0, 5.6), 90),
        6: ((-7, -8.4), (0, 5.6), 63.0),
        7: ((-7, -8.4), (0, 5.6), 61.2),
        8: ((0, -11.2), (2.1, 0), 90),
    }
    agent, ball, heading = places[number]
    env = make(scene=number, phase="ball", image_size=64)
    for seed in (0, 1):
        _, info = env.reset(seed=seed)
        np.testing.assert_allclose(info["log_agent_position"][:2], agent, atol=1e-6)
        np.testing.assert_allclose(ball_position(info)[:2], ball, atol=1e-6)
        assert math.degrees(info["log_agent_heading"]) == pytest.approx(heading, abs=1e-6)
        assert info["log_magenta_pixels"] > 0


@pytest.mark.parametrize("number", SCENES)
def test_scenes_of_a_small_arena_are_those_of_the_large_one_drawn_together(number):
    large, small = (make(scene=number, phase="ball", scale=scale) for scale in ("paper", "mini"))
    infos = [env.reset(seed=0)[1] for env in (large, small)]
    for body in ("agent", "magenta"):
        places = [info[f"log_{body}_position"][:2] - (0, -1.4) for info in infos]  # from the centre
        np.testing.assert_allclose(places[1], places[0] * 9 / 19, atol=1e-6)
    assert infos[0]["log_agent_heading"] == infos[1]["log_agent_heading"]
    assert infos[1]["log_magenta_pixels"] > infos[0]["log_magenta_pixels"] / 2
    assert not infos[1]["log_contacts"]


def test_there_is_no_reward_unless_the_released_one_is_asked_for():
    rewards = []
    for reward in ("none", "released"):
        env = make(reward=reward)
        env.reset(seed=0)
        rewards.append([env.step(STAY)[1] for _ in range(60)])
    assert set(rewards[0]) == {0.0}
    assert rewards[1][-1] == pytest.approx(0.02)  # two frames at rest


@pytest.mark.parametrize(
    ("acceleration", "reward"),
    [(9.81, 0.01), (50, 0.01), (100, -1.13), (136, -3.28), (200, -9.35), (300, -21.87)],
)
def test_the_released_reward_punishes_jolts(acceleration, reward):
    assert released_reward(acceleration) == pytest.approx(reward, abs=0.012)


def test_pixels_are_counted_in_light_and_shade_but_not_on_grass():
    image = np.zeros((4, 4, 3), np.uint8)
    image[0] = (35, 37, 8)  # grass by headlight
    image[1, 0] = (61, 0, 61)  # the dark squares of a ball at its edge
    image[1, 1] = (230, 0, 230)
    image[2, 0] = (61, 61, 0)
    image[3] = (200, 220, 255)  # sky
    assert ball_pixels(image, MAGENTA).sum() == 2
    assert ball_pixels(image, YELLOW).sum() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "huge"}, r"scale must be one of \['paper', 'mini'\], got 'huge'"),
        ({"variant": "changed"}, "variant must be one of"),
        ({"scene": 9}, "scene must be one of"),
        ({"reward": "big"}, "reward must be"),
        ({"appears": "here"}, "appears must be 'fixed' or 'away', got 'here'"),
        ({"replay_episode_steps": 0}, "replay_episode_steps must be positive"),
        ({"action_repeat": 0}, "at least 1 frame"),
        ({"image_size": 256}, "image_size must be from 32 to 128"),
        ({"schedule": Schedule(((0, "cat"),))}, "unknown phase 'cat'"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("action", "message"),
    [([0, 0, 0], "shape"), ([0, 2], r"\[-1, 1\]"), ([float("nan"), 0], r"\[-1, 1\]")],
)
def test_wrong_actions_are_refused(action, message):
    env = make()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(np.array(action, np.float32))


def test_a_ball_that_appears_on_the_agent_pushes_it_aside():
    env = make(schedule=soon((0, "empty"), (4, "ball")))
    env.reset(seed=0)
    for axis, place in (("x", 3.5), ("y", -4.9), ("z", 0.36)):
        env.data.qpos[env.model.joint(f"agent/{axis}").qposadr[0]] = place
    infos = [env.step(STAY)[-1] for _ in range(60)]
    last = infos[-1]
    apart = np.linalg.norm(last["log_agent_position"] - last["log_magenta_position"])
    assert apart > 0.56 + 0.77 - 0.05
    for position in (last["log_agent_position"], last["log_magenta_position"]):
        assert np.abs(position[:2] - (0, -1.4)).max() < 13.3
    assert total(infos, "log_contacts") > 0


@pytest.mark.parametrize("place", [(3.5, -4.9), (-3.5, -4.9), (3.5, 2.1), (0.3, -1.2), (-5.0, 3.0)])
def test_a_ball_can_appear_out_of_reach(place):
    env = make(schedule=soon((0, "empty"), (4, "ball")), scale="mini", appears="away")
    env.reset(seed=0)
    for axis, value in zip("xyz", (*place, 0.36), strict=True):
        env.data.qpos[env.model.joint(f"agent/{axis}").qposadr[0]] = value
    infos = [env.step(STAY)[-1] for _ in range(30)]
    appeared = infos[1]  # two frames a step
    assert appeared["phase"] == "ball"
    agent, ball = appeared["log_agent_position"], appeared["log_magenta_position"]
    assert np.linalg.norm((agent - ball)[:2]) > 4.9
    np.testing.assert_allclose(np.abs(ball[:2] - (0, -1.4)), (3.5, 3.5), atol=0.01)
    assert total(infos, "log_contacts") == 0


def test_out_of_reach_at_a_reset_is_the_published_place_and_balls_keep_apart():
    env = make(variant="unchanging", appears="away")
    for _ in range(2):
        _, info = env.reset(seed=0)
        np.testing.assert_allclose(ball_position(info)[:2], (3.5, -4.9), atol=1e-3)
        for _ in range(40):  # and also where it was elsewhere before
            env.step(FORWARD)
    env = make(variant="two-balls", phase="both", appears="away")
    _, info = env.reset(seed=0)
    apart = np.linalg.norm(info["log_yellow_position"] - info["log_magenta_position"])
    assert apart > 6.9
