"""Figure 2: how soon does an exploring agent turn to an object that appears?"""

from curious_replay.experiments.assay import frames_to, plan2explore, with_paper
from curious_replay.experiments.experiment import Claim, Experiment

TASK = "object-interaction"
UNIFORM, TD, CURIOUS = plan2explore("uniform"), plan2explore("td"), plan2explore("curious")

EXPERIMENT = Experiment(
    name="object-interaction",
    where="Figures 2 and 15",
    title="Frames until an exploring agent interacts with a ball that appears",
    tasks=(TASK,),
    methods=(UNIFORM, TD, CURIOUS),
    measures=(
        with_paper(
            frames_to(5),
            {(TASK, UNIFORM.name): (3.7e5, 0.6e5), (TASK, CURIOUS.name): (0.5e5, 0.1e5)},
            n=7,
        ),
        frames_to(50),
        frames_to(500),
    ),
    claim=Claim(
        "Curious Replay interacts sooner than uniform replay and than TD replay",
        [(CURIOUS.name, UNIFORM.name), (CURIOUS.name, TD.name)],
    ),
    seeds=7,
)
