import ctypes.util
import os
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from curious_replay.envs.drawing import camera as camera_module
from curious_replay.envs.drawing.camera import camera_problems, choose_camera, make_camera

ROOM = """
<mujoco>
  <visual><headlight ambient="0.5 0.5 0.5" diffuse="0.5 0.5 0.5" specular="0 0 0"/></visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0 0 1" rgb2="0 0 1"
             width="32" height="32"/>
    <texture name="check" type="2d" builtin="checker" rgb1="1 1 1" rgb2="0 0 0"
             width="64" height="64"/>
    <material name="check" texture="check" texrepeat="1 1" texuniform="true"/>
    <texture name="dice" type="cube" builtin="checker" rgb1="1 1 0" rgb2="0 1 0"
             width="64" height="64"/>
    <material name="dice" texture="dice"/>
    <material name="glass" rgba="1 0 0 0.5"/>
  </asset>
  <worldbody>
    <light pos="0 0 6" dir="0 0 -1" diffuse="0.3 0.3 0.3" specular="0 0 0"/>
    <camera name="view" pos="0 -6 3" xyaxes="1 0 0 0 0.447 0.894" fovy="50"/>
    <geom name="floor" type="plane" size="2 2 1" material="check"/>
    <geom name="dice" type="ellipsoid" size="0.8 0.8 0.8" pos="-1 0 1" material="dice"/>
    <geom name="box" type="box" size="0.4 0.4 0.4" pos="1 0.5 0.6" rgba="1 0 0 1"/>
    <geom name="pane" type="box" size="0.3 0.02 0.3" pos="0.3 -1 1.5" material="glass"/>
    <site name="lamp" pos="1 0 2" size="0.3" rgba="0 1 1 1"/>
    <site name="a" pos="-1 0.5 2.4" size="0.01" group="4"/>
    <body pos="0.4 0.5 2.4"><joint/><geom size="0.05"/><site name="b" size="0.01" group="4"/></body>
  </worldbody>
  <tendon><spatial width="0.06" rgba="1 1 1 1"><site site="a"/><site site="b"/></spatial></tendon>
</mujoco>
"""


def room():
    model = mujoco.MjModel.from_xml_string(ROOM)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def draw(kind, size=64, **options):
    model, data = room()
    camera = make_camera(kind, model, 0, size, **options)
    image = camera.render(data)
    camera.close()
    return image


def working_opengl():
    return [name for name in camera_module.OPENGL if camera_problems()[name] is None]


def without(name):
    """The room with one geom, site or tendon made invisible, seen by rays."""
    model, data = room()
    kind, part = name
    if kind == "geom":
        geom = model.geom(part)
        geom.matid = -1
        model.geom_rgba[geom.id, 3] = 0
    elif kind == "site":
        model.site_rgba[model.site(part).id, 3] = 0
    else:
        model.tendon_rgba[0, 3] = 0
    return make_camera("ray", model, 0, 64).render(data)


@pytest.mark.parametrize(
    ("part", "color"),
    [
        (("geom", "box"), "red"),
        (("geom", "dice"), "green"),
        (("site", "lamp"), "cyan"),
        (("tendon", "string"), "white"),
        (("geom", "pane"), "reddish"),
    ],
)
def test_rays_show_each_part_in_its_colour(part, color):
    whole = draw("ray").astype(int)
    pixels = whole[(whole != without(part)).any(2)]
    assert len(pixels) > 10
    red, green, blue = pixels.mean(0)
    assert {
        "red": red > 100 and green + blue < 5,
        "green": green > 100 and blue < 5,  # yellow and green squares
        "cyan": min(green, blue) > 100 and red < 5,
        "white": min(red, green, blue) > 100,
        "reddish": red > 50 + max(green, blue),
    }[color]


def test_rays_see_the_sky_and_both_squares_of_the_floor():
    image = draw("ray")
    assert (image[0] == (0, 0, 255)).all()
    row = image[40, 8:56]  # across four squares in the foreground
    assert ((row == 0).all(1) | (row > 150).all(1)).all()
    assert np.count_nonzero(np.diff(row[:, 0].astype(int))) >= 3


def test_glass_shows_what_is_behind_through_both_of_its_sides():
    clear = without(("geom", "pane")).astype(float)
    image = draw("ray").astype(float)
    pane = (image != clear).any(2)
    # Red glass adds no green and no blue, and each of its two sides lets half of it through.
    np.testing.assert_allclose(image[pane][:, 1:], clear[pane][:, 1:] / 4, atol=1)


def test_light_falls_off_with_the_angle():
    image = draw("ray").astype(int)
    box = (image[..., 0] > 60) & (image[..., 1:].max(2) < 5)
    shades = np.unique(image[box][:, 0])
    assert len(shades) > 2  # faces of one colour, lit differently


def test_no_ray_passes_through_what_it_should_hit():
    """A pose in which mj_multiRay left to itself loses part of a body of two geoms."""
    model = mujoco.MjModel.from_xml_string("""
    <mujoco><worldbody>
      <camera pos="0 -1 0" xyaxes="1 0 0 0 0 1" fovy="60"/>
      <body euler="149 38 83">
        <joint/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.68"/>
        <geom type="sphere" size="0.06"/>
      </body>
    </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    boxes = model.bvh_aabb.copy()
    image = make_camera("ray", model, 0, 32).render(data)
    np.testing.assert_array_equal(model.bvh_aabb, boxes)
    across = ((np.arange(32) + 0.5) / 16 - 1) * np.tan(np.radians(30))
    for row in range(32):
        for column in range(32):
            ray = data.cam_xmat[0].reshape(3, 3) @ (across[column], -across[row], -1.0)
            hit = mujoco.mj_ray(model, data, data.cam_xpos[0], ray, None, True, -1, None) >= 0
            assert (image[row, column].max() > 0) == hit


def test_a_taut_string_is_red():
    string = """
    <mujoco><worldbody>
      <camera pos="0 -2 1" xyaxes="1 0 0 0 0 1"/>
      <site name="a" pos="0 0 1.5" size="0.001"/>
      <body pos="0 0 1"><joint type="slide" axis="0 0 1"/><geom size="0.01"/>
        <site name="b" size="0.001"/></body>
    </worldbody><tendon><spatial limited="true" range="0 0.6" width="0.05">
      <site site="a"/><site site="b"/></spatial></tendon></mujoco>"""
    model = mujoco.MjModel.from_xml_string(string)
    data = mujoco.MjData(model)
    for pulled, taut in ((0.0, False), (-0.2, True)):
        data.qpos[0] = pulled
        mujoco.mj_forward(model, data)
        for name in [*working_opengl(), "ray"]:
            camera = make_camera(name, model, 0, 32)
            middle = camera.render(data)[11, 16]
            camera.close()
            assert middle[0] > 50
            assert (middle[0] > 2 * middle[1]) == taut


# Where the middle of each face of a sky is seen, in the order in which MuJoCo stores the faces.
SKY_FACES = {"+x": 0, "-x": 1, "+z": 2, "-z": 3, "-y": 4, "+y": 5}
LOOK = {  # camera axes (right, up)
    "+x": "0 -1 0 0 0 1",
    "-x": "0 1 0 0 0 1",
    "+y": "1 0 0 0 0 1",
    "-y": "-1 0 0 0 0 1",
    "+z": "1 0 0 0 -1 0",
    "-z": "1 0 0 0 1 0",
}


def paint_faces(model, texture):
    """Give each face of a 16x16x6 texture its own pattern; return the colour of each middle."""
    rng = np.random.default_rng(0)
    faces = rng.integers(0, 256, (6, 4, 4, 3)).astype(np.uint8)
    faces[:, 1:3, 1:3] = faces[:, 1:2, 1:2]
    start = model.tex_adr[texture]
    model.tex_data[start : start + 16 * 16 * 18] = faces.repeat(4, 1).repeat(4, 2).ravel()
    return faces[:, 1, 1].astype(int)


@pytest.mark.parametrize("direction", LOOK)
def test_each_side_of_the_sky_is_where_opengl_shows_it(direction):
    model = mujoco.MjModel.from_xml_string(f"""
    <mujoco><asset><texture type="skybox" builtin="flat" width="16" height="16"/></asset>
    <worldbody><camera xyaxes="{LOOK[direction]}" fovy="80"/></worldbody></mujoco>""")
    data = mujoco.MjData(model)
    middles = paint_faces(model, 0)
    mujoco.mj_forward(model, data)
    rays = make_camera("ray", model, 0, 32).render(data).astype(int)
    np.testing.assert_allclose(rays[15:17, 15:17].mean((0, 1)), middles[SKY_FACES[direction]])
    for name in working_opengl():
        camera = make_camera(name, model, 0, 32)
        difference = np.abs(camera.render(data).astype(int) - rays).mean(2)
        camera.close()
        assert np.median(difference) < 12  # OpenGL blends neighbouring texels


@pytest.mark.parametrize("direction", LOOK)
def test_each_side_of_a_textured_ball_is_where_opengl_shows_it(direction):
    away = {"+": -1, "-": 1}[direction[0]] * 3
    place = " ".join(str(away if axis == direction[1] else 0) for axis in "xyz")
    model = mujoco.MjModel.from_xml_string(f"""
    <mujoco><visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual>
    <asset><texture name="t" type="cube" builtin="flat" width="16" height="16"/>
      <material name="m" texture="t"/></asset>
    <worldbody><camera pos="{place}" xyaxes="{LOOK[direction]}" fovy="45"/>
      <geom type="ellipsoid" size="1 1 1" material="m"/></worldbody></mujoco>""")
    data = mujoco.MjData(model)
    middles = paint_faces(model, 0)
    mujoco.mj_forward(model, data)
    rays = make_camera("ray", model, 0, 32).render(data).astype(int)
    seen = {"+x": 1, "-x": 0, "+y": 3, "-y": 2, "+z": 5, "-z": 4}[direction]
    np.testing.assert_allclose(rays[15:17, 15:17].mean((0, 1)), middles[seen])
    for name in working_opengl():
        camera = make_camera(name, model, 0, 32)
        difference = np.abs(camera.render(data).astype(int) - rays).mean(2)
        camera.close()
        assert np.median(difference) < 12


def test_rays_agree_with_opengl():
    """Both cameras draw the same scene: edges may differ by a pixel, nothing else."""
    rays = draw("ray").astype(int)
    for name in working_opengl():
        difference = np.abs(draw(name).astype(int) - rays).mean(2)
        assert np.median(difference) <= 2
        assert (difference > 40).mean() < 0.08


def test_shadows_need_opengl_and_change_the_picture():
    with pytest.raises(ValueError, match="draws no shadows"):
        draw("ray", shadows=True)
    for name in working_opengl():
        assert (draw(name, shadows=True) != draw(name)).any()


def test_a_texture_can_be_painted_anew():
    for name in [*working_opengl(), "ray"]:
        model, data = room()
        camera = make_camera(name, model, 0, 32)
        before = camera.render(data)
        sky = model.tex_adr[0]
        model.tex_data[sky : sky + 32 * 32 * 6 * 3] = 255
        camera.reload_texture(0)
        after = camera.render(data)
        camera.close()
        assert (before[0] == (0, 0, 255)).all()
        assert (after[0] == 255).all()


@pytest.mark.parametrize("size", [32, 64, 128])
def test_the_image_has_the_size_asked_for(size):
    image = draw("ray", size)
    assert image.shape == (size, size, 3)
    assert image.dtype == np.uint8


def test_wrong_sizes_and_cameras_are_refused():
    with pytest.raises(ValueError, match="from 32 to 128 pixels, got 16"):
        draw("ray", 16)
    with pytest.raises(ValueError, match="unknown camera 'vulkan', choose one of"):
        choose_camera("vulkan")


def test_a_camera_that_does_not_work_is_named_with_the_reason(monkeypatch):
    monkeypatch.setattr(camera_module, "opengl_problem", lambda name: "no such library")
    with pytest.raises(RuntimeError, match=r"'egl' does not work here \(no such library\)"):
        choose_camera("egl")
    assert camera_problems() == {"egl": "no such library", "osmesa": "no such library", "ray": None}


@pytest.mark.parametrize(
    ("broken", "chosen", "said"),
    [
        ((), "egl", "camera: egl\n"),
        (("egl",), "osmesa", "camera: osmesa (egl: broken)\n"),
        (("egl", "osmesa"), "ray", "camera: ray (egl: broken; osmesa: broken)\n"),
    ],
)
def test_auto_takes_the_first_that_works_and_says_so_once(
    monkeypatch, capsys, broken, chosen, said
):
    monkeypatch.setattr(
        camera_module, "opengl_problem", lambda name: "broken" if name in broken else None
    )
    camera_module._first_working.cache_clear()
    try:
        assert [choose_camera("auto") for _ in range(3)] == [chosen] * 3
        assert capsys.readouterr().err == said
    finally:
        camera_module._first_working.cache_clear()


def test_forgetting_to_close_is_no_error_at_exit():
    script = Path(__file__).with_name("forgetful.py")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=60
    )
    assert "Error" not in done.stderr


def test_triton_is_loaded_before_opengl(tmp_path):
    """The other way round, Mesa's LLVM and Triton's crash the process."""
    (tmp_path / "triton.py").write_text("import sys\nOPENGL_WAS_THERE = 'OpenGL' in sys.modules\n")
    code = (
        "import sys; from curious_replay.envs.drawing import camera; camera.opengl_problem('egl');"
        "assert 'triton' in sys.modules; import triton; assert not triton.OPENGL_WAS_THERE"
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    if ctypes.util.find_library("EGL") is None:
        pytest.skip("there is no EGL here")
    subprocess.run([sys.executable, "-c", code], check=True, env=environ)
