"""Figures 2 and 15: how soon does an exploring agent turn to an object that appears?"""

from curious_replay.experiments.assay import (
    CURIOUS,
    MAIN,
    TASK,
    TD,
    UNIFORM,
    frames_to,
    model_error_since_change,
)
from curious_replay.experiments.experiment import Claim, Experiment

EXPERIMENT = Experiment(
    name="object-interaction",
    where="Figures 2 and 15",
    title="Frames until an exploring agent interacts with a ball that appears",
    tasks=(TASK,),
    methods=(UNIFORM, TD, CURIOUS),
    measures=(frames_to(5, MAIN), frames_to(50), frames_to(500), model_error_since_change()),
    claim=Claim(
        "Curious Replay interacts sooner than uniform replay and than TD replay",
        [(CURIOUS.name, UNIFORM.name), (CURIOUS.name, TD.name)],
    ),
    seeds=7,
)
