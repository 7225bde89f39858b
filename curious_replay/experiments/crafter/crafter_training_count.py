"""Table 8: is what is newly found in Crafter trained on more often?

Visits of steps at which a resource is held, relative to those under uniform replay.
"""

from collections.abc import Mapping, Sequence

from curious_replay.analysis import crafter_replay
from curious_replay.analysis.load import Run
from curious_replay.experiments.crafter.score import TASK
from curious_replay.experiments.experiment import Claim, Experiment, Key, Measure, Reported
from curious_replay.experiments.rows import reported, row

UNIFORM, CURIOUS = row("dreamerv3", "uniform"), row("dreamerv3", "curious")
TABLE = {"wood_pickaxe": 1.9, "stone": 5.5, "stone_pickaxe": 4.6, "iron": 6.2, "wood": 1.1}


def training(resource: str, paper: Mapping[Key, Reported] | None = None) -> Measure:
    """Return the measure: visits of steps at which a resource is held, relative to uniform."""

    def values(runs: Sequence[Run]) -> list[float]:
        return crafter_replay.training_by_resource(runs, [resource])[resource].values

    return Measure(f"relative training: {resource}", values, paper=paper or {})


EXPERIMENT = Experiment(
    name="crafter-training-count",
    where="Table 8",
    title="How often steps are trained on at which a newly found resource is held",
    tasks=(TASK,),
    methods=(UNIFORM, CURIOUS),
    measures=tuple(
        training(resource, reported(TASK, {CURIOUS.name: number}, n=5))
        for resource, number in TABLE.items()
    ),
    claim=Claim(
        "Steps that hold a newly found resource are trained on more often than in uniform replay",
        [(CURIOUS.name, UNIFORM.name)],
    ),
    seeds=5,
)
