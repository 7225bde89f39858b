"""Background pictures: painted from a seed, or read from a user's folder.

The painted ones are landscapes of sky, hills and ground. Their textures are noise whose amplitude
falls with spatial frequency as it does in photographs, so they are as rich as a photograph at every
scale, and nothing has to be downloaded.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from curious_replay.errors import UsageError
from curious_replay.untrusted import UnreadableError, open_file

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float64]

SUFFIXES = (".jpg", ".jpeg", ".png")
FORMATS = ("JPEG", "PNG")
PIXELS = 40_000_000
"""Of the largest picture: a small file can stand for a picture that fills the memory."""

# Sky overhead, sky at the horizon, far hills, near ground: RGB in [0, 1].
PALETTES = np.array(
    [
        [(0.25, 0.48, 0.80), (0.78, 0.87, 0.94), (0.42, 0.52, 0.62), (0.30, 0.42, 0.16)],  # meadow
        [(0.20, 0.22, 0.42), (0.96, 0.62, 0.36), (0.40, 0.28, 0.38), (0.24, 0.17, 0.14)],  # sunset
        [(0.52, 0.58, 0.64), (0.80, 0.82, 0.83), (0.50, 0.54, 0.56), (0.30, 0.40, 0.42)],  # lake
        [(0.30, 0.56, 0.84), (0.90, 0.90, 0.82), (0.72, 0.54, 0.40), (0.78, 0.62, 0.40)],  # desert
        [(0.36, 0.58, 0.80), (0.86, 0.91, 0.95), (0.66, 0.72, 0.80), (0.88, 0.90, 0.94)],  # snow
        [(0.20, 0.40, 0.52), (0.72, 0.84, 0.78), (0.20, 0.36, 0.28), (0.14, 0.28, 0.10)],  # forest
    ]
)


class Backgrounds(Protocol):
    """Clips of pictures; `first(clip)` opens a clip, `pool()` lists all pictures of all clips."""

    def first(self, clip: int) -> Pixels:
        """Return the first picture of a clip, `[size, size, 3]`."""
        ...

    def pool(self) -> Sequence[Pixels]:
        """Return all pictures."""
        ...


class PaintedBackgrounds:
    """`count` clips of one painted picture each, the same for the same seed."""

    def __init__(self, seed: int, count: int, size: int) -> None:
        if count < 2:
            raise UsageError(f"at least 2 pictures must be painted, got {count}")
        self._seed, self._count, self._size = seed, count, size

    def first(self, clip: int) -> Pixels:
        """Return the picture of a clip."""
        return paint_landscape(np.random.default_rng((self._seed, clip)), self._size, clip)

    def pool(self) -> list[Pixels]:
        """Return all pictures."""
        return [self.first(clip) for clip in range(self._count)]


class FolderBackgrounds:
    """Pictures of a folder: each subfolder is a clip, or else each picture is.

    Names are sorted; `clips` chooses subfolders (or pictures) by name, in that order.
    """

    def __init__(
        self, folder: Path, size: int, clips: Sequence[str] | None = None, limit: int = 500
    ) -> None:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder of images")
        self._size, self._limit = size, limit
        found = {path.name: _pictures(path) for path in sorted(folder.iterdir())}
        found = {name: pictures for name, pictures in found.items() if pictures}
        for name in clips or ():
            if name not in found:
                raise UsageError(f"no images {name!r} in {folder}, it has {sorted(found)}")
        self._clips = [found[name] for name in clips or found]
        if len(self._clips) < 2:
            kinds = ", ".join(SUFFIXES)
            raise UsageError(f"{folder} needs at least 2 images or folders of them ({kinds})")

    def first(self, clip: int) -> Pixels:
        """Return the first picture of a clip."""
        return self._read(self._clips[clip][0])

    def pool(self) -> list[Pixels]:
        """Return all pictures of all clips, thinned out evenly beyond the limit."""
        paths = [path for clip in self._clips for path in clip]
        chosen = np.linspace(0, len(paths) - 1, min(len(paths), self._limit)).round().astype(int)
        return [self._read(paths[index]) for index in chosen]

    def _read(self, path: Path) -> Pixels:
        try:
            with open_file(path) as file, Image.open(file, formats=FORMATS) as image:
                if image.width * image.height > PIXELS:
                    raise ValueError(f"it has more than {PIXELS:,} pixels")
                square = image.convert("RGB").resize(
                    (self._size, self._size), Image.Resampling.BILINEAR
                )
        except Exception as error:  # Pillow has no list of what it raises
            raise UnreadableError(f"{path} cannot be read as a picture: {error}") from error
        return np.asarray(square)


def _pictures(path: Path) -> list[Path]:
    inside = sorted(path.iterdir()) if path.is_dir() else [path]
    return [each for each in inside if each.suffix.lower() in SUFFIXES]


def paint_landscape(rng: np.random.Generator, size: int, palette: int) -> Pixels:
    """Return a landscape `[size, size, 3]`; palettes repeat after the last."""
    zenith, haze, hill, ground = PALETTES[palette % len(PALETTES)] * rng.uniform(0.9, 1.1, 3)
    row = np.linspace(0, 1, size)[:, None, None]
    horizon = rng.uniform(0.45, 0.65)
    image = zenith + (haze - zenith) * np.clip(row / horizon, 0, 1) ** 1.5
    clouds = _cloud_cover(rng, size)[..., None]
    image = image + (0.96 - image) * clouds * np.clip(1.2 - row / horizon, 0, 1)
    layers = rng.integers(3, 5)
    for layer in range(layers):
        nearness = (layer + 1) / layers
        base = horizon - 0.12 + 0.2 * nearness
        ridge = base - rng.uniform(0.04, 0.14) * _ridge(rng, size)
        color = haze + (hill - haze) * nearness
        relief = 0.10 * nearness * _noise(rng, (size, size), 1.2)[..., None]
        image = np.where(row > ridge[None, :, None], np.clip(color + relief * color, 0, 1), image)
    edge = horizon + 0.10 + 0.03 * _ridge(rng, size)
    depth = np.clip((row[..., 0] - edge) / (1 - edge), 0, 1)[..., None]
    texture = _noise(rng, (size, size), 0.9)[..., None] * (0.08 + 0.18 * depth)
    near = ground * (0.8 + 0.4 * depth) * (1 + texture)
    image = np.where(depth > 0, near, image)
    pixels: Pixels = (np.clip(image, 0, 1) * 255).astype(np.uint8)
    return pixels


def _noise(rng: np.random.Generator, shape: tuple[int, int], slope: float) -> Floats:
    """Return noise of unit deviation whose amplitude falls as 1 / frequency ** slope."""
    rows, columns = np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None]
    frequency = np.hypot(rows, columns)
    frequency[0, 0] = np.inf
    white = np.fft.rfft2(rng.standard_normal(shape))
    noise: Floats = np.fft.irfft2(white / frequency**slope, shape)
    noise /= noise.std()
    return noise


def _ridge(rng: np.random.Generator, size: int) -> Floats:
    """Return a mountain line `[size]`: noise along one row."""
    return _noise(rng, (1, 2 * size), 1.6)[0, :size]


def _cloud_cover(rng: np.random.Generator, size: int) -> Floats:
    """Return the opacity of clouds `[size, size]`, wider than high."""
    tall = _noise(rng, (3 * size, size), 1.4)[: 3 * size : 3]
    return np.clip(0.5 * tall + rng.uniform(-0.5, 0.3), 0, 1)
