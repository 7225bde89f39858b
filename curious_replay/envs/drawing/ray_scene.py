"""What a MuJoCo model looks like, read for the ray camera: colours, lights, sites and tendons."""

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from curious_replay.envs.drawing.textures import is_cube

Floats = NDArray[np.float64]
Colors = NDArray[np.float32]

VISIBLE_GROUPS = np.array([1, 1, 1, 0, 0, 0], np.uint8)  # MuJoCo's default for geoms and sites
DEFAULT_RGBA = np.array([0.5, 0.5, 0.5, 1.0], np.float32)


def geom_colors(model: mujoco.MjModel) -> Colors:
    """Return RGBA `[geoms, 4]`.

    It is the geom's own colour unless that is the default and the geom has a material.
    """
    own: Colors = np.array(model.geom_rgba)
    if model.nmat:
        painted = (model.geom_matid >= 0) & (own == DEFAULT_RGBA).all(1)
        own[painted] = model.mat_rgba[model.geom_matid[painted]]
    solid = model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE
    own[solid, 3] = _both_sides(own[solid, 3])
    return own


def _both_sides(alpha: Colors) -> Colors:
    """Return the opacity of a transparent solid, whose near and far side are both drawn."""
    through: Colors = (1 - alpha) ** 2
    return 1 - through


def geom_textures(model: mujoco.MjModel) -> NDArray[np.int64]:
    """Return the texture that colours each geom, -1 for none; flat textures only on planes."""
    rgb = mujoco.mjtTextureRole.mjTEXROLE_RGB
    found = np.full(model.ngeom, -1, np.int64)
    for geom, material in enumerate(model.geom_matid):
        texture = model.mat_texid[material, rgb] if material >= 0 else -1
        plane = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE
        if texture >= 0 and plane != is_cube(model, texture):
            found[geom] = texture
    return found


def lighting(
    model: mujoco.MjModel, data: mujoco.MjData, camera: int, point: Floats, normal: Floats
) -> Colors:
    """Return light `[n, 3]` at points with these normals: headlight and the model's own lights."""
    head = model.vis.headlight
    light = np.zeros((len(point), 3), np.float32)
    if head.active:
        toward = data.cam_xmat[camera].reshape(3, 3)[:, 2]  # the camera looks along its -z
        facing = np.maximum(normal @ toward, 0).astype(np.float32)
        light += head.ambient + facing[:, None] * head.diffuse
    for index in np.flatnonzero(model.light_active):
        cosine, strength = _lamp(model, data, int(index), point, normal)
        light += strength[:, None] * model.light_ambient[index]
        light += (cosine * strength)[:, None] * model.light_diffuse[index]
    return light


def _lamp(
    model: mujoco.MjModel, data: mujoco.MjData, index: int, point: Floats, normal: Floats
) -> tuple[Colors, Colors]:
    """Return cosine of incidence and strength of one light at each point, `[n]` each.

    The cosine is 0 from behind.
    """
    kind, aim = model.light_type[index], data.light_xdir[index]
    strength = np.ones(len(point))
    if kind == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL:
        cosine = normal @ -aim
    else:
        toward = data.light_xpos[index] - point
        reach = np.sqrt(np.einsum("ij,ij->i", toward, toward))
        toward /= np.maximum(reach, 1e-9)[:, None]
        cosine = np.einsum("ij,ij->i", normal, toward)
        constant, linear, square = model.light_attenuation[index]
        strength /= constant + linear * reach + square * reach**2
        if kind == mujoco.mjtLightType.mjLIGHT_SPOT:
            axial = np.maximum(toward @ -aim, 0)
            inside = axial >= np.cos(np.radians(model.light_cutoff[index]))
            strength *= inside * axial ** model.light_exponent[index]
    return np.maximum(cosine, 0).astype(np.float32), strength.astype(np.float32)


class Capsule(NamedTuple):
    """Drawn from `start` to `end` (metres); a sphere where the two are the same point."""

    start: Floats
    end: Floats
    radius: float
    rgba: Colors


def decorations(model: mujoco.MjModel, data: mujoco.MjData) -> list[Capsule]:
    """Return what is drawn but no ray can hit: sphere sites and tendons."""
    found = []
    for site in range(model.nsite):
        rgba, material = model.site_rgba[site], model.site_matid[site]
        if material >= 0 and (rgba == DEFAULT_RGBA).all():
            rgba = model.mat_rgba[material]
        visible = VISIBLE_GROUPS[model.site_group[site]] and rgba[3] > 0
        if visible and model.site_type[site] == mujoco.mjtGeom.mjGEOM_SPHERE:
            at = data.site_xpos[site]
            color = np.append(rgba[:3], _both_sides(rgba[3:]))
            found.append(Capsule(at, at, float(model.site_size[site, 0]), color))
    path = data.wrap_xpos.reshape(-1, 3)
    for tendon in range(model.ntendon):
        first, points = int(data.ten_wrapadr[tendon]), int(data.ten_wrapnum[tendon])
        radius, rgba = float(model.tendon_width[tendon]), model.tendon_rgba[tendon]
        low, high = model.tendon_range[tendon]
        taut = model.tendon_limited[tendon] and not low < data.ten_length[tendon] < high
        if taut and (rgba == DEFAULT_RGBA).all():
            rgba = np.array(model.vis.rgba.constraint, np.float32)  # MuJoCo paints it red
        if VISIBLE_GROUPS[model.tendon_group[tendon]] and rgba[3] > 0:
            for index in range(first, first + points - 1):
                found.append(Capsule(path[index], path[index + 1], radius, rgba))
    return found
