"""Table 2, second row: what do the two parts of Curious Replay do alone on Crafter?

Uniform replay's number is that of Table 1.
"""

from curious_replay.experiments.crafter.score import TASK, score
from curious_replay.experiments.experiment import Claim, Experiment
from curious_replay.experiments.rows import row

UNIFORM, ADVERSARIAL, COUNT, CURIOUS = (
    row("dreamerv3", replay) for replay in ("uniform", "adversarial", "count", "curious")
)
NUMBERS = {
    UNIFORM.name: (14.5, 1.6),
    ADVERSARIAL.name: (17.3, 2.7),
    COUNT.name: (16.2, 1.3),
    CURIOUS.name: (19.4, 1.6),
}

EXPERIMENT = Experiment(
    name="crafter-ablations",
    where="Table 2, Crafter",
    title="Crafter score with only the loss, or only the count, in the priority",
    tasks=(TASK,),
    methods=(UNIFORM, ADVERSARIAL, COUNT, CURIOUS),
    measures=(score(NUMBERS),),
    claim=Claim(
        "Each part alone scores higher than uniform replay, both together higher still",
        [
            (ADVERSARIAL.name, UNIFORM.name),
            (COUNT.name, UNIFORM.name),
            (CURIOUS.name, ADVERSARIAL.name),
            (CURIOUS.name, COUNT.name),
        ],
    ),
    seeds=10,
)
