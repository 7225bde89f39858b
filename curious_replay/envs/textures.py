"""Textures of a MuJoCo model for the ray camera, each with smaller and smaller copies.

A far pixel covers many texels; it reads a copy whose texels are about as large as the pixel.
Without this, far grass would be noise.
"""

import mujoco
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Colors = NDArray[np.float32]


class TextureTable:
    """Looks up colours in the textures of a model; `index` is MuJoCo's number of a texture.

    `covered` says how much a pixel covers, as a fraction of the texture's width (of one face, for
    a cube).
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._copies: list[_Copies] = []
        for index in range(model.ntex):
            self._copies.append(_Copies(model, index))

    def reload(self, model: mujoco.MjModel, index: int) -> None:
        """Read a texture again after its bytes in the model changed."""
        self._copies[index] = _Copies(model, index)

    def flat(self, index: int, u: Floats, v: Floats, covered: Floats) -> Colors:
        """Colours `[n, 3]` of a flat texture at (u, v), which repeat with period 1."""
        copies = self._copies[index]
        level = copies.level(covered)
        width, height = copies.width[level], copies.height[level]
        column = np.minimum((u % 1 * width).astype(np.int64), width - 1)
        row = np.minimum((v % 1 * height).astype(np.int64), height - 1)
        return copies.at(copies.start[level] + row * width + column)

    def cube(self, index: int, direction: Floats, covered: Floats) -> Colors:
        """Colours `[n, 3]` of a cube texture seen from its centre along `direction` `[n, 3]`."""
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

    def __init__(self, model: mujoco.MjModel, index: int) -> None:
        pixels = texture_pixels(model, index)
        # A square cube texture is one picture for all six faces.
        self.faces = 6 if is_cube(model, index) and pixels.shape[0] == 6 * pixels.shape[1] else 1
        image = pixels.reshape(self.faces, -1, pixels.shape[1], 3).astype(np.float32) / np.float32(
            255
        )
        images: list[Colors] = [image]
        while min(images[-1].shape[1:3]) > 1:
            images.append(_halve(images[-1]))
        self.width = np.array([image.shape[2] for image in images])
        self.height = np.array([image.shape[1] for image in images])
        self.start = np.cumsum([0] + [image[..., 0].size for image in images[:-1]])
        self._texels: Colors = np.concatenate([image.reshape(-1, 3) for image in images])

    def at(self, texel: NDArray[np.int64]) -> Colors:
        """Colours `[n, 3]` of texels by their number."""
        colors: Colors = self._texels[texel]
        return colors

    def level(self, covered: Floats) -> NDArray[np.int64]:
        """Which copy suits a pixel that covers this fraction of the texture's width."""
        texels = np.clip(covered * self.width[0], 1, 2.0 ** (len(self.width) - 1))
        level: NDArray[np.int64] = np.log2(texels).round().astype(np.int64)
        return level


def is_cube(model: mujoco.MjModel, index: int) -> bool:
    """Whether a texture has six faces (a skybox or a cube map) instead of being flat."""
    return bool(model.tex_type[index] != mujoco.mjtTexture.mjTEXTURE_2D)


def texture_pixels(model: mujoco.MjModel, index: int) -> NDArray[np.uint8]:
    """The bytes of a texture inside the model as a writable view `[height, width, 3]`."""
    height, width, channels = (
        int(sizes[index]) for sizes in (model.tex_height, model.tex_width, model.tex_nchannel)
    )
    if channels != 3:
        raise ValueError(f"texture {index} has {channels} channels, the ray camera reads RGB")
    start = int(model.tex_adr[index])
    pixels: NDArray[np.uint8] = model.tex_data[start : start + height * width * 3]
    return pixels.reshape(height, width, 3)


def _halve(image: Colors) -> Colors:
    """Average 2x2 texels; an odd last row or column is dropped. `[faces, height, width, 3]`."""
    faces, height, width, _ = image.shape
    even = image[:, : height // 2 * 2, : width // 2 * 2]
    halves = even.reshape(faces, height // 2, 2, width // 2, 2, 3)
    averages: Colors = halves.mean((2, 4), dtype=np.float32)
    return averages
