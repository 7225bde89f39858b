"""A toy of ours: does Curious Replay adapt sooner when the world turns round?

DreamerV3 learns to reach a goal in a small grid; at T0 every move is mirrored (mini: frame 2,000 of
4,500). A run takes minutes on one core. The task is solved again when 20 episodes in a row reach
the goal, in 8 steps on average.
"""

from curious_replay.analysis import returns
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import Claim, Experiment, Measure, each
from curious_replay.experiments.rows import row

UNIFORM, CURIOUS = row("dreamerv3", "uniform"), row("dreamerv3", "curious")


def _solved_again(run: Run) -> float:
    played = run.played()  # in this world a frame, such as that of the change, is a step
    return returns.steps_to_solve(
        played["step"], played["length"], played["return"], run.first_change
    )


EXPERIMENT = Experiment(
    name="toy-mirror",
    where="a toy of ours",
    title="Steps until a small task is solved again after all its moves are mirrored",
    tasks=("toy/mirror",),
    methods=(UNIFORM, CURIOUS),
    measures=(
        Measure("steps to solve it again", each(_solved_again), lower_is_better=True, never=True),
    ),
    claim=Claim(
        "Curious Replay solves it again sooner than uniform replay",
        [(CURIOUS.name, UNIFORM.name)],
    ),
    seeds=10,
)
