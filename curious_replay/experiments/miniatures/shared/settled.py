"""Whether a world model knew its world before it changed."""

import math

from curious_replay.analysis import stats
from curious_replay.experiments.ladder import Footing, Rung


def settled(metric: str, name: str) -> Rung:
    """Return the rung: it neither falls by more than a quarter any more, nor rises."""
    return Rung(
        f"{name} of the last quarter / of the one before",
        lambda footing: _ratios(footing, metric),
        at_least=0.75,
        at_most=1.1,
    )


def _ratios(footing: Footing, metric: str) -> list[float]:
    """Return, for each run, a metric's mean of the last quarter by that of the one before.

    A run that goes on after the change counts until then. NaN where metrics were not written often
    enough to tell.
    """
    found = []
    for run in footing.runs:
        frame, value = run.metrics["frame"], run.metrics[metric]
        end = min(run.frames_done, run.first_change or run.frames_done)
        parts = [
            stats.finite(value[(frame > end * low) & (frame <= end * high)])
            for low, high in ((0.75, 1.0), (0.5, 0.75))
        ]
        known = all(len(part) for part in parts)
        found.append(float(parts[0].mean() / parts[1].mean()) if known else math.nan)
    return found


SETTLED = settled("model/loss", "model loss")
"""Of models whose loss has no large constant in it."""
SETTLED_V2 = settled("model/kl", "KL")
"""Of DreamerV2, whose loss is that of normals of unit variance: nearly all of it is constant."""
