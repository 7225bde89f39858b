"""A visitor's half an hour: the same runs with two kinds of replay and three seeds."""

from dataclasses import replace

from curious_replay.experiments.experiment import Experiment
from curious_replay.experiments.miniatures.shared import arms

SEEDS = 3


def quick(experiment: Experiment) -> Experiment:
    """Return the experiment with uniform and curious replay only, on a few seeds of its own.

    It shows what happens and judges nothing: so few pairs cannot.
    """
    pair = (arms.CURIOUS, arms.UNIFORM)
    return replace(
        experiment,
        methods=tuple(method for method in experiment.methods if method.name in pair),
        claim=replace(experiment.claim, pairs=[pair]),
        also=(),
        seeds=SEEDS,
        registered=None,
    )
