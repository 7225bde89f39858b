"""The assay's numbers, read from the compiled model."""

import math
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest
from helpers.assay import STAY, ball_position, make

from curious_replay.envs.arena import WALL_GROUP, ArenaConfig, outdoor_textures


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


def test_an_arena_needs_a_middle():
    with pytest.raises(ValueError, match="odd number of cells"):
        ArenaConfig(side=8)


def test_grass_and_sky_are_those_of_dm_control():
    spec = find_spec("dm_control")
    if spec is None:
        pytest.skip("there is no dm_control to compare with")
    theirs = Path(spec.origin).parent / "locomotion/arenas/assets/outdoor_natural"
    ours = outdoor_textures()
    assert ours.keys() == {"grass.png", "sky.png"}
    assert ours["grass.png"] == (theirs / "OutdoorGrassFloorD.png").read_bytes()
    assert ours["sky.png"] == (theirs / "OutdoorSkybox2048.png").read_bytes()
