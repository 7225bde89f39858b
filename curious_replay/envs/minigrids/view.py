"""What the agent of a MiniGrid game sees, drawn from the game's own symbols.

A game describes the cells in view as symbols, uint8 [view, view, 3]: object, colour and state of
each, by column and row, with the agent in the middle of the last row, looking up. A picture is made
of them cell by cell, so it tells what they tell. From `DRAWN` pixels a cell on it is drawn as by
MiniGrid. Its fine lines are lost in smaller ones, where some things look the same and others are
not to be seen, so there a cell has a pattern of four quarters: what a thing is shows in which of
them have its colour. What the agent carries is shown in its place, as it is in the symbols.
"""

from functools import cache
from itertools import product

import numpy as np
from gymnasium import spaces
from minigrid.core.constants import COLOR_TO_IDX, COLORS, OBJECT_TO_IDX, STATE_TO_IDX
from minigrid.core.grid import Grid
from minigrid.core.world_object import WorldObj

from curious_replay.envs.interface import LEAST_OF_CELLS, image_space
from curious_replay.errors import UsageError

Array = np.ndarray
OBSERVATIONS = ("pixels", "symbols")
DRAWN, SMALLEST = 8, 2  # pixels of a cell, per side
_LIT = 0.3  # share of white in what is in view; what is hidden is black
_BLACK = -1.0
# How much colour is in the upper left, upper right, lower left and lower right quarter of a cell.
_PATTERNS: dict[str, tuple[float, float, float, float]] = {
    "empty": (0, 0, 0, 0),
    "wall": (1, 1, 1, 1),
    "floor": (0.5, 0.5, 0.5, 0.5),
    "key": (1, 0, 1, 0),
    "ball": (1, 0.3, 0.3, 1),
    "box": (0.3, 1, 1, 1),
    "goal": (1, 1, 1, 1),
    "lava": (1, 1, _BLACK, 1),
    "agent": (0.2, 0.2, 1, 1),
}
_DOORS = {"open": (0, 0.8, 0, 0.8), "closed": (1, 1, _BLACK, 1), "locked": (1, _BLACK, _BLACK, 1)}
_LAVA = np.array((255, 128, 0))  # MiniGrid calls it red, and draws it so


class View:
    """Observations of `view` x `view` cells: a picture, or the symbols as a row of numbers.

    - `"pixels"`: `{"image": uint8 [image_size, image_size, 3]}`, all cells equally large, with a
      black border where pixels are left over;
    - `"symbols"`: `{"vector": float32 [3 view^2]}`, as MiniGrid has them, from 0 to 10.
    """

    def __init__(self, view: int, observation: str, image_size: int) -> None:
        if view < 3 or view % 2 == 0:
            raise UsageError(f"view must be an odd number of cells from 3 on, got {view}")
        if observation not in OBSERVATIONS:
            known = ", ".join(OBSERVATIONS)
            raise UsageError(f"observation must be one of {known}, got {observation!r}")
        self.view, self.observation, self.image_size = view, observation, image_size
        self.space: spaces.Dict
        if observation == "pixels":
            self.space = image_space(image_size, LEAST_OF_CELLS)
            self.cell = image_size // view  # pixels per side
            if self.cell < SMALLEST:
                raise UsageError(
                    f"image_size is {image_size} pixels and {view} cells are in view: a cell needs "
                    f"{SMALLEST} x {SMALLEST} pixels to show what lies in it, so choose a smaller "
                    "view or a larger image_size"
                )
            self._tiles = _tiles(self.cell)
            self._border = (image_size - view * self.cell) // 2
        else:
            most = float(max(OBJECT_TO_IDX.values()))
            self.space = spaces.Dict(vector=spaces.Box(0, most, (3 * view * view,), np.float32))
            self.cell = 1

    def observe(self, symbols: Array) -> dict[str, Array]:
        """Return the observation of symbols uint8 [view, view, 3]."""
        if self.observation == "symbols":
            return {"vector": symbols.reshape(-1).astype(np.float32)}
        seen = symbols.transpose(1, 0, 2)  # by row and column
        kinds = seen[..., 0].copy()
        agent = (self.view - 1, self.view // 2)
        if kinds[agent] == OBJECT_TO_IDX["empty"]:  # carries nothing
            kinds[agent] = OBJECT_TO_IDX["agent"]
        tiles = self._tiles[kinds, seen[..., 1], seen[..., 2]]  # [row, column, y, x, 3]
        side = self.view * self.cell
        image = np.zeros((self.image_size, self.image_size, 3), np.uint8)
        within = slice(self._border, self._border + side)
        image[within, within] = tiles.transpose(0, 2, 1, 3, 4).reshape(side, side, 3)
        return {"image": image}


@cache
def _tiles(pixels: int) -> Array:
    """Return all cells there can be: uint8 [objects, colours, states, pixels, pixels, 3]."""
    numbers = (OBJECT_TO_IDX, COLOR_TO_IDX, STATE_TO_IDX)
    shape = [max(each.values()) + 1 for each in numbers]
    tiles = np.zeros((*shape, pixels, pixels, 3), np.uint8)  # what is unseen stays black
    for kind, color, state in product(*numbers):
        if kind != "unseen":
            draw = _drawn if pixels >= DRAWN else _pattern
            place = (OBJECT_TO_IDX[kind], COLOR_TO_IDX[color], STATE_TO_IDX[state])
            tiles[place] = draw(kind, color, state, pixels)
    return tiles


def _drawn(kind: str, color: str, state: str, pixels: int) -> Array:
    """Return a cell as MiniGrid draws it."""
    numbers = (OBJECT_TO_IDX[kind], COLOR_TO_IDX[color], STATE_TO_IDX[state])
    tile: Array = Grid.render_tile(
        WorldObj.decode(*numbers),
        agent_dir=3 if kind == "agent" else None,  # it looks up
        highlight=True,
        tile_size=pixels,
    )
    return tile


def _pattern(kind: str, color: str, state: str, pixels: int) -> Array:
    """Return a cell of four quarters."""
    weights = np.array(_DOORS[state] if kind == "door" else _PATTERNS[kind])
    paint = {"agent": COLORS["red"], "lava": _LAVA, "empty": COLORS["grey"]}.get(
        kind, COLORS[color]
    )
    floor, lit = _LIT * 255, (1 - _LIT) * paint + _LIT * 255
    quarters: Array = floor + weights.clip(0)[:, None] * (lit - floor)
    quarters[weights == _BLACK] = 0
    half = np.arange(pixels) * 2 // pixels
    tile: Array = quarters.reshape(2, 2, 3)[half][:, half]
    return tile
