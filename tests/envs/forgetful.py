"""Makes a camera with whatever OpenGL there is, and leaves without closing it."""

import mujoco

from curious_replay.envs.drawing.camera import make_camera

model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><camera/><geom size='1'/></worldbody></mujoco>"
)
forgotten = [make_camera("auto", model, 0, 32) for _ in range(2)]
