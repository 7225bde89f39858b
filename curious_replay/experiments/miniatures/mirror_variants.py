"""The task that turns round, under other conditions: noise, no fork, another agent.

All are `toy/mirror` as in `mirror`, with the same measures; the first two have the same T0.
"""

from typing import Any

from curious_replay.experiments.experiment import Claim, Experiment, Registration, Trunk
from curious_replay.experiments.ladder import Rung
from curious_replay.experiments.miniatures import mirror
from curious_replay.experiments.miniatures.shared import arms, tasks
from curious_replay.experiments.miniatures.shared.settled import SETTLED_V2
from curious_replay.run.settings.presets import Settings

_SETTINGS: Settings = {
    **mirror.QUIET,
    "env.schedule": ((0, "straight"), (mirror.T0, "mirrored")),
    "train.steps": mirror.T1,
}
_DEBUG: Settings = {"env.schedule": ((0, "straight"), (60, "mirrored"))}
_TRUNK = Trunk("uniform", until={"mini": mirror.T0, "debug": 60})
_SHARED: dict[str, Any] = {
    "tasks": (mirror.WORLD,),
    "measures": (
        tasks.reached(mirror.T0, mirror.T1),
        mirror.TASK.until_solved(mirror.T0, mirror.T1),
    ),
    "ladder": mirror.LADDER,
    "debug_methods": (arms.UNIFORM, arms.CURIOUS),
    "scales": ("mini", "debug"),
}


def _more_goals(where: str) -> Claim:
    return Claim(
        f"Curious Replay reaches more goals in the new world than uniform replay, {where}",
        [(arms.CURIOUS, arms.UNIFORM)],
    )


NOISE = Experiment(
    name="mini-mirror-noise",
    where="Q4 in miniature",
    title="Goals reached after all moves are mirrored, on a floor of another colour at every step",
    methods=arms.arms(
        mirror.AGENT, arms.UNIFORM, arms.COUNT, arms.ADVERSARIAL, arms.CURIOUS, arms.BALANCED
    ),
    seeds=10,
    settings={
        "mini": {**_SETTINGS, "env.floor": "random"},
        "debug": {**_DEBUG, "env.floor": "random"},
    },
    trunk=_TRUNK,
    claim=_more_goals("noise or not"),
    also=(
        tasks.solved_sooner(arms.UNIFORM),
        Claim(
            "So does balanced replay, whose loss term noise might occupy",
            [(arms.BALANCED, arms.UNIFORM)],
        ),
    ),
    # Settings are those of `mirror`; on seed 0 the agent was seen to learn its task with noise.
    registered=Registration(on="2026-11-18", first_seed=500, tuned=(0,), significant=0.01),
    **_SHARED,
)

FIRST = Experiment(
    name="mini-mirror-first",
    where="Q1 in miniature",
    title="Goals reached after all moves are mirrored, each method from its first step",
    methods=arms.arms(mirror.AGENT, arms.UNIFORM, arms.CURIOUS),
    seeds=8,
    settings={"mini": _SETTINGS, "debug": _DEBUG},
    test="pairs",
    claim=_more_goals("without a shared trunk"),
    also=(tasks.solved_sooner(arms.UNIFORM),),
    # Settings are those of `mirror`, and were not tuned again.
    registered=Registration(on="2026-11-18", first_seed=400, tuned=(0, 1, 2), significant=0.01),
    **_SHARED,
)

_V2_T0, _V2_END = 8_000, 10_500
"""Steps: DreamerV2 learns half as often, and is quicker."""

SECOND = Experiment(
    name="mini-mirror-v2",
    where="Q1 in miniature",
    title="Goals reached after all moves are mirrored, with DreamerV2",
    tasks=(mirror.WORLD,),
    methods=arms.arms("dreamerv2", arms.UNIFORM, arms.TD, arms.CURIOUS),
    measures=(
        tasks.reached(_V2_T0, _V2_END),
        mirror.TASK.until_solved(_V2_T0, _V2_END),
    ),
    seeds=10,
    settings={
        "mini": {
            **mirror.QUIET,
            # Nothing scales the returns of DreamerV2: with less, its policy no longer tries
            # anything once the task is solved, and finds back with no kind of replay.
            "agent.entropy": 2e-2,
            "env.schedule": ((0, "straight"), (_V2_T0, "mirrored")),
            "train.steps": _V2_END,
        },
        "debug": _DEBUG,
    },
    trunk=Trunk("uniform", until={"mini": _V2_T0, "debug": 60}),
    claim=_more_goals("with DreamerV2"),
    also=(
        tasks.solved_sooner(arms.UNIFORM),
        Claim("It reaches more goals than TD replay", [(arms.CURIOUS, arms.TD)]),
    ),
    debug_methods=(arms.UNIFORM, arms.CURIOUS),
    registered=Registration(on="2026-11-18", first_seed=700, tuned=(0, 1), significant=0.01),
    ladder=mirror.TASK.ladder(
        Rung(
            "steps until the trunk solves its task",
            mirror.TASK.until_learned,
            at_most=0.75 * _V2_T0,
        ),
        "mirrored",
        _V2_END - _V2_T0,
        SETTLED_V2,
    ),
    scales=("mini", "debug"),
)
