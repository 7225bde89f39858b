"""What the experiments on the object-interaction assay share: rows, numbers, what is measured."""

from collections.abc import Mapping

from curious_replay.analysis import interaction, model_error, stored
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import Key, Measure, Reported, each
from curious_replay.experiments.rows import reported, row

TASK = "object-interaction"
UNIFORM, TD, CURIOUS = (row("plan2explore", replay) for replay in ("uniform", "td", "curious"))
MAIN = reported(TASK, {UNIFORM.name: (3.7e5, 0.6e5), CURIOUS.name: (0.5e5, 0.1e5)}, n=7)
"""Frames to the 5th interaction (Tables 2 and 4)."""


def frames_to(nth: int, paper: Mapping[Key, Reported] | None = None) -> Measure:
    """Return the measure: frames from the object's appearance until so many contacts with it."""

    def until(run: Run) -> float:
        rows = interaction.counts_of(run, "contacts", stored.newest(run))
        return interaction.frames_to_nth(*rows, nth, start=run.first_change)

    name = f"frames to contact {nth}"
    return Measure(name, each(until), lower_is_better=True, never=True, paper=paper or {})


def model_error_since_change() -> Measure:
    """Return the measure: how badly the model predicts the object, once it has appeared.

    It is taken in test scenes.
    """

    def mean(run: Run) -> float:
        return model_error.mean_since(*model_error.errors_of(run), run.first_change)

    return Measure("model error on the object since it appeared", each(mean), lower_is_better=True)
