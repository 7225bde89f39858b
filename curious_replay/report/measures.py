"""Which measures a group of runs has, and their values, one for each run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from curious_replay.analysis import crafter, interaction, model_error, returns, stored
from curious_replay.analysis.load import Run

Methods = Mapping[str, Sequence[Run]]
"""Runs by method; a method is what differs between the groups of a section."""
KINDS: tuple[interaction.Kind, ...] = ("contacts", "interactions")
NEVER = (
    "a run that did not get there is left out of means, but counts as slower than all that did in "
    "P(better) and in tests, which then compare ranks; a frame of the assay is 0.03 seconds"
)


@dataclass(frozen=True)
class Measured:
    """One number for each run."""

    name: str
    values: dict[str, list[float]]
    lower_is_better: bool = False
    note: str = ""
    never: bool = False
    """Whether a value that is missing means that a run never got there."""

    @property
    def worst(self) -> float | None:
        """What a run that never got there stands for in tests; None if there is no such thing."""
        return (np.inf if self.lower_is_better else -np.inf) if self.never else None

    def ranked(self, method: str) -> list[float]:
        """Return values of which larger is better.

        A run that never got there is below all others.
        """
        worst = -1e300 if self.never else np.nan
        sign = -1 if self.lower_is_better else 1
        return [sign * v if np.isfinite(v) else worst for v in self.values.get(method, [])]


def measures(methods: Methods) -> list[Measured]:
    """Return all that these runs can tell, the paper's own measure first."""
    found: list[Measured] = []
    for kind in (_crafter, _interaction, _returns, _retention, _model_error, _forgetting):
        found += kind(methods)
    return found


def first_change(methods: Methods) -> int:
    """Return the frame of the first change that a run knows of; 0 if there is none."""
    return next((run.first_change for run in all_runs(methods) if run.first_change), 0)


def undone(methods: Methods) -> tuple[int, int] | None:
    """Return the frames of the first change that is undone, and of its undoing; None if none is."""
    return next((run.undone for run in all_runs(methods) if run.undone), None)


def window_of(methods: Methods) -> int:
    """Return the frames over which values are averaged: a twentieth of the shortest run."""
    return max(common_end(methods) // 20, 1)


def all_runs(methods: Methods) -> Iterator[Run]:
    """Yield the runs of all methods."""
    for runs in methods.values():
        yield from runs


def is_crafter(methods: Methods) -> bool:
    """Return whether episodes have achievements."""
    return any("achievement/wake_up" in run.episodes for run in all_runs(methods))


def has_interactions(methods: Methods) -> bool:
    """Return whether contacts with an object were counted."""
    return any("log/contacts" in run.metrics for run in all_runs(methods))


def has_returns(methods: Methods) -> bool:
    """Return whether some episode of training had a return other than 0."""
    return any(np.any(np.nan_to_num(run.played()["return"])) for run in all_runs(methods))


def has_probes(methods: Methods) -> bool:
    """Return whether world models were probed."""
    return any(run.probes.rows for run in all_runs(methods))


def common_end(methods: Methods) -> int:
    """Return the last frame of the shortest run that has any."""
    return min((run.frames_done for run in all_runs(methods) if run.frames_done), default=0)


def _each(methods: Methods, value: Callable[[Run], float]) -> dict[str, list[float]]:
    return {method: [float(value(run)) for run in runs] for method, runs in methods.items()}


def _crafter(methods: Methods) -> list[Measured]:
    if not is_crafter(methods):
        return []
    budget = crafter.budget_of(all_runs(methods))
    note = (
        ""
        if budget >= crafter.BUDGET
        else f"after {budget:,} steps: not comparable with the benchmark's million"
    )
    scores = _each(methods, lambda run: crafter.score_of(run, budget))
    return [Measured("Crafter score (%)", scores, note=note)]


def _interaction(methods: Methods) -> list[Measured]:
    if not has_interactions(methods):
        return []
    start = first_change(methods)
    wanted = [(n, kind) for n in interaction.NTH for kind in KINDS]
    values: dict[tuple[int, str], dict[str, list[float]]] = {
        each: {method: [] for method in methods} for each in wanted
    }
    for method, runs in methods.items():
        for run in runs:  # one after the other: a buffer's bookkeeping is large
            steps = stored.newest(run)
            for kind in KINDS:
                rows = interaction.counts_of(run, kind, steps)
                for n in interaction.NTH:
                    until = interaction.frames_to_nth(*rows, n, start=start)
                    values[n, kind][method].append(until)
    return [
        Measured(
            f"frames to {kind.removesuffix('s')} {n}", values[n, kind], True, NEVER, never=True
        )
        for n, kind in wanted
        if n == interaction.NTH[0] or np.isfinite(np.concatenate([*values[n, kind].values()])).any()
    ]


def _returns(methods: Methods) -> list[Measured]:
    if not has_returns(methods):
        return []
    end, window = common_end(methods), window_of(methods)

    def final(run: Run) -> float:
        return returns.value_at(*returns.returns_of(run), end, window)

    found = [Measured(f"return at frame {end:,}", _each(methods, final))]
    changes = next((run.changes for run in all_runs(methods) if len(run.changes) > 1), ())
    for (frame, phase), (following, _) in pairwise([*changes[1:], (end, "")]):

        def average(run: Run, frame: int = frame, stop: int = following) -> float:
            values = returns.returns_of(run)
            return returns.adaptation(*values, frame, window, stop=stop).average

        if frame < following:
            name = f"mean return after the change to {phase} (frame {frame:,})"
            found.append(Measured(name, _each(methods, average)))
    return found


def _retention(methods: Methods) -> list[Measured]:
    """Return what is left of the first phase once the change is undone (paper: Table 10)."""
    found = undone(methods)
    if found is None or not has_returns(methods):
        return []
    change, back = found
    window = window_of(methods)

    def both(run: Run) -> tuple[float, float]:
        return returns.retention(*returns.returns_of(run), change, back, window)

    before = _each(methods, lambda run: both(run)[0])
    after = _each(methods, lambda run: both(run)[1])
    return [
        Measured(f"return before the change at frame {change:,}", before),
        Measured(f"return just after it is undone at frame {back:,}", after),
    ]


def forgettings(methods: Methods) -> dict[str, list[model_error.Forgetting]]:
    """Return the model error before and after the object is removed, of each run; {} if never."""
    found = undone(methods)
    if found is None or not has_probes(methods):
        return {}
    window = window_of(methods)
    return {
        method: [
            model_error.forgetting(*model_error.errors_of(run), found[1], window) for run in runs
        ]
        for method, runs in methods.items()
    }


def _forgetting(methods: Methods) -> list[Measured]:
    found = forgettings(methods)
    values = {method: [each.ratio for each in runs] for method, runs in found.items()}
    name = "forgetting: model error at the end divided by that before the object is removed"
    return [Measured(name, values, True)] if values else []


def _model_error(methods: Methods) -> list[Measured]:
    if not has_probes(methods):
        return []
    found = []
    for what, words in (("mse_object", "on the object"), ("mse", "on all pixels")):

        def mean(run: Run, what: str = what) -> float:
            return model_error.mean_since(*model_error.errors_of(run, what), first_change(methods))

        found.append(
            Measured(f"model error {words}, mean since the change", _each(methods, mean), True)
        )
    return found
