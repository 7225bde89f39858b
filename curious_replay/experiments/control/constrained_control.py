"""Figure 3: when constraints on the body are lifted, how soon is the task learned?

The text gives the average return over the three tasks at 750K frames, 1.5 times T0.
"""

from curious_replay.envs.tasks import CONSTRAINED
from curious_replay.experiments.control.control_return import return_at, return_since_change
from curious_replay.experiments.experiment import OVERALL, Claim, Experiment
from curious_replay.experiments.rows import reported, row

UNIFORM, TD, CURIOUS = (row("dreamerv2", replay) for replay in ("uniform", "td", "curious"))

EXPERIMENT = Experiment(
    name="constrained-control",
    where="Figure 3",
    title="Return on control tasks once constraints are lifted",
    tasks=tuple(f"constrained/{task}" for task in CONSTRAINED),
    methods=(UNIFORM, TD, CURIOUS),
    measures=(
        return_at(1.5, 0.1, reported(OVERALL, {CURIOUS.name: 508, UNIFORM.name: 121}, n=6)),
        return_since_change(),
    ),
    claim=Claim(
        "Curious Replay adapts faster than uniform replay and than TD replay",
        [(CURIOUS.name, UNIFORM.name), (CURIOUS.name, TD.name)],
    ),
    seeds=6,
    debug_tasks=1,
)
