"""Shortest ways in MiniGrid, for drivers that know the whole grid."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

LEFT, RIGHT, FORWARD, PICK_UP, _, TOGGLE = range(6)
Pose = tuple[int, int, int]
"""Column, row, and direction: right, down, left, up."""


def to_goal(game: Any) -> int:
    """Return the first action of a shortest way to the goal."""
    step = _first_action(game, lambda pose: _kind(game, pose[:2]) == "goal")
    assert step is not None  # there the episode ends
    return step


def through_door(game: Any, fits: str) -> int:
    """Return what to do next to get to the goal behind a door that keys of a colour open."""
    door = next(cell for cell in game.grid.grid if cell is not None and cell.type == "door")
    if door.is_open:
        return to_goal(game)
    held = game.carrying is not None and game.carrying.color == fits
    kind, color, action = ("door", door.color, TOGGLE) if held else ("key", fits, PICK_UP)

    def before_it(pose: Pose) -> bool:
        cell = game.grid.get(*_ahead(pose))
        return cell is not None and cell.type == kind and cell.color == color

    step = _first_action(game, before_it)
    return action if step is None else step


def _first_action(game: Any, there: Callable[[Pose], bool]) -> int | None:
    """Return the first action of a shortest way to such a pose; None in such a pose."""
    x, y = game.agent_pos
    begin: Pose = (int(x), int(y), int(game.agent_dir))
    first: dict[Pose, int | None] = {begin: None}
    waiting = deque([begin])
    while waiting:
        pose = waiting.popleft()
        found = first[pose]
        if there(pose):
            return found
        for action, after in _moves(game, pose):
            if after not in first:
                first[after] = action if found is None else found
                waiting.append(after)
    raise AssertionError("there is no way")


def _moves(game: Any, pose: Pose) -> Iterator[tuple[int, Pose]]:
    """Yield each action that does no harm, and where it leads."""
    x, y, direction = pose
    yield LEFT, (x, y, (direction - 1) % 4)
    yield RIGHT, (x, y, (direction + 1) % 4)
    if _kind(game, _ahead(pose)) in ("nothing", "goal", "open"):
        yield FORWARD, (*_ahead(pose), direction)


def _ahead(pose: Pose) -> tuple[int, int]:
    x, y, direction = pose
    across, down = ((1, 0), (0, 1), (-1, 0), (0, -1))[direction]
    return x + across, y + down


def _kind(game: Any, place: tuple[int, int]) -> str:
    """Return what is in a cell, as MiniGrid calls it, or "nothing", or "open": a door."""
    cell = game.grid.get(*place)
    if cell is None:
        return "nothing"
    kind: str = "open" if cell.type == "door" and cell.is_open else cell.type
    return kind
