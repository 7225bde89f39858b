"""Table 6: does learning more often help Curious Replay?"""

from curious_replay.experiments.crafter.score import DEFAULT, EIGHT_TIMES, TASK, score
from curious_replay.experiments.experiment import Claim, Experiment
from curious_replay.experiments.rows import row

UNIFORM = row("dreamerv2", "uniform")
UNIFORM_8 = row("dreamerv2", "uniform", "DreamerV2 8x", EIGHT_TIMES)
CURIOUS = row("dreamerv2", "curious", "DreamerV2 CR, α = 0.7", DEFAULT)
CURIOUS_8 = row("dreamerv2", "curious", "DreamerV2 CR 8x", {**DEFAULT, **EIGHT_TIMES})
NUMBERS = {
    UNIFORM.name: (11.7, 0.5),
    UNIFORM_8.name: (11.0, 1.5),
    CURIOUS.name: (12.0, 1.2),
    CURIOUS_8.name: (15.7, 2.4),
}

EXPERIMENT = Experiment(
    name="train-frequency",
    where="Table 6",
    title="Crafter score with eight times as many updates",
    tasks=(TASK,),
    methods=(UNIFORM, UNIFORM_8, CURIOUS, CURIOUS_8),
    measures=(score(NUMBERS, n=10),),
    claim=Claim(
        "Eight times as many updates raise the score with Curious Replay, beyond uniform replay",
        [(CURIOUS_8.name, CURIOUS.name), (CURIOUS_8.name, UNIFORM_8.name)],
    ),
    seeds=10,
)
