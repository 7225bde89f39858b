"""An experiment of seconds with a trunk: three kinds of replay go on from one run of each seed."""

from curious_replay.experiments.experiment import Claim, Experiment, Measure, Method, Trunk, each

UNIFORM, CURIOUS, SLOW = (
    Method("uniform", "dreamerv3", "uniform"),
    Method("curious", "dreamerv3", "curious"),
    Method("slow", "dreamerv3", "count", {"replay.beta": 0.9}),
)

EXPERIMENT = Experiment(
    name="small-trunk",
    where="no paper",
    title="Model loss on a counting world, from the same start",
    tasks=("toy/count",),
    methods=(UNIFORM, CURIOUS, SLOW),
    measures=(
        Measure("last loss", each(lambda run: run.metrics["model/loss"][-1]), lower_is_better=True),
        Measure("steps", each(lambda run: run.steps_done)),
    ),
    claim=Claim("Both end with a smaller loss", [("curious", "uniform"), ("slow", "uniform")]),
    also=(
        Claim("They take the same steps", [("curious", "uniform")], "similar", 1, measure="steps"),
    ),
    seeds=2,
    trunk=Trunk("uniform", until={"debug": 150}),
    settings={
        "debug": {
            "train.steps": 300,
            "train.save_every": 50,
            "eval.every": 0,
            "record.video_every": 0,
            "record.tensorboard": False,
        }
    },
)
