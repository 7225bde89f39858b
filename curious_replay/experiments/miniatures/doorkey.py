"""A key, a door, a goal, and nothing changes: MiniGrid's `DoorKey-5x5`, with DreamerV3.

Chance seldom gets to the goal, so what is rare in replay is what there is to learn from.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from curious_replay.experiments.experiment import Claim, Experiment, Registration
from curious_replay.experiments.ladder import Rung
from curious_replay.experiments.miniatures.shared import arms
from curious_replay.experiments.miniatures.shared.policies import chooses
from curious_replay.experiments.miniatures.shared.tasks import (
    SOLVED_FIRST,
    GoalTask,
    at_the_end,
    reached,
)
from curious_replay.experiments.miniatures.shared.ways import through_door
from curious_replay.run.settings.presets import Settings

AGENT = "dreamerv3"
END = 12_000
"""Steps."""
WIDE: Settings = {
    "env.image_size": 16,
    "env.view": 5,
    "agent.starts": 0.25,
    "train.batch_size": 32,
    "train.batch_length": 8,
    "train.log_every": 500,
    "train.save_every": 6_000,
    "eval.every": 0,
    "record.video_every": 0,
    "record.tensorboard": False,
}
"""What makes a run cheap: small pictures, and many short windows to an update."""


def oracle(rng: np.random.Generator, info: Mapping[str, Any]) -> int:
    """Fetch the key, open the door, and go to the goal."""
    return through_door(info["world"].unwrapped.game, "yellow")


TASK = GoalTask(within=16.0, oracle=oracle, chance=chooses(7))
"""11 steps are the least on average."""
PAIRS = [(name, arms.UNIFORM) for name in (arms.CURIOUS, arms.BALANCED)]

DOORKEY = Experiment(
    name="mini-doorkey",
    where="Q4 in miniature",
    title="Return in MiniGrid's DoorKey-5x5, which never changes",
    tasks=("minigrid/DoorKey-5x5",),
    methods=arms.arms(AGENT, arms.UNIFORM, arms.CURIOUS, arms.BALANCED, arms.DISTINCT),
    measures=(at_the_end(), TASK.until_solved(0, END, SOLVED_FIRST), reached(0, END)),
    seeds=10,
    settings={"mini": {**WIDE, "train.steps": END}},
    test="pairs",
    claim=Claim(
        "With a key and a door, too, Curious and balanced replay end with the return of uniform "
        "replay",
        PAIRS,
        "similar",
        0.1,
    ),
    also=(
        Claim(
            "They solve it as soon, between half and twice the time",
            PAIRS,
            "similar",
            1.0,
            measure=SOLVED_FIRST,
        ),
        Claim(
            "Without repeats in a batch it is solved as soon as with uniform replay, in no more "
            "than twice the time",
            [(arms.DISTINCT, arms.UNIFORM)],
            "no worse",
            1.0,
            measure=SOLVED_FIRST,
        ),
    ),
    debug_methods=(arms.UNIFORM, arms.CURIOUS),
    registered=Registration(on="2026-11-19", first_seed=1400, tuned=(0,), significant=0.05),
    ladder=TASK.ladder(
        Rung("steps until uniform replay solves it", TASK.until_learned, at_most=0.9 * END),
        None,
        END,
    ),
    scales=("mini", "debug"),
)
