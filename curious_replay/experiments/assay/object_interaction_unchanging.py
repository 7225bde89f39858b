"""Figures 7 and 14: where the object is there from the start, is Curious Replay as fast as uniform?

Figure 7 shows agents beside mice, in seconds (0.03 a frame); only its agents are run here.
"""

from curious_replay.experiments.assay.shared import CURIOUS, TD, UNIFORM, frames_to
from curious_replay.experiments.experiment import Claim, Experiment

EXPERIMENT = Experiment(
    name="object-interaction-unchanging",
    where="Figures 7 and 14",
    title="Frames until an exploring agent interacts with a ball that is there from the start",
    tasks=("object-interaction-unchanging",),
    methods=(UNIFORM, TD, CURIOUS),
    measures=(frames_to(5),),
    claim=Claim(
        "In an unchanging world Curious Replay is as fast as uniform replay",
        [(CURIOUS.name, UNIFORM.name)],
        kind="no worse",
        margin=0.1,
    ),
    seeds=7,
    # The released analysis looks at 1M frames; what is asked happens in the first of them.
    settings={"paper": {"train.steps": 500_000}, "mini": {"train.steps": 25_000}},
    debug_methods=(UNIFORM.name, CURIOUS.name),
)
