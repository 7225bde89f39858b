"""Walls become lava: `minigrid/lava`, a world that others wrote, with DreamerV3.

The agent, which sees what is before it, learns the way through a gap in a wall to a goal. At T0 all
inner walls become lava: who walks into it has lost, and nothing looks as it did.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from curious_replay.experiments.experiment import Claim, Experiment, Registration, Trunk
from curious_replay.experiments.ladder import Rung
from curious_replay.experiments.miniatures import mirror
from curious_replay.experiments.miniatures.shared import arms
from curious_replay.experiments.miniatures.shared.policies import chooses
from curious_replay.experiments.miniatures.shared.tasks import GoalTask, mean_return, solved_sooner
from curious_replay.experiments.miniatures.shared.ways import to_goal

AGENT = "dreamerv3"
T0, END = 10_000, 13_000
"""Steps, which are frames here: walls become lava, the end."""


def oracle(rng: np.random.Generator, info: Mapping[str, Any]) -> int:
    """Take the first action of a shortest way to the goal."""
    return to_goal(info["world"].unwrapped.game)


TASK = GoalTask(within=8.0, oracle=oracle, chance=chooses(3))
"""6 steps are the least on average."""

LAVA = Experiment(
    name="mini-lava",
    where="Q1 in miniature",
    title="Return of episodes, and steps until a task is solved again, after walls become lava",
    tasks=("minigrid/lava",),
    methods=arms.arms(AGENT, arms.UNIFORM, arms.TD, arms.CURIOUS, arms.BALANCED),
    measures=(mean_return(T0, END), TASK.until_solved(T0, END)),
    seeds=10,
    settings={
        "mini": {
            **mirror.QUIET,
            "env.size": 5,
            "env.schedule": ((0, "walls"), (T0, "lava")),
            "train.steps": END,
            "train.log_every": 500,
            "eval.every": 0,
            "record.video_every": 0,
        },
        "debug": {"env.size": 5, "env.schedule": ((0, "walls"), (60, "lava")), "env.length": 20},
    },
    trunk=Trunk("uniform", until={"mini": T0, "debug": 60}),
    claim=Claim(
        "Episodes between lava end with more reward with Curious Replay than with uniform replay",
        [(arms.CURIOUS, arms.UNIFORM)],
    ),
    also=(
        solved_sooner(arms.UNIFORM),
        solved_sooner(arms.TD),
        Claim(
            "With balanced replay, too, episodes end with more reward than with uniform replay",
            [(arms.BALANCED, arms.UNIFORM)],
        ),
    ),
    debug_methods=(arms.UNIFORM, arms.CURIOUS),
    registered=Registration(on="2026-11-18", first_seed=600, tuned=(0,), significant=0.01),
    ladder=TASK.ladder(
        Rung("steps until the trunk solves its task", TASK.until_learned, at_most=0.9 * T0),
        "lava",
        END - T0,
    ),
    scales=("mini", "debug"),
)
