"""Figure 22: is Curious Replay distracted by what cannot be predicted?

Every frame has another background, drawn at random.
"""

from curious_replay.experiments.control.control_return import final_return
from curious_replay.experiments.experiment import Claim, Experiment
from curious_replay.experiments.rows import PAINTED, row

UNIFORM, CURIOUS = row("dreamerv2", "uniform"), row("dreamerv2", "curious")

EXPERIMENT = Experiment(
    name="random-background",
    where="Figure 22",
    title="Return in front of a background that is another picture at every frame",
    tasks=("random-background/walker_walk",),
    methods=(UNIFORM, CURIOUS),
    measures=(final_return(),),
    claim=Claim(
        "Curious Replay does as well as uniform replay",
        [(CURIOUS.name, UNIFORM.name)],
        kind="no worse",
        margin=0.1,
    ),
    seeds=5,
    differs=PAINTED,
    # As long as on other control tasks: nothing changes that would ask for more.
    settings={"paper": {"train.steps": 500_000}, "mini": {"train.steps": 20_000}},
)
