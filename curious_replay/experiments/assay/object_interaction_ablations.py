"""Table 2, first row: what do the two parts of Curious Replay do alone?"""

from curious_replay.experiments.assay.shared import CURIOUS, MAIN, TASK, UNIFORM, frames_to
from curious_replay.experiments.experiment import Claim, Experiment
from curious_replay.experiments.rows import reported, row

ADVERSARIAL, COUNT = row("plan2explore", "adversarial"), row("plan2explore", "count")
PARTS = reported(TASK, {ADVERSARIAL.name: (1.8e5, 0.5e5), COUNT.name: (2.2e5, 0.7e5)})

EXPERIMENT = Experiment(
    name="object-interaction-ablations",
    where="Table 2, Object",
    title="Frames until interaction with only the loss, or only the count, in the priority",
    tasks=(TASK,),
    methods=(UNIFORM, ADVERSARIAL, COUNT, CURIOUS),
    measures=(frames_to(5, {**MAIN, **PARTS}),),
    claim=Claim(
        "Each part alone interacts sooner than uniform replay, both together sooner still",
        [
            (ADVERSARIAL.name, UNIFORM.name),
            (COUNT.name, UNIFORM.name),
            (CURIOUS.name, ADVERSARIAL.name),
            (CURIOUS.name, COUNT.name),
        ],
    ),
    seeds=7,
)
