"""An experiment of seconds, as a user would write one: does curious replay model a toy better?"""

from curious_replay.experiments.experiment import Claim, Experiment, Measure, Method, each

UNIFORM = Method("uniform", "dreamerv3", "uniform")
CURIOUS = Method("curious", "dreamerv3", "curious", {"replay.alpha": 0.5})

EXPERIMENT = Experiment(
    name="small",
    where="no paper",
    title="Model loss on a counting world",
    tasks=("toy/count",),
    methods=(UNIFORM, CURIOUS),
    measures=(
        Measure("last loss", each(lambda run: run.metrics["model/loss"][-1]), lower_is_better=True),
    ),
    claim=Claim("Curious replay ends with a smaller loss", [("curious", "uniform")]),
    seeds=2,
    settings={
        "debug": {
            "train.steps": 300,
            "train.save_every": 60,
            "eval.every": 0,
            "record.video_every": 0,
            "record.tensorboard": False,
        }
    },
)
