"""Which runs decide, and by which test: those that were registered, as groups or seed by seed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from curious_replay.experiments.experiment import Experiment, Measure
from curious_replay.experiments.paired_verdict import Asked, judge_pairs
from curious_replay.experiments.results import Row
from curious_replay.experiments.verdict import SIGNIFICANT, Verdict, judge

Rows = Mapping[str, Sequence[Row]]
"""Rows of single tasks, by the name of their measure."""


def verdicts(experiment: Experiment, scale: str, rows: Rows) -> list[Verdict]:
    """Return how each claim fared."""
    registered, significant = experiment.registered_at(scale), SIGNIFICANT
    if registered is not None:
        significant = registered.significant
        rows = {name: _of_seeds(experiment.judged, each) for name, each in rows.items()}
        missing = _missing(experiment, scale, rows)
        if missing:
            said = (
                f"Registered for seeds {experiment.judged[0]} to {experiment.judged[-1]}: there is "
                f"no verdict before all of their runs are complete, and {missing} are missing."
            )
            return [
                Verdict("not tested", f"{claim.text}: not tested at {scale} scale. {said}")
                for claim in experiment.claims
            ]
    about = [(claim, experiment.measure_of(claim)) for claim in experiment.claims]
    if experiment.paired:
        asked = [Asked(claim, measure, _by_seed(measure, rows)) for claim, measure in about]
        return judge_pairs(asked, scale, significant)
    return [
        judge(claim, measure, {(row.task, row.method): row.numbers for row in rows[measure.name]},
              scale, significant)
        for claim, measure in about
    ]  # fmt: skip


def _of_seeds(wanted: Sequence[int], rows: Sequence[Row]) -> list[Row]:
    """Return the rows without other seeds.

    One number for all runs counts if all of them are wanted.
    """
    kept = []
    for row in rows:
        if len(row.seeds) == len(row.values):
            both = [(s, v) for s, v in zip(row.seeds, row.values, strict=True) if s in wanted]
            kept.append(replace(row, seeds=[s for s, _ in both], values=[v for _, v in both]))
        elif all(seed in wanted for seed in row.seeds):
            kept.append(row)
    return kept


def _missing(experiment: Experiment, scale: str, rows: Rows) -> int:
    """Return how many of the runs that claims speak of are not there."""
    named = {name for claim in experiment.claims for pair in claim.pairs for name in pair}
    first = rows[experiment.measures[0].name]
    seeds = {(row.task, row.method): {*row.seeds} for row in first}
    return sum(
        len({*experiment.judged} - seeds.get((task, method.name), set()))
        for task, method in experiment.cells(scale)
        if method.name in named
    )


def _by_seed(measure: Measure, rows: Rows) -> dict[tuple[str, str], dict[int, float]]:
    return {
        (row.task, row.method): dict(zip(row.seeds, row.numbers, strict=True))
        for row in rows[measure.name]
        if len(row.seeds) == len(row.values)
    }
