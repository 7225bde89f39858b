"""Figures 18 and 19: Crafter without any reward but curiosity. The numbers are those of Table 1."""

from curious_replay.experiments.crafter.score import UNSUPERVISED, score_with, success
from curious_replay.experiments.experiment import Claim, Experiment
from curious_replay.experiments.rows import reported, row

UNIFORM, TD, CURIOUS = (row("plan2explore", replay) for replay in ("uniform", "td", "curious"))
NUMBERS = {UNIFORM.name: (2.2, 0.1), TD.name: (2.7, 0.1), CURIOUS.name: (2.7, 0.1)}

EXPERIMENT = Experiment(
    name="crafter-unsupervised",
    where="Figures 18 and 19",
    title="Crafter score of an agent that explores without reward",
    tasks=(UNSUPERVISED,),
    methods=(UNIFORM, TD, CURIOUS),
    measures=(
        score_with(reported(UNSUPERVISED, NUMBERS, n=10, kind="s.d.")),
        success("place_table"),
        success("make_wood_pickaxe"),
    ),
    claim=Claim(
        "An agent that explores scores higher with Curious Replay than with uniform replay",
        [(CURIOUS.name, UNIFORM.name)],
    ),
    seeds=8,
    debug_methods=(UNIFORM.name, CURIOUS.name),
)
