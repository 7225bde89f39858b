"""Figure 13: does a mixture of TD and adversarial replay do what Curious Replay does?

A part f of each batch is drawn by temporal difference, the rest by loss. The paper has six runs in
all, with f from 0.1 to 0.9, and no numbers.
"""

from curious_replay.experiments.assay.shared import CURIOUS, MAIN, TASK, frames_to
from curious_replay.experiments.experiment import Claim, Experiment
from curious_replay.experiments.rows import row

MIXTURES = tuple(
    row("plan2explore", "td+adversarial", f"f = {f}", {"replay.fraction": f})
    for f in (0.1, 0.3, 0.5, 0.7, 0.9)
)

EXPERIMENT = Experiment(
    name="td-adversarial",
    where="Figure 13",
    title="Frames until interaction with mixtures of TD and adversarial replay",
    tasks=(TASK,),
    methods=(CURIOUS, *MIXTURES),
    measures=(frames_to(5, {key: MAIN[key] for key in MAIN if key[1] == CURIOUS.name}),),
    claim=Claim(
        "No mixture of TD and adversarial replay interacts as soon as Curious Replay",
        [(CURIOUS.name, mixture.name) for mixture in MIXTURES],
    ),
    seeds=2,
    debug_methods=(CURIOUS.name, "f = 0.3"),
)
