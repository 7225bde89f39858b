"""Table 4 in miniature: how much do α, β, c and the share of novelty matter?

`toy/mirror` as in `mirror`, with the same T0 and a shorter time after it. One setting is varied,
the others stay as they are.
"""

from collections.abc import Mapping

import numpy as np

from curious_replay.analysis import stats
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import (
    Claim,
    Experiment,
    Measure,
    Method,
    Registration,
    Trunk,
    each,
)
from curious_replay.experiments.miniatures import mirror
from curious_replay.experiments.miniatures.shared import arms, tasks

END = 11_500
"""Steps: 1,500 after the moves are mirrored."""


def _varied(replay: str, values: Mapping[str, tuple[str, tuple[float, ...]]]) -> list[Method]:
    """Return a method for each value; `values` are by letter, with the name of the setting."""
    return [
        Method(f"{letter} = {value:g}", mirror.AGENT, replay, {f"replay.{name}": value})
        for letter, (name, all_of_it) in values.items()
        for value in all_of_it
    ]


CURIOUS = _varied(
    "curious",
    {
        "α": ("alpha", (0.1, 0.3, 0.5, 0.9)),
        "β": ("beta", (0.1, 0.3, 0.5, 0.9)),
        "c": ("c", (10.0, 100.0, 1000.0)),
    },
)
"""Beside α = β = 0.7 and c = 10,000."""
BALANCED = _varied("balanced", {"novelty": ("novelty", (0.1, 0.5, 0.7))})
"""Beside a share of 0.3."""


def _novelty(run: Run) -> float:
    """Return the share of replay that went by novelty since the change."""
    after = run.metrics["frame"] > run.first_change
    share = stats.finite(run.metrics["replay/novelty_share"][after])
    return float(np.mean(share)) if len(share) else float("nan")


SETTINGS = Experiment(
    name="mini-mirror-settings",
    where="Table 4 in miniature",
    title="Goals reached after all moves are mirrored, with other settings of the rule",
    tasks=(mirror.WORLD,),
    methods=(
        *arms.arms(mirror.AGENT, arms.UNIFORM, arms.CURIOUS),
        *CURIOUS,
        arms.arm(mirror.AGENT, arms.BALANCED),
        *BALANCED,
    ),
    measures=(
        tasks.reached(mirror.T0, END),
        Measure("share of replay by novelty since the change", each(_novelty)),
    ),
    seeds=6,
    settings={
        "mini": {
            **mirror.QUIET,
            "env.schedule": ((0, "straight"), (mirror.T0, "mirrored")),
            "train.steps": END,
        },
        "debug": {"env.schedule": ((0, "straight"), (70, "mirrored"))},
    },
    trunk=Trunk("uniform", until={"mini": mirror.T0, "debug": 70}),
    claim=Claim(
        "With every α, β and c that was tried more goals are reached than with uniform replay",
        [(method, arms.UNIFORM) for method in (arms.CURIOUS, *(one.name for one in CURIOUS))],
    ),
    also=(
        Claim(
            "With every share of novelty of balanced replay, too",
            [(method, arms.UNIFORM) for method in (arms.BALANCED, *(one.name for one in BALANCED))],
        ),
    ),
    debug_methods=(arms.UNIFORM, "β = 0.1", "novelty = 0.1"),
    # All else is as in `mirror`, and was not tuned again.
    registered=Registration(on="2026-11-18", first_seed=900, tuned=(0, 1, 2), significant=0.05),
    ladder=mirror.TASK.ladder(mirror.LADDER[0], "mirrored", END - mirror.T0),
    scales=("mini", "debug"),
)
