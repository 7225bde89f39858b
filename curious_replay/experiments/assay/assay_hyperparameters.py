"""Table 4: how much do α and β matter on the object-interaction assay?

One is varied, the other stays at 0.7. The paper has two runs for each value, seven of the baseline
and of α = β = 0.7.
"""

from curious_replay.experiments.assay.shared import CURIOUS, MAIN, TASK, UNIFORM, frames_to
from curious_replay.experiments.experiment import Claim, Experiment
from curious_replay.experiments.rows import reported, row

ALPHA = {0.1: (2.5e5, 1.2e5), 0.3: (1.5e5, 0.4e5), 0.5: (2.0e5, 0.6e5), 0.9: (0.9e5, 0.3e5)}
BETA = {0.1: (1.2e5, 0.9e5), 0.3: (1.1e5, 0.3e5), 0.5: (1.4e5, 0.4e5), 0.9: (0.6e5, 0.2e5)}
VARIED = tuple(
    row("plan2explore", "curious", f"{letter} = {value}", {f"replay.{name}": value})
    for letter, name, numbers in (("α", "alpha", ALPHA), ("β", "beta", BETA))
    for value in numbers
)
NUMBERS = dict(
    zip([method.name for method in VARIED], [*ALPHA.values(), *BETA.values()], strict=True)
)

EXPERIMENT = Experiment(
    name="assay-hyperparameters",
    where="Table 4",
    title="Frames until interaction for other values of α and β",
    tasks=(TASK,),
    methods=(UNIFORM, CURIOUS, *VARIED),
    measures=(frames_to(5, {**MAIN, **reported(TASK, NUMBERS, n=2)}),),
    claim=Claim(
        "With every value of α and β that was tried it interacts sooner than with uniform replay",
        [(method.name, UNIFORM.name) for method in (CURIOUS, *VARIED)],
    ),
    seeds=2,
    debug_methods=(UNIFORM.name, CURIOUS.name, "α = 0.1", "β = 0.1"),
)
