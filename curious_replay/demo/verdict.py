"""Who won, in numbers and in words, whoever it was."""

import math
from collections.abc import Sequence
from statistics import median

from curious_replay.demo.branches import Branch, Trial
from curious_replay.demo.plan import Plan
from curious_replay.report.tables import Cell, Table

MODELLED = 0.5
"""The ball is modelled when this share of the first error is left."""


def left(branch: Branch) -> list[float]:
    """Return the error at each test, relative to that of the moment when the ball appeared."""
    return [error / branch.errors[0] for error in branch.errors]


def updates_needed(branch: Branch, plan: Plan) -> int | None:
    """Return the updates until the first test that finds the ball modelled; None if none does."""
    tests = enumerate(left(branch))
    return next((plan.test_every * i for i, share in tests if share <= MODELLED), None)


def table(trials: Sequence[Trial], plan: Plan) -> Table:
    """Return a table with one row for each seed."""
    rows: list[Sequence[Cell]] = []
    for trial in trials:
        needed = {name: updates_needed(each, plan) for name, each in trial.branches.items()}
        rows.append(
            [f"seed {trial.seed}"]
            + [_shown(needed[name], plan) for name in ("uniform", "curious")]
            + [round(left(trial.branches[name])[-1], 3) for name in ("uniform", "curious")]
            + [f"{100 * _share(trial.branches[name]):.0f} %" for name in ("uniform", "curious")]
            + [winner(trial, plan) or "neither"]
        )
    return Table(
        "updates-until-modelled",
        f"Updates until the ball is modelled: until the error on its pixels is at most "
        f"{MODELLED:.0%} of what it was when the ball appeared, tested every {plan.test_every} "
        f"updates. Error left: after {plan.updates} updates, 1 being that first error. New: share "
        f"of all replayed steps that are from after the ball appeared.",
        ("", "updates: uniform", "curious", "error left: uniform", "curious", "new: uniform",
         "curious", "sooner"),
        rows,
    )  # fmt: skip


def winner(trial: Trial, plan: Plan) -> str | None:
    """Return whose model knew the ball first; None if both did at once, or none did."""
    never = plan.updates + 1
    uniform, curious = (
        updates_needed(trial.branches[name], plan) or never for name in ("uniform", "curious")
    )
    return None if uniform == curious else "curious" if curious < uniform else "uniform"


def sentences(trials: Sequence[Trial], plan: Plan) -> list[str]:
    """Return the result, and every seed on which curious replay did not win, as sentences."""
    wins = [trial for trial in trials if winner(trial, plan) == "curious"]
    said = f"Curious replay modelled the ball sooner on {len(wins)} of {len(trials)} seeds"
    medians = {
        name: _median([updates_needed(trial.branches[name], plan) for trial in trials], plan)
        for name in ("curious", "uniform")
    }
    said += f" (median: {medians['curious']} updates, uniform replay {medians['uniform']})."
    return [said, *(_lost(trial, plan) for trial in trials if trial not in wins)]


def _lost(trial: Trial, plan: Plan) -> str:
    uniform, curious = (
        updates_needed(trial.branches[name], plan) for name in ("uniform", "curious")
    )
    begin = f"On seed {trial.seed} curious replay did not win: "
    if uniform is None and curious is None:
        return f"{begin}neither model knew the ball after {plan.updates} updates."
    if uniform == curious:
        return f"{begin}both needed {uniform} updates."
    return f"{begin}uniform replay needed {uniform} updates, curious {_shown(curious, plan)}."


def _median(needed: Sequence[int | None], plan: Plan) -> str:
    """Return the median of values of which some, None, are larger than could be seen."""
    known = [each or plan.updates for each in needed]
    unseen = [each or math.inf for each in needed]
    return f"more than {median(known):g}" if math.isinf(median(unseen)) else f"{median(known):g}"


def _shown(needed: int | None, plan: Plan) -> str:
    return f"more than {plan.updates}" if needed is None else str(needed)


def _share(branch: Branch) -> float:
    return sum(branch.shares) / len(branch.shares)
