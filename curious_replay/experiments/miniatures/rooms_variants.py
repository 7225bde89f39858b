"""The rooms of `rooms` otherwise: the object is there from the start, or there is a television.

`SAME` was run as often as `rooms` is; what follows is as in `appears`.
"""

from typing import Any

from curious_replay.experiments.experiment import Claim, Experiment, Registration, Trunk
from curious_replay.experiments.miniatures import appears, rooms
from curious_replay.experiments.miniatures.shared import arms, exploring

_SETTINGS: dict[str, Any] = rooms.SHARED["settings"]["mini"]
_OFTEN: dict[str, Any] = appears.SHARED["settings"]["mini"]
_SHARED: dict[str, Any] = {
    "tasks": (rooms.TASK,),
    "seeds": 10,
    "scales": ("mini", "debug"),
}

SAME = Experiment(
    name="mini-object-same",
    where="Q1 and Figure 7 in miniature",
    title="Steps until an exploring agent turns to an object that is there from the start",
    methods=arms.arms(rooms.AGENT, arms.UNIFORM, arms.CURIOUS),
    measures=(rooms.SOONER, rooms.CONTACTS),
    settings={
        "mini": {
            **_SETTINGS,
            "env.schedule": ((0, "object"),),
            "train.steps": rooms.T1 - rooms.T0,
            "record.probe_every": 0,
        },
        "debug": {"env.schedule": ((0, "object"),)},
    },
    test="pairs",
    claim=Claim(
        "An object that is there from the start is touched five times as soon as with uniform "
        "replay, between half and twice the time",
        [(arms.CURIOUS, arms.UNIFORM)],
        "similar",
        1.0,
    ),
    registered=Registration(on="2026-11-19", first_seed=1200, significant=0.05),
    ladder=exploring.far_from_chance(rooms.WORLD),
    **_SHARED,
)

SAME_OFTEN = Experiment(
    name="mini-appears-same",
    where="Q1 and Figure 7 in miniature",
    title="Steps until the exploring agent, replayed more often, turns to an object that is there",
    methods=arms.arms(rooms.AGENT, arms.UNIFORM, arms.CURIOUS),
    measures=(rooms.SOONER, rooms.CONTACTS),
    settings={
        "mini": {
            **_OFTEN,
            "env.schedule": ((0, "object"),),
            "train.steps": appears.T0,
            "record.probe_every": 0,
        },
        "debug": SAME.settings["debug"],
    },
    test="pairs",
    claim=Claim(
        "Replayed more often, too, an object that is there from the start is touched five times "
        "as soon as with uniform replay, between half and twice the time",
        [(arms.CURIOUS, arms.UNIFORM)],
        "similar",
        1.0,
    ),
    registered=Registration(on="2026-11-19", first_seed=2200, significant=0.05),
    ladder=exploring.far_from_chance(rooms.WORLD._replace(budget=appears.T0)),
    **_SHARED,
)

TELEVISION = Experiment(
    name="mini-appears-television",
    where="Q4 in miniature",
    title="Steps until an exploring agent turns to an object that appears, beside a television",
    methods=arms.arms(rooms.AGENT, arms.UNIFORM, arms.ADVERSARIAL, arms.CURIOUS),
    measures=(rooms.SOONER, rooms.CONTACTS, exploring.in_view()),
    settings={
        "mini": {
            **_OFTEN,
            "env.television": 3,
            "env.schedule": ((0, "empty"), (appears.T0, "object")),
            "train.steps": appears.T1,
            "record.probe_every": 0,
        },
        "debug": {
            "env.television": 3,
            "env.schedule": ((0, "empty"), (60, "object")),
        },
    },
    trunk=Trunk("uniform", until={"mini": appears.T0, "debug": 60}),
    claim=Claim(
        "Beside a television, too, Curious Replay touches a new object five times sooner than "
        "uniform replay does",
        [(arms.CURIOUS, arms.UNIFORM)],
    ),
    also=(
        Claim(
            "So it does with loss alone, which noise might occupy",
            [(arms.ADVERSARIAL, arms.UNIFORM)],
        ),
    ),
    debug_methods=(arms.UNIFORM, arms.CURIOUS),
    registered=Registration(on="2026-11-19", first_seed=2300, significant=0.05),
    ladder=exploring.ladder(appears.WORLD, coverage=1.0),
    **_SHARED,
)
