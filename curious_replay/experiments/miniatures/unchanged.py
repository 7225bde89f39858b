"""Nothing changes: `toy/mirror` whose moves stay as they are, learned from the first step.

What curiosity costs where there is nothing new, once the task is known.
"""

from typing import Any

from curious_replay.experiments.experiment import Claim, Experiment, Registration
from curious_replay.experiments.ladder import Rung
from curious_replay.experiments.miniatures import mirror
from curious_replay.experiments.miniatures.shared import arms, tasks

END = 2_500
"""Steps."""


_GOALS = tasks.reached(0, END)
_RETURN = tasks.at_the_end()
_PAIRS = [(arms.CURIOUS, arms.UNIFORM), (arms.BALANCED, arms.UNIFORM)]
_SHARED: dict[str, Any] = {
    "where": "Q4 in miniature",
    "tasks": (mirror.WORLD,),
    "seeds": 10,
    "settings": {
        "mini": {**mirror.QUIET, "env.schedule": ((0, "straight"),), "train.steps": END},
        "debug": {"env.schedule": ((0, "straight"),)},
    },
    "test": "pairs",
    "ladder": mirror.TASK.ladder(
        Rung("steps until uniform replay solves it", mirror.TASK.until_learned, at_most=0.8 * END),
        "straight",
        END,
    ),
    "scales": ("mini", "debug"),
}

SAME = Experiment(
    name="mini-mirror-same",
    title="Return in a small task that never changes",
    methods=arms.arms(mirror.AGENT, arms.UNIFORM, arms.CURIOUS, arms.BALANCED),
    measures=(_RETURN, _GOALS),
    claim=Claim(
        "Curious and balanced replay end with the return of uniform replay", _PAIRS, "similar", 0.1
    ),
    also=(
        Claim("They reach as many goals on the way", _PAIRS, "similar", 50, measure=_GOALS.name),
    ),
    debug_methods=(arms.UNIFORM, arms.CURIOUS),
    registered=Registration(on="2026-11-18", first_seed=100, tuned=(0, 1, 2), significant=0.05),
    **_SHARED,
)

COSTS = Experiment(
    name="mini-mirror-costs",
    title="Goals reached in a small task that never changes, with parts of the rule",
    methods=arms.arms(
        mirror.AGENT, arms.UNIFORM, arms.COUNT, arms.ADVERSARIAL, arms.CURIOUS, arms.DISTINCT
    ),
    measures=(_GOALS, _RETURN),
    claim=Claim(
        "With loss alone, or with count alone, as many goals are reached as with uniform replay",
        [(arms.ADVERSARIAL, arms.UNIFORM), (arms.COUNT, arms.UNIFORM)],
        "no worse",
        50,
    ),
    also=(
        Claim(
            "Curious Replay without repeats in a batch reaches more goals than with them",
            [(arms.DISTINCT, arms.CURIOUS)],
        ),
        Claim(
            "Without repeats as many goals are reached as with uniform replay",
            [(arms.DISTINCT, arms.UNIFORM)],
            "no worse",
            50,
        ),
    ),
    debug_methods=(arms.UNIFORM, arms.CURIOUS),
    registered=Registration(on="2026-11-18", first_seed=300, tuned=(0, 1, 2), significant=0.05),
    **_SHARED,
)
"""Asks why `SAME` found that curiosity costs goals on the way."""
