"""Table 7: is what is newly found in Crafter more likely to be replayed?

Chance of steps at which a resource is held to be drawn, relative to uniform replay, whose own is 1.
The paper says it of all resources beyond wood.
"""

from collections.abc import Mapping, Sequence

from curious_replay.analysis import crafter, crafter_replay
from curious_replay.analysis.load import Run
from curious_replay.experiments.crafter.score import TASK
from curious_replay.experiments.experiment import Claim, Experiment, Key, Measure, Reported
from curious_replay.experiments.rows import reported, row

V2, V2_CURIOUS = row("dreamerv2", "uniform"), row("dreamerv2", "curious")
V3, V3_CURIOUS = row("dreamerv3", "uniform"), row("dreamerv3", "curious")
TABLE = {  # DreamerV2, DreamerV3
    "wood_pickaxe": (1.7, 1.1),
    "stone": (1.9, 1.2),
    "stone_pickaxe": (2.6, 1.1),
    "iron": (3.1, 1.2),
    "wood": (1.2, 1.0),
}


def sampling(resource: str, paper: Mapping[Key, Reported] | None = None) -> Measure:
    """Return the measure: chance to be drawn where a resource is held, relative to uniform."""

    def values(runs: Sequence[Run]) -> list[float]:
        budget = crafter.budget_of(runs)
        return crafter_replay.sampling_by_resource(runs, budget, [resource])[resource].values

    return Measure(f"relative sampling: {resource}", values, paper=paper or {})


def _reported(resource: str) -> Mapping[Key, Reported]:
    second, third = TABLE[resource]
    return {
        **reported(TASK, {V2_CURIOUS.name: second}, n=10),
        **reported(TASK, {V3_CURIOUS.name: third}, n=5),
    }


EXPERIMENT = Experiment(
    name="crafter-sampling",
    where="Table 7",
    title="Chance to be replayed of steps at which a newly found resource is held",
    tasks=(TASK,),
    methods=(V2, V2_CURIOUS, V3, V3_CURIOUS),
    measures=tuple(sampling(resource, _reported(resource)) for resource in TABLE),
    claim=Claim(
        "Steps that hold a resource beyond wood are more likely to be drawn than in uniform replay",
        [(V2_CURIOUS.name, V2.name), (V3_CURIOUS.name, V3.name)],
    ),
    seeds=10,
)
