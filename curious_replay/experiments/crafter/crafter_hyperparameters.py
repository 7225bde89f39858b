"""Table 5: how much do α, β and c matter on Crafter?

DreamerV2, with one of them varied and the others at α = β = 0.7, c = 1e4; five to ten runs each.
"""

from curious_replay.experiments.crafter.score import TASK, score
from curious_replay.experiments.experiment import Claim, Experiment
from curious_replay.experiments.rows import row

UNIFORM, TD = row("dreamerv2", "uniform"), row("dreamerv2", "td")
TABLE = {  # (α, β, c)
    (0.7, 0.9, 1e4): (11.9, 0.8),
    (0.7, 0.8, 1e4): (13.2, 1.9),
    (0.7, 0.7, 1e4): (12.0, 1.2),
    (0.7, 0.6, 1e4): (13.2, 1.5),
    (0.7, 0.5, 1e4): (12.7, 1.1),
    (0.9, 0.7, 1e4): (13.0, 1.7),
    (0.8, 0.7, 1e4): (13.2, 1.4),
    (0.6, 0.7, 1e4): (12.5, 1.2),
    (0.5, 0.7, 1e4): (13.3, 1.3),
    (0.7, 0.7, 1e3): (12.6, 2.0),
}
VARIED = tuple(
    row(
        "dreamerv2",
        "curious",
        f"α = {alpha}, β = {beta}, c = {c:g}",
        {"replay.alpha": alpha, "replay.beta": beta, "replay.c": c},
    )
    for alpha, beta, c in TABLE
)
NUMBERS = {
    UNIFORM.name: (11.7, 0.5),
    TD.name: (10.8, 0.6),
    **dict(zip([method.name for method in VARIED], TABLE.values(), strict=True)),
}

EXPERIMENT = Experiment(
    name="crafter-hyperparameters",
    where="Table 5",
    title="Crafter score for other values of α, β and c",
    tasks=(TASK,),
    methods=(UNIFORM, TD, *VARIED),
    measures=(score(NUMBERS),),
    claim=Claim(
        "With all values that were tried it scores higher than uniform and TD replay",
        [(method.name, other.name) for method in VARIED for other in (UNIFORM, TD)],
    ),
    seeds=10,
    debug_methods=(UNIFORM.name, VARIED[0].name, VARIED[-1].name),
)
