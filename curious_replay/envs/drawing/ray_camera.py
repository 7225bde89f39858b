"""A camera that casts one ray per pixel through MuJoCo and needs no OpenGL.

`mj_multiRay` says which geom each pixel sees, how far away and at which angle; the rest is colour:
texture (checker, grass, sky), the model's lights, and one layer of transparency. What MuJoCo draws
but rays cannot hit (sphere sites, tendons) is intersected here. Not drawn: shadows, reflections,
highlights, haze, textures of meshes.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from curious_replay.envs.drawing.ray_scene import (
    VISIBLE_GROUPS,
    Capsule,
    Colors,
    Floats,
    decorations,
    geom_colors,
    geom_textures,
    lighting,
)
from curious_replay.envs.drawing.textures import TextureTable, is_cube

SKY_FROM_WORLD = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]], np.float64)  # skyboxes have y up
GRAZING = 0.02  # least cosine of incidence when judging how much surface a pixel covers
FAR = 1e6  # metres


class Rays(NamedTuple):
    """Rays from one point: `origin` `[3]`, unit `directions` `[n, 3]`."""

    origin: Floats
    directions: Floats


class Hits(NamedTuple):
    """What `n` rays met: geom (-1 for none), metres (inf for none), outward normal, RGBA."""

    geom: NDArray[np.int32]
    distance: Floats
    normal: Floats
    rgba: Colors


class RayCamera:
    """Renders one fixed camera of a model into `[size, size, 3]` bytes."""

    name = "ray"

    def __init__(self, model: mujoco.MjModel, camera: int, size: int) -> None:
        self._model = model
        self._camera = camera
        self._size = size
        half = np.tan(np.radians(model.cam_fovy[camera]) / 2)
        across = ((np.arange(size) + 0.5) / size * 2 - 1) * half
        x, y = np.meshgrid(across, -across)
        rays = np.stack([x, y, -np.ones_like(x)], -1).reshape(-1, 3)
        self._directions = rays / np.linalg.norm(rays, axis=1, keepdims=True)
        self._pixel = float(2 * half / size)  # radians a pixel covers, about
        self._geom_texture = geom_textures(model)
        several = (model.body_geomnum > 1) & (np.arange(model.nbody) > 0)  # the world keeps still
        self._boxes = np.repeat(several, model.body_bvhnum)
        skies = np.flatnonzero(model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX)
        self._sky = int(skies[0]) if len(skies) else None
        # A side of the sky is 2 wide at distance 1.
        covered = {} if self._sky is None else {self._sky: self._pixel / 2}
        self._textures = TextureTable(model, covered)

    def render(self, data: mujoco.MjData) -> NDArray[np.uint8]:
        """Return the picture of the present state of `data`."""
        directions = self._directions @ data.cam_xmat[self._camera].reshape(3, 3).T
        rays = Rays(data.cam_xpos[self._camera], directions)
        colors = geom_colors(self._model)
        drawn = decorations(self._model, data)
        hits = self._cast(data, rays, colors, drawn)
        image = self._shade(data, rays, hits)
        clear = np.flatnonzero(hits.rgba[:, 3] < 1)
        if len(clear):
            behind = self._behind(data, Rays(rays.origin, directions[clear]), colors, drawn)
            alpha = hits.rgba[clear, 3:]
            image[clear] = alpha * image[clear] + (1 - alpha) * behind
        pixels = (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)
        return pixels.reshape(self._size, self._size, 3)

    def reload_texture(self, index: int) -> None:
        """Show a texture whose bytes in the model changed."""
        self._textures.reload(self._model, index)

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    def _behind(
        self, data: mujoco.MjData, rays: Rays, colors: Colors, drawn: list[Capsule]
    ) -> Colors:
        """Return the colours `[n, 3]` that would be seen were all transparent things not there."""
        model = self._model
        geom_rgba, mat_rgba = model.geom_rgba.copy(), model.mat_rgba.copy()
        # mj_multiRay passes through what has no opacity at all.
        model.geom_rgba[colors[:, 3] < 1, 3] = 0
        model.mat_rgba[mat_rgba[:, 3] < 1, 3] = 0
        try:
            solid = [capsule for capsule in drawn if capsule.rgba[3] == 1]
            hits = self._cast(data, rays, colors, solid)
        finally:
            model.geom_rgba[:], model.mat_rgba[:] = geom_rgba, mat_rgba
        return self._shade(data, rays, hits)

    def _cast(self, data: mujoco.MjData, rays: Rays, colors: Colors, drawn: list[Capsule]) -> Hits:
        """Cast rays against geoms, then against what is only drawn."""
        count = len(rays.directions)
        geom = np.empty(count, np.int32)
        distance, normal = np.empty(count), np.empty((count, 3))
        with self._whole_bodies():
            mujoco.mj_multiRay(
                self._model,
                data,
                rays.origin,
                rays.directions.reshape(-1),
                VISIBLE_GROUPS,
                True,
                -1,
                geom,
                distance,
                normal.reshape(-1),
                count,
                FAR,
            )
        met = geom >= 0
        distance[~met] = np.inf
        rgba = np.ones((count, 4), np.float32)
        rgba[met] = colors[geom[met]]
        hits = Hits(geom, distance, normal, rgba)
        for capsule in drawn:
            _draw(hits, rays, capsule)
        return hits

    @contextlib.contextmanager
    def _whole_bodies(self) -> Iterator[None]:
        """Make bounding boxes of bodies with several geoms too large to matter.

        mj_multiRay skips bodies by their boxes, and in some poses loses parts of such bodies
        (MuJoCo 3.17). The boxes also serve collisions, hence they are put back.
        """
        half_sizes = self._model.bvh_aabb[:, 3:]
        before = half_sizes.copy()
        half_sizes[self._boxes] += FAR
        try:
            yield
        finally:
            half_sizes[:] = before

    def _shade(self, data: mujoco.MjData, rays: Rays, hits: Hits) -> Colors:
        """Return colours `[n, 3]`: the sky where nothing was met, else surface times light."""
        image = np.zeros((len(rays.directions), 3), np.float32)
        met = np.isfinite(hits.distance)
        red, green, blue, _ = hits.rgba.T
        solid = np.flatnonzero(met & (red + green + blue > 0))  # black stays black in any light
        if len(solid):
            directions, normal = rays.directions[solid], hits.normal[solid]
            point = rays.origin + directions * hits.distance[solid, None]
            light = lighting(self._model, data, self._camera, point, normal)
            # As in OpenGL, a surface is at most white before its texture colours it.
            image[solid] = np.minimum(hits.rgba[solid, :3] * light, 1)
            facing = np.abs(np.einsum("ij,ij->i", normal, directions))
            covered = hits.distance[solid] * self._pixel / np.maximum(facing, GRAZING)
            geoms = hits.geom[solid]
            for geom in np.flatnonzero(np.bincount(geoms + 1)) - 1:
                if geom >= 0 and self._geom_texture[geom] >= 0:
                    mine = np.flatnonzero(geoms == geom)
                    place = (point[mine] - data.geom_xpos[geom]) @ data.geom_xmat[geom].reshape(
                        3, 3
                    )
                    image[solid[mine]] *= self._texture(int(geom), place, covered[mine])
        void = np.flatnonzero(~met)
        if self._sky is not None and len(void):
            toward = rays.directions[void] @ SKY_FROM_WORLD.T
            covered = np.full(len(void), self._pixel / 2)
            image[void] = self._textures.cube(self._sky, toward, covered)
        return image

    def _texture(self, geom: int, place: Floats, covered: Floats) -> Colors:
        """Return texture colours at points in the geom's own frame.

        A pixel covers `covered` metres.
        """
        model, texture = self._model, int(self._geom_texture[geom])
        size = model.geom_size[geom]
        if is_cube(model, texture):
            direction = place / np.maximum(size, 1e-9)
            return self._textures.cube(texture, direction, covered / (2 * size[0]))
        material = model.geom_matid[geom]
        repeat = model.mat_texrepeat[material] / 2  # MuJoCo repeats every 2 m or half sizes
        bounded = size[:2] > 0
        if model.mat_texuniform[material]:
            shift = np.where(bounded, repeat * size[:2], 0.5)
        else:
            shift = np.where(bounded, repeat, 0.5)
            repeat = np.where(bounded, repeat / np.maximum(size[:2], 1e-9), repeat)
        u, v = place[:, 0] * repeat[0] + shift[0], -place[:, 1] * repeat[1] + shift[1]
        return self._textures.flat(texture, u, v, covered * repeat[0])


def _draw(hits: Hits, rays: Rays, capsule: Capsule) -> None:
    """Put a capsule in front of whatever `hits` holds behind it."""
    axis = capsule.end - capsule.start
    length = float(np.linalg.norm(axis))
    axis = axis / max(length, 1e-12)
    start = capsule.start - rays.origin
    # For each ray, the point of the axis that its line comes closest to.
    slant = rays.directions @ axis
    along = (slant * (rays.directions @ start) - start @ axis) / np.maximum(1 - slant**2, 1e-12)
    center = start + np.clip(along, 0, length)[:, None] * axis
    reach = np.einsum("ij,ij->i", center, rays.directions)
    depth2 = capsule.radius**2 - np.einsum("ij,ij->i", center, center) + reach**2
    distance = reach - np.sqrt(np.maximum(depth2, 0))
    mine = np.flatnonzero((depth2 > 0) & (distance > 0) & (distance < hits.distance))
    hits.geom[mine] = -1
    hits.distance[mine] = distance[mine]
    point = rays.directions[mine] * distance[mine, None]
    hits.normal[mine] = (point - center[mine]) / capsule.radius
    hits.rgba[mine] = capsule.rgba
