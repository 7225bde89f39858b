"""Figure 8: is it what is replayed that holds uniform replay back?

If the buffer is emptied when the ball appears, only what is new can be replayed.
"""

from curious_replay.experiments.assay.shared import CURIOUS, MAIN, TASK, UNIFORM, frames_to
from curious_replay.experiments.experiment import Claim, Experiment
from curious_replay.experiments.rows import row

CLEARED = row(
    "plan2explore", "uniform", "Plan2Explore, cleared at T0", {"replay.clear_at_change": 1}
)

EXPERIMENT = Experiment(
    name="cleared-buffer",
    where="Figure 8",
    title="Frames until interaction if the buffer is emptied when the ball appears",
    tasks=(TASK,),
    methods=(UNIFORM, CLEARED, CURIOUS),
    measures=(frames_to(5, MAIN),),
    claim=Claim(
        "With a buffer that is cleared at the change, uniform replay interacts sooner",
        [(CLEARED.name, UNIFORM.name)],
    ),
    seeds=2,
)
