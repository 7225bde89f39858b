"""Table 10, Figures 5 and 21: is what was learned still there when an old background comes back?

The background changes at T0 and is back at 2 T0 (paper: 1M and 2M frames). The table has the return
at 50K, 990K and 2.05M frames.
"""

from curious_replay.envs.tasks import BACKGROUND_SWAP
from curious_replay.experiments.control.control_return import Paper, return_at, return_since_change
from curious_replay.experiments.experiment import Claim, Experiment
from curious_replay.experiments.rows import PAINTED, reported, row

UNIFORM, CURIOUS = row("dreamerv2", "uniform"), row("dreamerv2", "curious")
TASKS = tuple(f"background-swap/{task}" for task in BACKGROUND_SWAP)
Row = tuple[tuple[float, float], ...]


def _numbers(uniform: Row, curious: Row) -> Paper:
    """Return the numbers of two rows of the table, in the order of TASKS."""
    return {
        key: number
        for task, first, second in zip(TASKS, uniform, curious, strict=True)
        for key, number in reported(task, {UNIFORM.name: first, CURIOUS.name: second}, n=3).items()
    }


EARLY = _numbers(
    ((164.2, 25.4), (2.9, 1.0), (313.1, 45.7), (62.5, 3.8), (68.8, 29.1)),
    ((194.6, 32.2), (1.1, 1.1), (327.6, 23.6), (71.8, 17.8), (23.5, 19.3)),
)
BEFORE = _numbers(
    ((954.6, 4.0), (812.3, 2.5), (989.9, 1.1), (578.3, 55.5), (849.9, 92.0)),
    ((956.3, 6.5), (787.1, 13.6), (991.8, 0.4), (655.9, 56.7), (881.2, 59.4)),
)
BACK = _numbers(
    ((948.0, 3.9), (817.6, 0.8), (988.8, 4.1), (588.8, 52.2), (808.0, 33.9)),
    ((953.8, 7.8), (804.3, 16.9), (990.3, 1.6), (657.4, 59.7), (943.1, 12.9)),
)

EXPERIMENT = Experiment(
    name="background-swap",
    where="Table 10, Figures 5 and 21",
    title="Return just after an earlier background is back",
    tasks=TASKS,
    methods=(UNIFORM, CURIOUS),
    measures=(
        return_at(2.05, 0.05, BACK),
        return_at(0.99, 0.05, BEFORE),
        return_at(0.05, 0.05, EARLY),
        return_since_change(),
    ),
    claim=Claim(
        "Curious Replay forgets no more than uniform replay: the return is as high",
        [(CURIOUS.name, UNIFORM.name)],
        kind="no worse",
        margin=0.1,
    ),
    seeds=3,
    differs=PAINTED,
    debug_tasks=1,
)
