"""The assay's numbers, read from the compiled model, and its behaviour."""

import math

import mujoco
import numpy as np
import pytest

from curious_replay.envs.arena import MAGENTA, WALL_GROUP, YELLOW, ArenaConfig
from curious_replay.envs.object_interaction import (
    SCENES,
    ObjectInteraction,
    ball_pixels,
    released_reward,
    variant_schedule,
)
from curious_replay.envs.schedule import Schedule

STAY = np.zeros(2, np.float32)
FORWARD = np.array([-1, 0], np.float32)


def make(**options):
    return ObjectInteraction(**{"camera": "ray", "image_size": 32} | options)


def soon(*changes):
    return Schedule(changes)


@pytest.fixture(scope="module")
def model():
    return make().model


def box(model, name):
    """Corners of a box: (x low, x high, y low, y high, height)."""
    geom = model.geom(name)
    (x, y, z), (dx, dy, dz) = geom.pos, geom.size
    return np.array([x - dx, x + dx, y - dy, y + dy, z + dz])


def test_walls_enclose_arena_and_corridor(model):
    walls = [g for g in range(model.ngeom) if model.geom_group[g] == WALL_GROUP]
    assert len(walls) == 23
    assert all(model.geom_type[g] == mujoco.mjtGeom.mjGEOM_BOX for g in walls)
    assert all(model.geom_contype[g] == 1 for g in walls)
    np.testing.assert_allclose(model.geom_pos[walls, 2] + model.geom_size[walls, 2], 8.4)
    # Inner faces: x = -13.3 and 13.3, y = -14.7, and the corridor's far side at 14.7.
    np.testing.assert_allclose(box(model, "wall0")[2], 14.7)
    np.testing.assert_allclose(box(model, "wall1")[3], -14.7)
    np.testing.assert_allclose(box(model, "wall2")[0], 13.3)
    np.testing.assert_allclose(box(model, "wall3")[1], -13.3)
    separator = np.array([box(model, f"wall{index}") for index in range(4, 23)])
    np.testing.assert_allclose(separator[:, 2], 11.9)
    np.testing.assert_allclose(separator[:, 3], 13.3)
    np.testing.assert_allclose(separator[:, 1] - separator[:, 0], 1.4)
    np.testing.assert_allclose(separator[:, 0], np.arange(19) * 1.4 - 13.3)


def test_walls_look_black_and_stand_where_they_collide(model):
    sheets = [model.geom(f"sheet{index}") for index in range(4)]
    for sheet in sheets:
        np.testing.assert_array_equal(sheet.rgba, (0, 0, 0, 1))
        assert sheet.contype == sheet.conaffinity == 0
    positions = np.array([sheet.pos[:2] for sheet in sheets])
    expected = [(13.3, -1.4), (-13.3, -1.4), (0, 11.9), (0, -14.7)]
    np.testing.assert_allclose(positions, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "radius", "mass", "friction", "colors"),
    [
        ("agent", 0.56, 20, 0.5, {(255, 255, 255), (0, 0, 0)}),
        ("magenta", 0.77, 1, 1.0, {(255, 0, 255), (204, 0, 204)}),
        ("yellow", 0.77, 1, 1.0, {(255, 255, 0), (204, 204, 0)}),
    ],
)
def test_bodies_are_spheres_on_a_mast(name, radius, mass, friction, colors):
    model = make(variant="two-balls").model
    shell = model.geom(f"{name}/shell")
    np.testing.assert_allclose(shell.size, radius)
    np.testing.assert_allclose(shell.friction, (friction, 0.02, 0.02))
    assert shell.condim == 4
    assert model.body(f"{name}/torso").mass == pytest.approx(mass)
    head = model.body(f"{name}/head")
    assert head.mass == pytest.approx(1)
    np.testing.assert_allclose(head.inertia, 1)
    np.testing.assert_allclose(head.pos, (0, 0, 0.6))
    np.testing.assert_allclose(model.body(f"{name}/torso").pos, (0, 0, -0.4))
    assert model.joint(f"{name}/steer").damping == 4
    assert model.joint(f"{name}/roll").damping == 2
    np.testing.assert_array_equal(model.joint(f"{name}/steer").axis, (0, 0, -1))
    assert [model.joint(f"{name}/{axis}").damping[0] for axis in "xyz"] == [0, 0, 0]
    texture = model.texture(name)
    texels = model.tex_data[texture.adr[0] :][: 100 * 600 * 3].reshape(-1, 3)
    assert {tuple(map(int, texel)) for texel in np.unique(texels, axis=0)} == colors


def test_motors_push_as_published(model):
    assert model.nu == 2
    assert model.actuator("roll").gear[0] == -50
    assert model.actuator("steer").gear[0] == 30
    np.testing.assert_array_equal(model.actuator_ctrlrange, [(-1, 1), (-1, 1)])


def test_timing_solver_and_light(model):
    assert model.opt.timestep == 0.005
    assert ArenaConfig().substeps == 6
    assert make().action_repeat == 2
    assert model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert model.opt.noslip_iterations == 5
    assert model.nlight == 0
    head = model.vis.headlight
    np.testing.assert_allclose(head.diffuse, 0.6, rtol=1e-6)
    np.testing.assert_allclose(head.ambient, 0.3, rtol=1e-6)
    np.testing.assert_allclose(head.specular, 0)
    assert model.vis.map.znear == pytest.approx(0.0005)


def test_a_frame_lasts_0_03_seconds():
    env = make(action_repeat=1)
    env.reset(seed=0)
    env.step(STAY)
    assert env.data.time == pytest.approx(0.03)


def test_the_eye_looks_ahead_from_1_46_metres():
    env = make(scene=1)
    assert env.model.camera("agent/eye").fovy[0] == 60
    env.reset(seed=0)
    for _ in range(40):
        env.step(STAY)
    eye = env.data.camera("agent/eye")
    assert eye.xpos[2] == pytest.approx(1.46, abs=2e-3)
    forward = -eye.xmat.reshape(3, 3)[:, 2]  # scene 1 faces +y
    assert eye.xpos[1] == pytest.approx(-11.2 + 0.15, abs=1e-3)
    assert forward[0] == pytest.approx(0, abs=1e-6)
    assert math.degrees(math.asin(-forward[2])) == pytest.approx(5.7, abs=0.02)


def test_the_floor_repeats_its_grass_once_per_cell(model):
    repeat = model.mat_texrepeat[model.material("grass").id]
    np.testing.assert_allclose(2 * model.geom("floor").size[:2] / repeat, 1.4)
    texture = model.texture("grass")
    texels = model.tex_data[texture.adr[0] :][: 512 * 512 * 3].reshape(-1, 3)
    np.testing.assert_allclose(texels.mean(0), (98, 104, 22), atol=1)


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


def ball_position(info):
    return info["log_magenta_position"]


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


def drive(env, target, steps):
    """Steer at a point (or, with target None, circle on the spot); return the infos."""
    infos = []
    for _ in range(steps):
        x, y, _ = env.data.geom("agent/shell").xpos
        action = np.array([0, 0.3], np.float32)
        if target is not None:
            heading = -env.data.qpos[env.model.joint("agent/steer").qposadr[0]]
            turn = -env.data.qvel[env.model.joint("agent/steer").dofadr[0]]
            tx, ty, _ = env.data.geom(target).xpos
            error = (math.atan2(ty - y, tx - x) - heading + math.pi) % (2 * math.pi) - math.pi
            steer = np.clip(-(2 * error - 0.5 * turn), -1, 1)
            action = np.array([-0.6 * math.cos(error), steer], np.float32)
        infos.append(env.step(action)[-1])
    return infos


def total(infos, key):
    return sum(info[key] for info in infos)


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


def test_pixels_are_counted_in_light_and_shade_but_not_on_grass():
    image = np.zeros((4, 4, 3), np.uint8)
    image[0] = (35, 37, 8)  # grass by headlight
    image[1, 0] = (61, 0, 61)  # the dark squares of a ball at its edge
    image[1, 1] = (230, 0, 230)
    image[2, 0] = (61, 61, 0)
    image[3] = (200, 220, 255)  # sky
    assert ball_pixels(image, MAGENTA).sum() == 2
    assert ball_pixels(image, YELLOW).sum() == 1


def test_a_state_of_another_camera_or_world_is_refused():
    env = make()
    env.reset(seed=0)
    state = env.get_state()
    with pytest.raises(ValueError, match="saved with camera 'egl', not 'ray'"):
        env.set_state(state | {"camera": "egl"})
    with pytest.raises(ValueError, match="this model needs"):
        make(variant="two-balls").set_state(state)


def test_the_mini_world_is_the_same_but_smaller_and_sooner():
    env = make(scale="mini")
    assert env.clock.schedule.changes == ((0, "empty"), (20_000, "ball"))
    paper = make()
    assert 2 * env.arena.half == pytest.approx(12.6)
    assert 2 * paper.arena.half == pytest.approx(26.6)
    for name in ("agent/shell", "magenta/shell"):
        np.testing.assert_array_equal(env.model.geom(name).size, paper.model.geom(name).size)
    np.testing.assert_array_equal(env.model.body_mass, paper.model.body_mass)
    np.testing.assert_array_equal(env.model.cam_fovy[1], paper.model.cam_fovy[1])
    env.set_phase("ball")
    _, info = env.reset(seed=0)
    np.testing.assert_allclose(ball_position(info)[:2], (3.5, -4.9), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "huge"}, r"scale must be one of \['paper', 'mini'\], got 'huge'"),
        ({"variant": "changed"}, "variant must be one of"),
        ({"scene": 9}, "scene must be one of"),
        ({"scene": 1, "scale": "mini"}, "scale='paper'"),
        ({"reward": "big"}, "reward must be"),
        ({"replay_episode_steps": 0}, "replay_episode_steps must be positive"),
        ({"action_repeat": 0}, "at least 1 frame"),
        ({"image_size": 256}, "image_size must be from 32 to 128"),
        ({"schedule": Schedule(((0, "cat"),))}, "unknown phase 'cat'"),
        ({"arena": ArenaConfig(side=7), "scene": 1}, "scale='paper'"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_an_arena_needs_a_middle():
    with pytest.raises(ValueError, match="odd number of cells"):
        ArenaConfig(side=8)


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
