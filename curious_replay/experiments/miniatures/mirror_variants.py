"""The task that turns round, under other conditions: with noise, and without a fork.

Both are `toy/mirror` as in `mirror`: the same T0, the same measures.
"""

from typing import Any

from curious_replay.experiments.experiment import Claim, Experiment, Registration, Trunk
from curious_replay.experiments.miniatures import arms, mirror
from curious_replay.run.settings.presets import Settings

_SETTINGS: Settings = {
    **mirror.QUIET,
    "env.schedule": ((0, "straight"), (mirror.T0, "mirrored")),
    "train.steps": mirror.T1,
}
_DEBUG: Settings = {"env.schedule": ((0, "straight"), (60, "mirrored"))}
_TRUNK = Trunk("uniform", until={"mini": mirror.T0, "debug": 60})
_SHARED: dict[str, Any] = {
    "tasks": (mirror.TASK,),
    "measures": (
        mirror.reached(mirror.T0, mirror.T1),
        mirror.until_solved(mirror.T0, mirror.T1),
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


_SOONER = Claim(
    "Curious Replay solves the task again sooner than uniform replay",
    [(arms.CURIOUS, arms.UNIFORM)],
    measure=mirror.SOLVED,
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
        _SOONER,
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
    also=(_SOONER,),
    # Settings are those of `mirror`, and were not tuned again.
    registered=Registration(on="2026-11-18", first_seed=400, tuned=(0, 1, 2), significant=0.01),
    **_SHARED,
)
