"""What the experiments on the object-interaction assay share: the agent, and what is measured."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from curious_replay.analysis import interaction, stored
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import Key, Measure, Method, Reported, each

ROWS = {
    "uniform": "Plan2Explore",
    "td": "Plan2Explore TD",
    "curious": "Plan2Explore CR",
    "count": "Plan2Explore count",
    "adversarial": "Plan2Explore adversarial",
}
"""Names of the kinds of replay, as the paper has them."""


def plan2explore(replay: str, name: str = "", **settings: Any) -> Method:
    """Plan2Explore with a kind of replay; settings are named as in `replay__alpha=0.5`."""
    changes = {path.replace("__", "."): value for path, value in settings.items()}
    return Method(name or ROWS[replay], "plan2explore", replay, changes)


def frames_to(nth: int) -> Measure:
    """Frames from the appearance of the object until so many contacts with it."""

    def until(run: Run) -> float:
        start = run.changes[1][0] if len(run.changes) > 1 else 0
        rows = interaction.counts_of(run, "contacts", stored.newest(run))
        return interaction.frames_to_nth(*rows, nth, start=start)

    return Measure(f"frames to contact {nth}", each(until), lower_is_better=True, never=True)


def with_paper(
    measure: Measure, numbers: Mapping[Key, tuple[float, float]], n: int | None = None
) -> Measure:
    """A measure with the paper's means and standard errors."""
    return replace(measure, paper={key: Reported(*pair, n=n) for key, pair in numbers.items()})
