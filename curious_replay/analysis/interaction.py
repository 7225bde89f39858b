"""The object-interaction assay: how soon and how often the agent turns to the new object.

Counts come in rows: `counts[i]` happened in the frames after `frames[i - 1]`, up to and including
`frames[i]`. Rows are intervals of training (metrics.jsonl: `log/contacts`, `log/interactions`), or
single steps read from the last checkpoint, which tell the moment to within one step.

Two things are counted. *contacts* are points of contact at the end of each frame, as the released
code counts: pushing the ball for a second counts some thirty times. *interactions* are separate:
one begins only after agent and ball were apart.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import Run
from curious_replay.analysis.stored import Stored

Kind = Literal["contacts", "interactions"]

FRAME_SECONDS = 0.03
"""Simulated seconds of one frame of the assay (paper, appendix "Implementation details")."""
NTH = (5, 50, 500)
"""The paper's measure is the 5th interaction (Figure 2c); 50th and 500th check it (Figure 15)."""


def frames_to_nth(
    frames: npt.ArrayLike,
    counts: npt.ArrayLike,
    n: int,
    *,
    start: int = 0,
    otherwise: float = np.nan,
) -> float:
    """Return the frames from `start` to the `n`-th interaction (paper: Figure 2c, Tables 2 and 4).

    The first row after `start` at which the sum of counts after `start` reaches n, minus `start`,
    which is the frame at which the object appears (0 where it is there from the beginning).
    `otherwise` if that does not happen.
    """
    frame, total = cumulative(frames, counts, start=start)
    reached = np.flatnonzero(total >= n)
    return float(frame[reached[0]]) if len(reached) else float(otherwise)


def cumulative(
    frames: npt.ArrayLike, counts: npt.ArrayLike, *, start: int = 0, stop: int | None = None
) -> tuple[Array, Array]:
    """Return the interactions so far, by frames since `start` (paper: Figure 11).

    From frames and counts [N] those after `start`, up to and including `stop`: frames since then,
    and sums, [M] each. NaN counts as nothing.
    """
    frame, count = np.asarray(frames), np.nan_to_num(np.asarray(counts, np.float64))
    inside = frame > start
    if stop is not None:
        inside &= frame <= stop
    return frame[inside] - start, np.cumsum(count[inside])


def seconds(frames: npt.ArrayLike) -> Array:
    """Return frames as simulated seconds, to compare with animals (paper: Figure 7)."""
    return np.asarray(frames, np.float64) * FRAME_SECONDS


def trajectory(
    frames: npt.ArrayLike, positions: npt.ArrayLike, *, start: int, length: int
) -> Array:
    """Return places on the floor, [steps, 2], in the `length` frames after `start`.

    The paper's Figure 12 shows agent and ball for 100 K, 200 K and 300 K frames after it appears.
    `positions` are [steps, 2 or more]; the first two are x and y.
    """
    frame, place = np.asarray(frames), np.asarray(positions)
    return place[(frame > start) & (frame <= start + length)][:, :2]


def pixels_in_buffer(pixels: npt.ArrayLike, capacity: int) -> Array:
    """Return the pixels of the object in all stored pictures, after each step (paper: Figure 10).

    `pixels` [steps] of the pictures in the order they were stored; the buffer holds the last
    `capacity` of them.
    """
    total = np.cumsum(np.nan_to_num(np.asarray(pixels, np.float64)))
    gone = np.zeros_like(total)
    if len(total) > capacity:
        gone[capacity:] = total[:-capacity]
    return total - gone


def pixels_by_interval(
    steps: npt.ArrayLike,
    pixels: npt.ArrayLike,
    capacity: int | None = None,
    cleared: int | None = None,
) -> Array:
    """Return `pixels_in_buffer` from sums over intervals of training that end at `steps` [rows].

    The buffer holds the last `capacity` steps, and none up to the step at which it was `cleared`;
    what an interval brought is taken to be evenly spread over it.
    """
    step, total = np.asarray(steps), np.cumsum(np.nan_to_num(np.asarray(pixels, np.float64)))
    if not len(step):
        return total
    oldest = step - (np.inf if capacity is None else capacity)
    if cleared is not None:
        oldest = np.where(step > cleared, np.maximum(oldest, cleared), oldest)
    gone = np.interp(oldest, np.concatenate([[0], step]), np.concatenate([[0.0], total]))
    return np.asarray(total - gone)


def counts_of(
    run: Run, kind: Kind = "contacts", stored: Stored | None = None
) -> tuple[Array, Array]:
    """Return frames and counts [N] of a run.

    They are by step if `stored` still has all of them, else by interval. Where several environments
    run, their steps are put in order of frames.
    """
    name = f"log_{kind}"
    if stored is not None and stored.has(name) and len(stored) and (stored.buffer.time == 0).any():
        order = np.argsort(stored.frame, kind="stable")
        return stored.frame[order], stored.field(name)[order]
    metrics = run.metrics
    if f"log/{kind}" not in metrics:
        return np.zeros(0, np.int64), np.zeros(0)
    return metrics["frame"], metrics[f"log/{kind}"]


def object_name(stored: Stored) -> str | None:
    """Return the object whose position and pixels were stored; None if there is none.

    It is "magenta", "object", ...
    """
    for name in stored.buffer.fields:
        if name.startswith("log_") and name.endswith("_pixels"):
            return name.removeprefix("log_").removesuffix("_pixels")
    return None


def position_of(stored: Stored, body: str) -> Array | None:
    """Return where a body was at each step, [N, 2 or 3]; None if that was not stored."""
    name = f"log_{body}_position"
    return stored.field(name) if stored.has(name) else None
