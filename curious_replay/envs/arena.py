"""The world of the object-interaction assay as a MuJoCo model.

A text map of 1.4 m cells becomes a square arena of grass with black walls, and behind its far wall
a corridor where balls wait unseen until their phase. Agent and balls are the same body: a sphere
that rolls about one horizontal axis and carries a steerable mast. All lengths are metres, masses
kilograms, times seconds. Numbers of the spheres are constants (`AGENT`, `MAGENTA`, `YELLOW`), most
others fields of `ArenaConfig`.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from curious_replay.errors import UsageError

WALL_GROUP = 3  # collision boxes of the walls, drawn by no camera; black sheets are drawn instead


@dataclass(frozen=True)
class Sphere:
    """A rolling sphere: the agent, or a ball nobody drives. Colours are RGB in [0, 1]."""

    radius: float
    mass: float
    friction: float
    colors: tuple[tuple[float, float, float], tuple[float, float, float]]


AGENT = Sphere(0.56, 20.0, 0.5, ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)))
MAGENTA = Sphere(0.77, 1.0, 1.0, ((1.0, 0.0, 1.0), (0.8, 0.0, 0.8)))
YELLOW = Sphere(0.77, 1.0, 1.0, ((1.0, 1.0, 0.0), (0.8, 0.8, 0.0)))


@dataclass(frozen=True)
class ArenaConfig:
    """Sizes of the assay as released; the arena is `side` cells wide."""

    side: int = 19
    cell: float = 1.4
    wall_height: float = 8.4
    physics_step: float = 0.005
    frame: float = 0.03
    spawn_height: float = 1.4
    head_height: float = 0.6  # of the head above the body's root
    torso_drop: float = 0.4  # of the sphere's centre below the head
    steer_damping: float = 4.0
    roll_damping: float = 2.0
    rolling_friction: float = 0.02  # torsional and rolling
    steer_torque: float = 30.0
    roll_torque: float = -50.0  # negative: action -1 rolls toward where the camera looks
    mast_mass: float = 1.0
    mast_inertia: float = 1.0
    camera_up: float = 0.5  # above the head
    camera_forward: float = 0.15  # before the head
    camera_slope: float = 0.1  # tangent of the downward pitch, 5.7 degrees
    camera_fov: float = 60.0  # vertical, degrees

    def __post_init__(self) -> None:
        if self.side < 5 or self.side % 2 == 0:
            raise UsageError(f"side must be an odd number of cells, at least 5, got {self.side}")

    @property
    def substeps(self) -> int:
        """Physics steps in a frame."""
        return round(self.frame / self.physics_step)

    @property
    def half(self) -> float:
        """Half the width of the arena's floor."""
        return self.side * self.cell / 2

    @property
    def center(self) -> tuple[float, float]:
        """Middle of the arena, where the agent starts: the corridor shifts it from the origin."""
        return (0.0, -self.cell)

    @property
    def corridor_y(self) -> float:
        """Middle line of the hidden corridor."""
        return (self.side + 1) / 2 * self.cell

    def parking(self, place: int) -> tuple[float, float]:
        """Return waiting place number 1, 2, ... in the corridor: every second cell of it."""
        return ((2 * place - (self.side + 1) / 2) * self.cell, self.corridor_y)


@functools.cache
def outdoor_textures() -> dict[str, bytes]:
    """Return the grass and sky images of dm_control, by file name.

    They are copies (Apache licence, beside them): not everywhere can dm_control be installed.
    """
    folder = Path(__file__).parent / "outdoor"
    return {name: (folder / name).read_bytes() for name in ("grass.png", "sky.png")}


def build_model(config: ArenaConfig, balls: Mapping[str, Sphere]) -> mujoco.MjModel:
    """Compile the arena with the agent and these balls; parts are named `<body>/<part>`.

    Joints of a body are the slides x, y, z (its root), `steer` and `roll`. Positions are set at
    reset, not here.
    """
    bodies = {"agent": AGENT, **balls}
    cx, cy = config.center
    xml = f"""
<mujoco model="object_interaction">
  <compiler angle="radian"/>
  <option timestep="{config.physics_step}" cone="elliptic"
          noslip_iterations="5" noslip_tolerance="0"/>
  <visual>
    <headlight diffuse=".6 .6 .6" ambient=".3 .3 .3" specular="0 0 0"/>
    <map znear="0.0005"/>
  </visual>
  <asset>
    <texture name="sky" type="skybox" file="sky.png" gridsize="3 4" gridlayout=".U..LFRB.D.."/>
    <texture name="grass" type="2d" file="grass.png"/>
    <material name="grass" texture="grass" texrepeat="{config.side + 4} {config.side + 6}"/>
    {"".join(_checker(name, sphere) for name, sphere in bodies.items())}
  </asset>
  <worldbody>
    <camera name="top" pos="{cx} {cy} 100" fovy="{_fov_from(100, config.half)}"/>
    <geom name="floor" type="plane" material="grass"
          size="{config.half + 2 * config.cell} {config.half + 3 * config.cell} 1"/>
    {_wall_boxes(config)}
    {_wall_sheets(config)}
    {"".join(_rolling_body(name, sphere, config) for name, sphere in bodies.items())}
  </worldbody>
  <actuator>
    <motor name="roll" joint="agent/roll" gear="{config.roll_torque}"
           ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="steer" joint="agent/steer" gear="{config.steer_torque}"
           ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
  <sensor>
    <accelerometer name="acceleration" site="agent/site"/>
  </sensor>
</mujoco>
"""
    return mujoco.MjModel.from_xml_string(xml, outdoor_textures())


class RollingBody:
    """Reads and moves one body of a built arena."""

    def __init__(self, model: mujoco.MjModel, name: str) -> None:
        self.shell = int(model.geom(f"{name}/shell").id)
        joints = [model.joint(f"{name}/{part}") for part in ("x", "y", "z", "steer", "roll")]
        self._qpos = [int(joint.qposadr[0]) for joint in joints]
        self._qvel = [int(joint.dofadr[0]) for joint in joints]

    def put(self, data: mujoco.MjData, x: float, y: float, z: float) -> None:
        """Set the root, at rest."""
        data.qpos[self._qpos[:3]] = x, y, z
        data.qvel[self._qvel] = 0

    def turn(self, data: mujoco.MjData, steer: float) -> None:
        """Set the angle of the head: radians, clockwise from facing +x."""
        data.qpos[self._qpos[3]] = steer

    def set_solid(self, model: mujoco.MjModel, solid: bool) -> None:
        """Set whether anything can touch the sphere."""
        model.geom_contype[self.shell] = model.geom_conaffinity[self.shell] = int(solid)

    def center(self, data: mujoco.MjData) -> NDArray[np.float32]:
        """Return the middle of the sphere, metres `[3]`."""
        return np.array(data.geom_xpos[self.shell], np.float32)

    def heading(self, data: mujoco.MjData) -> float:
        """Return where it faces: radians counterclockwise from +x, in [0, 2 pi)."""
        return float(-data.qpos[self._qpos[3]] % (2 * math.pi))


def _checker(name: str, sphere: Sphere) -> str:
    light, dark = (" ".join(map(str, color)) for color in sphere.colors)
    return f"""
    <texture name="{name}" type="cube" builtin="checker" rgb1="{light}" rgb2="{dark}"
             width="100" height="100"/>
    <material name="{name}" texture="{name}"/>"""


def _wall_boxes(config: ArenaConfig) -> str:
    """Return what bodies bump into: four borders, and one box per cell of the separating wall."""
    cell, height = config.cell / 2, config.wall_height / 2
    side, end = (config.side + 1) * cell, (config.side + 3) * cell
    boxes = [
        (0.0, end, side + cell, cell),
        (0.0, -end, side + cell, cell),
        (side, 0.0, cell, end - cell),
        (-side, 0.0, cell, end - cell),
    ]
    for column in range(config.side):
        x = (2 * column - config.side + 1) * cell
        boxes.append((x, config.center[1] + side, cell, cell))
    return "".join(
        f"""
    <geom name="wall{index}" type="box" group="{WALL_GROUP}" pos="{x} {y} {height}"
          size="{dx} {dy} {height}"/>"""
        for index, (x, y, dx, dy) in enumerate(boxes)
    )


def _wall_sheets(config: ArenaConfig) -> str:
    """Return what cameras see of the walls: four black sheets facing the arena."""
    cx, cy = config.center
    half, height = config.half, config.wall_height / 2
    return "".join(
        f"""
    <geom name="sheet{index}" type="plane" rgba="0 0 0 1" contype="0" conaffinity="0"
          pos="{cx + dx * half} {cy + dy * half} {height}" xyaxes="{dy} {-dx} 0 0 0 1"
          size="{half} {height} 1"/>"""
        for index, (dx, dy) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1)))
    )


def _rolling_body(name: str, sphere: Sphere, config: ArenaConfig) -> str:
    """Return root slides, the steering head with its mast, and the sphere that rolls below it.

    The balls carry the mast too: it makes them heavier and steady, as released.
    """
    mast = f"{config.camera_forward} 0 {config.camera_up}"
    inertia = config.mast_inertia
    camera = f"""
      <camera name="agent/eye" fovy="{config.camera_fov}" pos="{mast}"
              xyaxes="0 -1 0 {config.camera_slope} 0 1"/>
      <site name="agent/site" group="4"/>"""
    return f"""
    <body name="{name}/head" pos="0 0 {config.head_height}">
      <joint name="{name}/x" type="slide" axis="1 0 0"/>
      <joint name="{name}/y" type="slide" axis="0 1 0"/>
      <joint name="{name}/z" type="slide" axis="0 0 1"/>
      <joint name="{name}/steer" type="hinge" axis="0 0 -1" damping="{config.steer_damping}"/>
      <inertial pos="{mast}" mass="{config.mast_mass}" diaginertia="{inertia} {inertia} {inertia}"/>
      {camera if name == "agent" else ""}
      <body name="{name}/torso" pos="0 0 {-config.torso_drop}">
        <joint name="{name}/roll" type="hinge" axis="0 1 0" damping="{config.roll_damping}"/>
        <geom name="{name}/shell" type="ellipsoid" material="{name}" condim="4"
              size="{sphere.radius} {sphere.radius} {sphere.radius}" mass="{sphere.mass}"
              friction="{sphere.friction} {config.rolling_friction} {config.rolling_friction}"/>
      </body>
    </body>"""


def _fov_from(height: float, half: float) -> float:
    """Return the vertical field of view in degrees.

    It shows a square of this half width from above.
    """
    return math.degrees(2 * math.atan(half / height))
