"""Figures 2, 10 to 12, 15 and 16: how soon does an exploring agent turn to an object that appears?

Figures 10 (its pixels in replay), 11 (contacts so far), 12 (places) and 16 (priorities along the
buffer) are charts that the report draws of the same runs.
"""

from curious_replay.experiments.assay.shared import (
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
    where="Figures 2, 10 to 12, 15 and 16",
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
