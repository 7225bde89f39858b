"""An object appears: the world of `rooms`, replayed more often.

In `rooms` each step is replayed 64 times, of which a new step asks for some 24 until the count term
has fallen to the scale of the loss; in the paper it asks for 19 of 100. Here each is replayed 128
times, in many short windows, and imagination begins from fewer states. The object appears in the
last room at T0, and at T1 it is gone.
"""

from typing import Any

from curious_replay.experiments.assay.shared import frames_to
from curious_replay.experiments.experiment import Claim, Experiment, Registration, Trunk
from curious_replay.experiments.miniatures import rooms
from curious_replay.experiments.miniatures.shared import arms, exploring

T0, T1, END = 8_000, 10_000, 11_000
"""Steps, which are frames here: the object appears, it is gone, the end."""
WORLD = rooms.WORLD._replace(budget=T1 - T0)
AT_END, BEFORE = rooms.soon(T1)
PAIR = (arms.CURIOUS, arms.UNIFORM)
SHARED: dict[str, Any] = {
    "tasks": (rooms.TASK,),
    "seeds": 10,
    "settings": {
        "mini": {
            **rooms.SHARED["settings"]["mini"],
            "env.schedule": ((0, "empty"), (T0, "object"), (T1, "empty")),
            "agent.dreamer.starts": 0.25,
            "train.steps": END,
            "train.ratio": 128.0,
            "train.batch_size": 32,
            "train.batch_length": 8,
        },
        "debug": rooms.SHARED["settings"]["debug"],
    },
    "trunk": Trunk("uniform", until={"mini": T0, "debug": 60}),
    # On the seeds 0 to 2 the fifth contact came after 191, 354 and 542 steps with curious replay,
    # after 75, 1,430 and 148 with balanced replay, and never in 3,000 with uniform replay.
    "registered": Registration(on="2026-11-19", first_seed=2000, significant=0.01),
    "ladder": exploring.ladder(WORLD, coverage=1.0),
    "scales": ("mini", "debug"),
}
"""The experiments below look at the same runs."""

APPEARS = Experiment(
    name="mini-appears",
    where="Q1 in miniature",
    title="Steps until an exploring agent turns to an object that appears, replayed more often",
    methods=arms.arms(rooms.AGENT, arms.UNIFORM, arms.TD, arms.MIXED, arms.CURIOUS, arms.BALANCED),
    measures=(
        rooms.SOONER,
        rooms.CONTACTS,
        frames_to(1),
        frames_to(50),
        BEFORE,
        exploring.in_view(T1),
    ),
    claim=Claim(
        "Replayed more often, Curious Replay comes to the fifth contact with a new object sooner "
        "than uniform replay does",
        [PAIR],
    ),
    also=(
        Claim("Replayed more often, it touches it more often", [PAIR], measure=rooms.CONTACTS.name),
        Claim(
            "Replayed more often, it is sooner than TD replay, alone or with adversarial replay",
            [(arms.CURIOUS, arms.TD), (arms.CURIOUS, arms.MIXED)],
        ),
        Claim(
            "Replayed more often, balanced replay is sooner than uniform replay, too",
            [(arms.BALANCED, arms.UNIFORM)],
        ),
    ),
    debug_methods=(arms.UNIFORM, arms.CURIOUS),
    **SHARED,
)

AGAIN = Experiment(
    name="mini-appears-again",
    where="Q1 in miniature",
    title="Steps until an exploring agent turns to an object that appears, asked once more",
    tasks=(rooms.TASK,),
    methods=arms.arms(rooms.AGENT, arms.UNIFORM, arms.CURIOUS),
    measures=(rooms.SOONER, rooms.CONTACTS, frames_to(1), frames_to(50), exploring.in_view()),
    seeds=12,
    settings={
        "mini": {
            **SHARED["settings"]["mini"],
            "env.schedule": ((0, "empty"), (T0, "object")),
            "train.steps": T1,
            "record.probe_every": 0,
        },
        "debug": SHARED["settings"]["debug"],
    },
    trunk=SHARED["trunk"],
    claim=Claim(
        "Asked once more, Curious Replay comes to the fifth contact with a new object sooner than "
        "uniform replay does",
        [PAIR],
    ),
    also=(Claim("Asked once more, it touches it more often", [PAIR], measure=rooms.CONTACTS.name),),
    # `APPEARS` had curious replay sooner on nine of ten seeds and as soon on one, p = 0.0039, which
    # its correction for five comparisons made 0.02, where 0.01 was asked for. Nothing is changed
    # but the number of seeds and of comparisons.
    registered=Registration(
        on="2026-11-20", first_seed=2400, tuned=(0, 1, 2, *range(2000, 2010)), significant=0.01
    ),
    ladder=SHARED["ladder"],
    scales=SHARED["scales"],
)

PARTS = Experiment(
    name="mini-appears-parts",
    where="Q3 in miniature",
    title="Steps until the exploring agent turns to the object, with parts of the rule",
    methods=arms.arms(
        rooms.AGENT, arms.UNIFORM, arms.COUNT, arms.ADVERSARIAL, arms.CURIOUS, arms.DISTINCT
    ),
    measures=(rooms.SOONER, rooms.CONTACTS),
    claim=Claim(
        "Replayed more often, the explorer comes to the fifth contact sooner with loss or count "
        "alone than with uniform replay",
        [(arms.ADVERSARIAL, arms.UNIFORM), (arms.COUNT, arms.UNIFORM)],
    ),
    also=(
        Claim(
            "Replayed more often, so it does with batches without repeats",
            [(arms.DISTINCT, arms.UNIFORM)],
        ),
    ),
    debug_methods=(arms.UNIFORM, arms.COUNT),
    **SHARED,
)

GONE = Experiment(
    name="mini-appears-gone",
    where="Q5 in miniature",
    title="What a world model knows of the object a few steps ahead, once it is gone",
    methods=(
        *arms.arms(rooms.AGENT, arms.UNIFORM, arms.CURIOUS, arms.BALANCED),
        arms.cleared(rooms.AGENT, 2),
    ),
    measures=(AT_END, BEFORE),
    claim=Claim(
        "Replayed more often, the model knows no less of an object that is gone than with uniform "
        "replay, 1 to 3 steps ahead",
        [PAIR, (arms.BALANCED, arms.UNIFORM)],
        "no worse",
        0.1,
    ),
    also=(
        Claim(
            "Replayed more often, a buffer that was cleared when it went knows less",
            [(arms.CURIOUS, arms.CLEARED), (arms.UNIFORM, arms.CLEARED)],
        ),
        Claim(
            "Replayed more often, just before it goes the model knows more of it than with uniform "
            "replay",
            [PAIR, (arms.BALANCED, arms.UNIFORM)],
            measure=BEFORE.name,
        ),
    ),
    debug_methods=(arms.UNIFORM, arms.CLEARED),
    **SHARED,
)
