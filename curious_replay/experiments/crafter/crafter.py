"""Table 1, Figures 4 and 20: Crafter scores of all agents.

The figures are the success rates of DreamerV3 and DreamerV2 that the report draws.

Rows of the table that are agents of ours. DreamerV2 CR is with α = 0.5, which the paper calls
optimised: its main table has 13.2 ± 1.4, its Table 5 has 13.3 ± 1.3 for it.
"""

from curious_replay.experiments.crafter.score import (
    DEFAULT,
    EIGHT_TIMES,
    TASK,
    UNSUPERVISED,
    score_with,
    success,
)
from curious_replay.experiments.experiment import Claim, Experiment, Method
from curious_replay.experiments.rows import reported, row

REWARDED: dict[str, tuple[Method, tuple[float, float]]] = {
    method.name: (method, number)
    for method, number in (
        (row("dreamerv3", "curious", tasks=(TASK,)), (19.4, 1.6)),
        (row("dreamerv3", "td", tasks=(TASK,)), (17.0, 2.0)),
        (
            row("dreamerv2", "curious", "DreamerV2 CR 8x", {**DEFAULT, **EIGHT_TIMES}, (TASK,)),
            (15.7, 2.4),
        ),
        (row("dreamerv3", "uniform", tasks=(TASK,)), (14.5, 1.6)),
        (row("dreamerv2", "curious", tasks=(TASK,)), (13.2, 1.4)),
        (row("dreamerv2", "uniform", tasks=(TASK,)), (11.7, 0.5)),
        (row("dreamerv2", "uniform", "DreamerV2 8x", EIGHT_TIMES, (TASK,)), (11.0, 1.5)),
        (row("dreamerv2", "td", tasks=(TASK,)), (10.8, 0.6)),
        (row("dreamerpro", "curious", tasks=(TASK,)), (6.8, 0.5)),
        (row("dreamerpro", "td", tasks=(TASK,)), (5.8, 0.5)),
        (row("dreamerpro", "uniform", tasks=(TASK,)), (4.7, 0.5)),
        (row("iris", "uniform", tasks=(TASK,)), (4.6, 0.7)),
    )
}
UNREWARDED = tuple(
    row("plan2explore", replay, tasks=(UNSUPERVISED,)) for replay in ("curious", "td", "uniform")
)
PAPER = {
    **reported(TASK, {name: number for name, (_, number) in REWARDED.items()}, n=10, kind="s.d."),
    **reported(
        UNSUPERVISED,
        dict(zip([m.name for m in UNREWARDED], [(2.7, 0.1), (2.7, 0.1), (2.2, 0.1)], strict=True)),
        n=10,
        kind="s.d.",
    ),
}

EXPERIMENT = Experiment(
    name="crafter",
    where="Table 1, Figures 4 and 20",
    title="Crafter score of each agent with each kind of replay",
    tasks=(TASK, UNSUPERVISED),
    methods=(*(method for method, _ in REWARDED.values()), *UNREWARDED),
    measures=(score_with(PAPER), success("make_stone_pickaxe"), success("collect_iron")),
    claim=Claim(
        "Each agent scores higher with Curious Replay than with uniform and with TD replay",
        [
            (f"{agent} CR", other)
            for agent in ("DreamerV3", "DreamerV2", "DreamerPro", "Plan2Explore")
            for other in (agent, f"{agent} TD")
        ],
    ),
    seeds=10,
    differs="IRIS learns without its perceptual loss, whose weights are not part of this package",
    debug_methods=(
        "DreamerV3 CR",
        "DreamerV3 TD",
        "DreamerV2 CR 8x",
        "DreamerV3",
        "DreamerV2 CR",
        "DreamerV2",
        "DreamerV2 8x",
        "DreamerPro CR",
        "DreamerPro",
        "IRIS",
        "Plan2Explore CR",
        "Plan2Explore",
    ),
)
