"""Textures of a MuJoCo model for the ray camera, each with smaller and smaller copies.

A far pixel covers many texels; it reads a copy whose texels are about as large as the pixel.
Without this, far grass would be noise.
"""

from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Colors = NDArray[np.float32]


class TextureTable:
    """Looks up colours in the textures of a model; `index` is MuJoCo's number of a texture.

    `covered` says how much a pixel covers, as a fraction of the texture's width (of one face, for
    a cube). `least_covered` tells of textures that no pixel will cover less of: their finer copies
    are not kept, and a sky of 800x800x6 texels is large.
    """

    def __init__(
        self, model: mujoco.MjModel, least_covered: Mapping[int, float] | None = None
    ) -> None:
        self._least_covered = least_covered or {}
        self._copies: list[_Copies] = []
        for index in range(model.ntex):
            self._copies.append(_Copies(model, index, self._least_covered.get(index, 0)))

    def reload(self, model: mujoco.MjModel, index: int) -> None:
        """Read a texture again after its bytes in the model changed."""
        self._copies[index] = _Copies(model, index, self._least_covered.get(index, 0))

    def flat(self, index: int, u: Floats, v: Floats, covered: Floats) -> Colors:
        """Return the colours `[n, 3]` of a flat texture at (u, v), which repeat with period 1."""
        copies = self._copies[index]
        level = copies.level(covered)
        width, height = copies.width[level], copies.height[level]
        column = np.minimum((u % 1 * width).astype(np.int64), width - 1)
        row = np.minimum((v % 1 * height).astype(np.int64), height - 1)
        return copies.at(copies.start[level] + row * width + column)

    def cube(self, index: int, direction: Floats, covered: Floats) -> Colors:
        """Return the colours `[n, 3]` of a cube texture seen from its centre.

        One looks along `direction` `[n, 3]`.
        """
        copies = self._copies[index]
        level = copies.level(covered)
        width = copies.width[level]
        x, y, z = direction.T
        axis = np.abs(direction).argmax(1)
        major = np.take_along_axis(direction, axis[:, None], 1)[:, 0]
        face = 2 * axis + (major < 0)  # right, left, up, down, front, back
        reach = np.maximum(np.abs(major), 1e-12)
        across = np.choose(face, (-z, z, x, x, x, -x)) / reach
        down = np.choose(face, (-y, -y, z, -z, -y, -y)) / reach
        column = np.clip(((across + 1) / 2 * width).astype(np.int64), 0, width - 1)
        row = np.clip(((down + 1) / 2 * width).astype(np.int64), 0, width - 1)
        face = face if copies.faces == 6 else 0
        return copies.at(copies.start[level] + (face * width + row) * width + column)


class _Copies:
    """One texture at full size and halved again and again, as one list of texels `[n, 3]`."""

    def __init__(self, model: mujoco.MjModel, index: int, least_covered: float) -> None:
        pixels = texture_pixels(model, index)
        # A square cube texture is one picture for all six faces.
        self.faces = 6 if is_cube(model, index) and pixels.shape[0] == 6 * pixels.shape[1] else 1
        images = [pixels.reshape(self.faces, -1, pixels.shape[1], 3)]
        while min(images[-1].shape[1:3]) > 1:
            images.append(_halve(images[-1]))
        self._full_width = pixels.shape[1]
        self._coarsest = len(images) - 1
        self._finest = int(self._halvings(np.array([least_covered]))[0])
        kept = images[self._finest :]
        self.width = np.array([image.shape[2] for image in kept])
        self.height = np.array([image.shape[1] for image in kept])
        self.start = np.cumsum([0] + [image[..., 0].size for image in kept[:-1]])
        self._texels = np.concatenate([image.reshape(-1, 3) for image in kept])

    def at(self, texel: NDArray[np.int64]) -> Colors:
        """Return the colours `[n, 3]` of texels by their number."""
        return self._texels[texel] * np.float32(1 / 255)

    def level(self, covered: Floats) -> NDArray[np.int64]:
        """Return which kept copy suits pixels that cover these fractions [N] of the width."""
        return np.maximum(self._halvings(covered) - self._finest, 0)

    def _halvings(self, covered: Floats) -> NDArray[np.int64]:
        texels = np.clip(covered * self._full_width, 1, 2.0**self._coarsest)
        halvings: NDArray[np.int64] = np.log2(texels).round().astype(np.int64)
        return halvings


def is_cube(model: mujoco.MjModel, index: int) -> bool:
    """Return whether a texture has six faces (a skybox or a cube map) instead of being flat."""
    return bool(model.tex_type[index] != mujoco.mjtTexture.mjTEXTURE_2D)


def texture_pixels(model: mujoco.MjModel, index: int) -> NDArray[np.uint8]:
    """Return the bytes of a texture inside the model as a writable view `[height, width, 3]`."""
    height, width, channels = (
        int(sizes[index]) for sizes in (model.tex_height, model.tex_width, model.tex_nchannel)
    )
    if channels != 3:
        raise ValueError(f"texture {index} has {channels} channels, the ray camera reads RGB")
    start = int(model.tex_adr[index])
    pixels: NDArray[np.uint8] = model.tex_data[start : start + height * width * 3]
    return pixels.reshape(height, width, 3)


def _halve(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Average 2x2 texels; an odd last row or column is dropped. `[faces, height, width, 3]`."""
    height, width = (size // 2 * 2 for size in image.shape[1:3])
    even = image[:, :height, :width].astype(np.uint16)
    rows = even[:, ::2] + even[:, 1::2]
    return ((rows[:, :, ::2] + rows[:, :, 1::2] + 2) >> 2).astype(np.uint8)
