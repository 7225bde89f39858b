"""What the experiments on Crafter share: the score, success at one achievement, numbers."""

from collections.abc import Mapping

from curious_replay.analysis import crafter
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import Key, Measure, Reported, each
from curious_replay.experiments.rows import reported
from curious_replay.run.settings.presets import Settings, Times

TASK, UNSUPERVISED = "crafter", "crafter-noreward"
EIGHT_TIMES: Settings = {"train.ratio": Times(8)}
"""Train frequency of Table 6."""
DEFAULT: Settings = {"replay.alpha": 0.7}
"""DreamerV2's preset for Crafter has α = 0.5, as the paper's main table; this is as elsewhere."""


def score(numbers: Mapping[str, float | tuple[float, float]], n: int | None = None) -> Measure:
    """Return the measure: the benchmark's score, with the paper's numbers on the rewarded game."""
    return score_with(reported(TASK, numbers, n=n, kind="s.d."))


def score_with(paper: Mapping[Key, Reported]) -> Measure:
    """Return the measure: the benchmark's score.

    It is taken after as many steps as a run has, if fewer than a million.
    """
    return Measure("Crafter score (%)", each(crafter.score_of), paper=paper)


def success(achievement: str) -> Measure:
    """Return the measure: per cent of episodes that unlock an achievement (Figures 4, 18, 20)."""
    at = crafter.SPECTRUM.index(achievement)

    def rate(run: Run) -> float:
        return float(crafter.success_rates(*crafter.episodes_of(run))[at])

    return Measure(f"success at {achievement} (%)", each(rate))
