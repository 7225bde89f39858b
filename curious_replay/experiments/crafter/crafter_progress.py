"""Table 9: how soon does the average agent reach each achievement on the way to iron?

Steps until 1 % of the episodes of the last 20K steps succeed, in the mean over runs: one number for
all runs together.
"""

from collections.abc import Sequence

from curious_replay.analysis import crafter
from curious_replay.analysis.load import Run
from curious_replay.experiments.crafter.score import TASK
from curious_replay.experiments.experiment import Claim, Experiment, Measure
from curious_replay.experiments.rows import reported, row

METHODS = V2, V2_CURIOUS, V3, V3_CURIOUS = (
    row("dreamerv2", "uniform"),
    row("dreamerv2", "curious"),
    row("dreamerv3", "uniform"),
    row("dreamerv3", "curious"),
)
RUNS = (10, 10, 4, 4)
NEVER = float("nan")
TABLE = {  # in the order of METHODS
    "collect_stone": (131e3, 97e3, 110e3, 43e3),
    "make_stone_pickaxe": (533e3, 236e3, 745e3, 244e3),
    "collect_iron": (NEVER, 869e3, 973e3, 710e3),
    "make_wood_pickaxe": (46e3, 47e3, 42e3, 26e3),
    "place_table": (7e3, 8e3, 4e3, 3e3),
    "collect_wood": (1e3, 1.5e3, 0.5e3, 0.5e3),
}
"""What the claim rests on comes first: the early ones are reached by all."""


def _steps(achievement: str) -> Measure:
    at = crafter.SPECTRUM.index(achievement)

    def values(runs: Sequence[Run]) -> list[float]:
        played = [crafter.episodes_of(run) for run in runs]
        return [float(crafter.steps_to_success(played, budget=crafter.budget_of(runs))[at])]

    paper = {
        key: number
        for method, steps, n in zip(METHODS, TABLE[achievement], RUNS, strict=True)
        for key, number in reported(TASK, {method.name: steps}, n=n).items()
    }
    name = f"steps to 1 %: {achievement}"
    return Measure(name, values, lower_is_better=True, never=True, paper=paper)


EXPERIMENT = Experiment(
    name="crafter-progress",
    where="Table 9",
    title="Steps until the average agent succeeds at achievements on the way to iron",
    tasks=(TASK,),
    methods=METHODS,
    measures=tuple(map(_steps, TABLE)),
    claim=Claim(
        "Curious Replay comes sooner through the chain of achievements",
        [(V2_CURIOUS.name, V2.name), (V3_CURIOUS.name, V3.name)],
    ),
    seeds=10,
)
