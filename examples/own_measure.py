"""A measure of your own, and an experiment that it decides.

A measure is a function from a run folder to a number. Here: how many episodes failed between the
change of the world and the first success after it?

    curious sweep examples/own_measure.py --scale mini --seeds 3

runs the experiment at the end of this file and writes a page with the measure and its verdict. For
runs that you have already:

    python examples/own_measure.py runs/mini
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curious_replay.analysis import stats
from curious_replay.analysis.load import Run, group, load_runs
from curious_replay.experiments.experiment import Claim, Experiment, Measure, Method, each


def failures_after_the_change(run: Run) -> float:
    """Failed episodes, begun after the first change, before one succeeds; NaN: none ever did."""
    played = run.played()  # a line of episodes.jsonl for each episode of training
    begun = played["step"] - played["length"]  # a frame is a step in this world
    after = begun >= run.first_change if run.first_change else np.zeros(len(begun), bool)
    succeeded = np.flatnonzero(played["return"][after] > 0)
    return float(succeeded[0]) if len(succeeded) else float("nan")


UNIFORM = Method("uniform", "dreamerv3", "uniform")
CURIOUS = Method("curious", "dreamerv3", "curious")

EXPERIMENT = Experiment(
    name="failures",
    where="of my own",
    title="Failed episodes after all moves are mirrored",
    tasks=("toy/mirror",),
    methods=(UNIFORM, CURIOUS),
    measures=(
        Measure("failures", each(failures_after_the_change), lower_is_better=True, never=True),
    ),
    claim=Claim("Curious Replay fails less often", [(CURIOUS.name, UNIFORM.name)]),
    seeds=5,
)


def main(folders: Sequence[str]) -> None:
    """Print the measure of the runs in these folders, by what is replayed."""
    for (replay,), runs in group(load_runs(map(Path, folders)).runs, ["replay"]).items():
        values = [failures_after_the_change(run) for run in runs]
        print(f"{replay}: {stats.summary(values).mean:.1f} failures, {len(runs)} runs: {values}")


if __name__ == "__main__":
    main(sys.argv[1:])
