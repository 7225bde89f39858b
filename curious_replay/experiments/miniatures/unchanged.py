"""Nothing changes: `toy/mirror` whose moves stay as they are, learned from the first step.

What curiosity costs where there is nothing new, once the task is known.
"""

from curious_replay.analysis import returns
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import Claim, Experiment, Measure, Registration, each
from curious_replay.experiments.ladder import Rung
from curious_replay.experiments.miniatures import arms, mirror

END = 2_500
"""Steps."""


def _at_the_end(run: Run) -> float:
    played = run.played()
    return returns.just_before(played["step"], played["return"], run.steps_done)


_GOALS = mirror.reached(0, END)
_PAIRS = [(arms.CURIOUS, arms.UNIFORM), (arms.BALANCED, arms.UNIFORM)]
SAME = Experiment(
    name="mini-mirror-same",
    where="Q4 in miniature",
    title="Return in a small task that never changes",
    tasks=(mirror.TASK,),
    methods=arms.arms(mirror.AGENT, arms.UNIFORM, arms.CURIOUS, arms.BALANCED),
    measures=(
        Measure("return of the last 20 episodes", each(_at_the_end)),
        _GOALS,
    ),
    claim=Claim(
        "Curious and balanced replay end with the return of uniform replay", _PAIRS, "similar", 0.1
    ),
    also=(
        Claim("They reach as many goals on the way", _PAIRS, "similar", 50, measure=_GOALS.name),
    ),
    seeds=10,
    settings={
        "mini": {**mirror.QUIET, "env.schedule": ((0, "straight"),), "train.steps": END},
        "debug": {"env.schedule": ((0, "straight"),)},
    },
    test="pairs",
    registered=Registration(on="2026-11-18", first_seed=100, tuned=(0, 1, 2), significant=0.05),
    ladder=mirror.ladder(
        Rung("steps until uniform replay solves it", mirror.until_learned, at_most=0.8 * END),
        "straight",
        END,
    ),
    scales=("mini", "debug"),
)
