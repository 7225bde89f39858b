"""An object appears in the last of three rooms: `toy/two-rooms`, without any reward.

Plan2Explore on DreamerV3 explores a row of rooms, in short episodes that all begin in the first; at
T0 an object that can be pushed appears in the last one, and at T1 it is gone. Chance hardly gets
there within an episode: see the ladder.
"""

from typing import Any

from curious_replay.analysis import model_error
from curious_replay.analysis.load import Run
from curious_replay.experiments.assay.shared import frames_to, model_error_since_change
from curious_replay.experiments.experiment import (
    Claim,
    Experiment,
    Measure,
    Registration,
    Trunk,
    each,
)
from curious_replay.experiments.miniatures.shared import arms, exploring
from curious_replay.experiments.miniatures.shared.policies import chooses

TASK, AGENT = "toy/two-rooms", "plan2explore-v3"
T0, T1, END = 8_000, 11_000, 12_000
"""Steps, which are frames here: the object appears, it is gone, the end."""
JUST = 500
"""Steps before T1, and before the end, over which errors of the model are averaged."""
STAY, UP, DOWN, LEFT, RIGHT = range(5)
WORLD = exploring.World(
    empty="empty",
    shown="object",
    budget=T1 - T0,
    warm=0,  # each episode begins in the first room
    chance=chooses(5),
    oracle=lambda rng, info: RIGHT,
)


SOON = (1, 3)
"""Steps ahead in which models of this size know where the object is."""


def _forgetting(
    run: Run, ahead: tuple[int, int] | None = None, gone: int = T1
) -> model_error.Forgetting:
    return model_error.forgetting(*model_error.errors_of(run, ahead=ahead), gone, JUST)


def soon(gone: int) -> tuple[Measure, Measure]:
    """Return the measures: error 1 to 3 steps ahead when the object is gone, and just before."""
    after = Measure(
        "model error 1 to 3 steps ahead once it is gone",
        each(lambda run: _forgetting(run, SOON, gone).after),
        lower_is_better=True,
        ratio=True,
    )
    before = Measure(
        "model error 1 to 3 steps ahead before it goes",
        each(lambda run: _forgetting(run, SOON, gone).before),
        lower_is_better=True,
        ratio=True,
    )
    return after, before


ERROR_AT_END = Measure(
    "model error on the object once it is gone",
    each(lambda run: _forgetting(run).after),
    lower_is_better=True,
    ratio=True,
)
ERROR_BEFORE = Measure(
    "model error on the object before it goes",
    each(lambda run: _forgetting(run).before),
    lower_is_better=True,
    ratio=True,
)
# Looked at after the registered ones had shown nothing; no claim is about them.
SOON_AT_END, SOON_BEFORE = soon(T1)
SOONER, CONTACTS = frames_to(5), exploring.contacts()
SHARED: dict[str, Any] = {
    "tasks": (TASK,),
    "seeds": 10,
    "settings": {
        "mini": {
            "env.image_size": 16,
            "env.rooms": 3,
            "env.room": 7,
            "env.view": 7,
            "env.length": 100,
            "env.schedule": ((0, "empty"), (T0, "object"), (T1, "empty")),
            "agent.task_actor": "off",
            "agent.normalise": "on",
            "agent.ensemble.members": 5,
            "agent.ensemble.layers": 2,
            "agent.ensemble.units": 128,
            "agent.ensemble.target": "mean",
            "agent.ensemble.lr": 3e-4,
            "agent.dreamer.model_lr": 1e-3,
            "agent.dreamer.actor_lr": 3e-4,
            "agent.dreamer.critic_lr": 1e-3,
            "agent.dreamer.entropy": 1e-2,
            "agent.dreamer.imagination": 12,
            "agent.dreamer.starts": 0.5,
            "agent.dreamer.discount_horizon": 50.0,
            "train.steps": END,
            "train.save_every": 4_000,
            "train.log_every": 250,
            "eval.every": 0,
            "record.video_every": 0,
            "record.probe_every": 250,
            "record.tensorboard": False,
        },
        "debug": {
            "env.schedule": ((0, "empty"), (60, "object"), (90, "empty")),
            "record.probe_every": 50,
        },
    },
    "trunk": Trunk("uniform", until={"mini": T0, "debug": 60}),
    "registered": Registration(on="2026-11-19", first_seed=1000, significant=0.01),
    "ladder": exploring.ladder(WORLD, coverage=1.0),
    "scales": ("mini", "debug"),
}
"""The experiments below look at the same runs."""

APPEARS = Experiment(
    name="mini-object",
    where="Q1 in miniature",
    title="Steps until an exploring agent turns to an object that appears",
    methods=arms.arms(AGENT, arms.UNIFORM, arms.TD, arms.MIXED, arms.CURIOUS, arms.BALANCED),
    measures=(
        SOONER,
        CONTACTS,
        frames_to(1),
        frames_to(50),
        frames_to(500),
        model_error_since_change(),
        exploring.in_view(T1),
    ),
    claim=Claim(
        "Curious Replay comes to the fifth contact with a new object sooner than uniform replay "
        "does",
        [(arms.CURIOUS, arms.UNIFORM)],
    ),
    also=(
        Claim("It touches it more often", [(arms.CURIOUS, arms.UNIFORM)], measure=CONTACTS.name),
        Claim(
            "It is sooner than TD replay, alone or with adversarial replay",
            [(arms.CURIOUS, arms.TD), (arms.CURIOUS, arms.MIXED)],
        ),
        Claim(
            "Balanced replay is sooner than uniform replay, too", [(arms.BALANCED, arms.UNIFORM)]
        ),
    ),
    debug_methods=(arms.UNIFORM, arms.CURIOUS),
    **SHARED,
)

PARTS = Experiment(
    name="mini-object-parts",
    where="Q3 in miniature",
    title="Steps until the exploring agent turns to the object, with parts of the rule",
    methods=arms.arms(
        AGENT, arms.UNIFORM, arms.COUNT, arms.ADVERSARIAL, arms.CURIOUS, arms.DISTINCT
    ),
    measures=(SOONER, CONTACTS),
    claim=Claim(
        "With loss or count alone it touches the new object sooner than with uniform replay",
        [(arms.ADVERSARIAL, arms.UNIFORM), (arms.COUNT, arms.UNIFORM)],
    ),
    also=(Claim("So it does with batches without repeats", [(arms.DISTINCT, arms.UNIFORM)]),),
    debug_methods=(arms.UNIFORM, arms.COUNT),
    **SHARED,
)

GONE = Experiment(
    name="mini-object-gone",
    where="Q5 in miniature",
    title="What a world model knows of the object once it is gone",
    methods=(
        *arms.arms(AGENT, arms.UNIFORM, arms.CURIOUS, arms.BALANCED),
        arms.cleared(AGENT, 2),
    ),
    measures=(ERROR_AT_END, ERROR_BEFORE, SOON_AT_END, SOON_BEFORE),
    claim=Claim(
        "Of an object that is gone the model knows no less than with uniform replay, in the "
        "mean of 20 steps ahead (1 to 3 steps ahead it knows less)",
        [(arms.CURIOUS, arms.UNIFORM), (arms.BALANCED, arms.UNIFORM)],
        "no worse",
        0.1,
    ),
    also=(
        Claim(
            "A buffer that was cleared when it went knows less",
            [(arms.CURIOUS, arms.CLEARED), (arms.UNIFORM, arms.CLEARED)],
        ),
    ),
    debug_methods=(arms.UNIFORM, arms.CLEARED),
    **SHARED,
)
