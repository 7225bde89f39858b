"""A task turns round, and back: `toy/mirror`, a few minutes a run.

DreamerV3 learns to reach a goal in a small grid. At T0 every move is mirrored; at T1 the old world
is back. T0 is some ten times as long as adapting takes, as in the paper, so that the past has its
weight.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from curious_replay.analysis import returns
from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import (
    Claim,
    Experiment,
    Measure,
    Registration,
    Trunk,
    each,
)
from curious_replay.experiments.ladder import Footing, Rung
from curious_replay.experiments.miniatures import arms
from curious_replay.experiments.miniatures.policies import Policy, chooses, play
from curious_replay.experiments.miniatures.settled import SETTLED
from curious_replay.run.settings.presets import Settings

TASK = "toy/mirror"
T0, T1, END = 10_000, 12_500, 12_950
"""Steps, which are frames here: the moves are mirrored, they are as before again, the end."""
WELL = 5.0
"""Steps that an episode may take on average for the task to be solved; 4.2 is the least."""
QUIET: Settings = {
    "env.image_size": 16,
    "agent.starts": 0.5,
    "train.save_every": 4_000,
    "record.tensorboard": False,
}
"""What makes a run cheap: small pictures, imagination from half of the states, few files."""
UP, DOWN, LEFT, RIGHT = range(4)
SOLVED = "steps to solve it again"


def until_solved(begin: int, end: int) -> Measure:
    """Return the measure: steps from `begin` until the task is solved, at `end` at the latest."""

    def until(run: Run) -> float:
        played = run.played()
        seen = played.where(played["step"] <= end)
        rows = (seen["step"], seen["length"], seen["return"])
        return returns.steps_to_solve(*rows, begin, within=WELL)

    return Measure(SOLVED, each(until), lower_is_better=True, never=True)


def reached(begin: int, end: int) -> Measure:
    """Return the measure: how often the goal is reached from one step to another."""

    def count(run: Run) -> float:
        played = run.played()
        inside = (played["step"] - played["length"] >= begin) & (played["step"] <= end)
        return float(played["return"][inside].sum())

    return Measure(f"goals reached in {end - begin:,} steps", each(count))


def retained(before: int, back: int) -> Measure:
    """Return the measure: return of 20 episodes once the old world is back, minus before T0."""

    def difference(run: Run) -> float:
        played = run.played()
        steps, lengths, values = played["step"], played["length"], played["return"]
        after = returns.just_after(steps, lengths, values, back)
        return after - returns.just_before(steps, values, before)

    return Measure("return when the old world is back, minus before", each(difference))


def to_solve(footing: Footing, policy: Policy, phase: str, steps: int) -> list[float]:
    """Return how many of so many steps a policy needs to solve the task of a phase."""
    found = []
    for run in footing.runs:
        rows = play(footing.config, policy, phase, steps, run.seed)
        episodes = _episodes(rows["last"], rows["reward"])
        found.append(returns.steps_to_solve(*episodes, within=WELL))
    return found


def _episodes(last: Array, reward: Array) -> tuple[list[int], list[int], list[float]]:
    """Return the steps at which episodes ended, their lengths, their returns."""
    ends = [index + 1 for index, ended in enumerate(last) if ended]
    begins = [0, *ends]
    lengths = [end - begin for begin, end in zip(begins, ends, strict=False)]
    sums = [float(reward[begin:end].sum()) for begin, end in zip(begins, ends, strict=False)]
    return ends, lengths, sums


def oracle(rng: np.random.Generator, info: Mapping[str, Any]) -> int:
    """Go to the goal, which is in the lower right corner, whichever way moves go."""
    row, column = info["log_agent_position"]
    if info["phase"] == "mirrored":
        return UP if row <= column else LEFT
    return DOWN if row <= column else RIGHT


def ladder(learns: Rung, phase: str, steps: int) -> tuple[Rung, ...]:
    """Return the ladder of a task: it is learned, and not solved by chance in so many steps."""
    return (
        learns,
        SETTLED,
        Rung(
            "steps of an oracle to solve the task",
            lambda footing: to_solve(footing, oracle, phase, steps),
            at_most=steps / 5,
        ),
        Rung(
            "steps of a random policy to solve it",
            lambda footing: to_solve(footing, chooses(4), phase, steps),
            at_least=steps,
        ),
    )


def until_learned(footing: Footing) -> list[float]:
    """Return the steps until each run solves its first task."""
    played = [run.played() for run in footing.runs]
    return [
        returns.steps_to_solve(p["step"], p["length"], p["return"], within=WELL) for p in played
    ]


LADDER = ladder(
    Rung("steps until the trunk solves its task", until_learned, at_most=T0 / 2),
    "mirrored",
    T1 - T0,
)
AGENT = "dreamerv3"
SHARED: dict[str, Any] = {
    "tasks": (TASK,),
    "seeds": 10,
    "settings": {
        "mini": {
            **QUIET,
            "env.schedule": ((0, "straight"), (T0, "mirrored"), (T1, "straight")),
            "train.steps": END,
        },
        "debug": {"env.schedule": ((0, "straight"), (60, "mirrored"), (90, "straight"))},
    },
    "trunk": Trunk("uniform", until={"mini": T0, "debug": 60}),
    # A first registration, whose trunks had a quarter of the train ratio, was withdrawn before any
    # of its runs (seeds 100 and 101) was looked at: so little visited, old steps keep most of the
    # count term, and curious replay has to catch up with them first.
    "registered": Registration(on="2026-11-18", first_seed=200, tuned=(0, 1, 2), significant=0.01),
    "ladder": LADDER,
    "scales": ("mini", "debug"),
}
"""The experiments below look at the same runs."""

TURNED = Experiment(
    name="mini-mirror",
    where="Q1 in miniature",
    title="Goals reached, and steps until a task is solved again, after all moves are mirrored",
    methods=arms.arms(AGENT, arms.UNIFORM, arms.TD, arms.CURIOUS, arms.BALANCED),
    measures=(reached(T0, T1), until_solved(T0, T1)),
    claim=Claim(
        "Curious Replay reaches more goals in the new world than uniform replay",
        [(arms.CURIOUS, arms.UNIFORM)],
    ),
    also=(
        Claim(
            "Curious Replay solves the task again sooner than uniform replay",
            [(arms.CURIOUS, arms.UNIFORM)],
            measure=SOLVED,
        ),
        Claim(
            "Curious Replay solves the task again sooner than TD replay",
            [(arms.CURIOUS, arms.TD)],
            measure=SOLVED,
        ),
        Claim(
            "Balanced replay solves the task again sooner than uniform replay",
            [(arms.BALANCED, arms.UNIFORM)],
            measure=SOLVED,
        ),
    ),
    **SHARED,
)

BACK = Experiment(
    name="mini-mirror-back",
    where="Q5 in miniature",
    title="Return when the old world is back, after the agent has adapted to another",
    methods=(
        *arms.arms(AGENT, arms.UNIFORM, arms.CURIOUS, arms.BALANCED),
        arms.cleared(AGENT, 1),
    ),
    measures=(retained(T0, T1), until_solved(T0, T1)),
    claim=Claim(
        "Curious and balanced replay retain the old world as uniform replay does",
        [(arms.CURIOUS, arms.UNIFORM), (arms.BALANCED, arms.UNIFORM)],
        "no worse",
        0.25,
    ),
    also=(
        Claim(
            "A buffer that was cleared at the change does not",
            [(arms.UNIFORM, arms.CLEARED), (arms.CURIOUS, arms.CLEARED)],
        ),
    ),
    **SHARED,
)

PARTS = Experiment(
    name="mini-mirror-parts",
    where="Q3 in miniature",
    title="Goals reached after all moves are mirrored, with parts of the rule",
    methods=arms.arms(AGENT),
    measures=(reached(T0, T1), until_solved(T0, T1)),
    claim=Claim(
        "With loss or count alone more goals are reached than with uniform replay",
        [(arms.ADVERSARIAL, arms.UNIFORM), (arms.COUNT, arms.UNIFORM)],
    ),
    also=(
        Claim(
            "With both together more than with each alone, and than with TD + adversarial replay",
            [
                (arms.CURIOUS, arms.ADVERSARIAL),
                (arms.CURIOUS, arms.COUNT),
                (arms.CURIOUS, arms.MIXED),
            ],
        ),
        Claim(
            "With batches without repeats more than with them",
            [(arms.DISTINCT, arms.CURIOUS)],
        ),
    ),
    **SHARED,
)
