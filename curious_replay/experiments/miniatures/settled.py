"""Whether a world model knew its world before it changed."""

import math

from curious_replay.analysis import stats
from curious_replay.experiments.ladder import Footing, Rung


def _ratios(footing: Footing) -> list[float]:
    """Return, for each run, the mean model loss of its last quarter by that of the one before.

    A run that goes on after the change counts until then. NaN where metrics were not written often
    enough to tell.
    """
    found = []
    for run in footing.runs:
        frame, loss = run.metrics["frame"], run.metrics["model/loss"]
        end = min(run.frames_done, run.first_change or run.frames_done)
        parts = [
            stats.finite(loss[(frame > end * low) & (frame <= end * high)])
            for low, high in ((0.75, 1.0), (0.5, 0.75))
        ]
        known = all(len(part) for part in parts)
        found.append(float(parts[0].mean() / parts[1].mean()) if known else math.nan)
    return found


SETTLED = Rung(
    "model loss of the last quarter / of the one before", _ratios, at_least=0.75, at_most=1.1
)
"""It has levelled off: it neither falls by more than a quarter any more, nor rises."""
