"""What the experiments on control tasks share: returns at a time and after a change.

Times are multiples of T0, the frame of the first change, so that they mean the same at all scales.
"""

from collections.abc import Mapping

from curious_replay.analysis import returns
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import Key, Measure, Reported, each

Paper = Mapping[Key, Reported]


def return_at(times: float, window: float, paper: Paper | None = None) -> Measure:
    """Return the measure: mean return of the episodes that ended in the `window` before `times`.

    Both are in T0.
    """

    def value(run: Run) -> float:
        change = run.first_change
        at, length = round(times * change), max(round(window * change), 1)
        return returns.value_at(*returns.returns_of(run), at, length)

    return Measure(f"return at {times:g} T0", each(value), paper=paper or {})


def return_since_change() -> Measure:
    """Return the measure: mean return from the first change to the next or to the end.

    It is high if the agent adapts fast.
    """

    def average(run: Run) -> float:
        stop = run.changes[2][0] if len(run.changes) > 2 else None
        values = returns.returns_of(run)
        return returns.adaptation(*values, run.first_change, 1, stop=stop).average

    return Measure("mean return after the change", each(average))


def final_return(paper: Paper | None = None) -> Measure:
    """Return the measure: mean return in the last twentieth of a run."""

    def value(run: Run) -> float:
        end = run.frames_done
        return returns.value_at(*returns.returns_of(run), end, max(end // 20, 1))

    return Measure("return at the end", each(value), paper=paper or {})
