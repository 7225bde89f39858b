"""Figure 9: does the model forget the object once it is gone?

The control is a buffer that is emptied when the object goes: it shows what forgetting looks like.
"""

from curious_replay.analysis import model_error
from curious_replay.analysis.load import Run
from curious_replay.experiments.assay.shared import CURIOUS, UNIFORM
from curious_replay.experiments.experiment import Claim, Experiment, Measure, each
from curious_replay.experiments.rows import row

CLEARED = row(
    "plan2explore", "uniform", "Plan2Explore, cleared at T1", {"replay.clear_at_change": 2}
)


def _ratio(run: Run) -> float:
    """Return the model error at the end divided by that just before the object is removed."""
    if run.undone is None:
        return float("nan")
    window = max(run.frames_done // 20, 1)
    return model_error.forgetting(*model_error.errors_of(run), run.undone[1], window).ratio


EXPERIMENT = Experiment(
    name="forgetting",
    where="Figure 9",
    title="Model error on the object after it is removed, relative to before",
    tasks=("object-interaction-removal",),
    methods=(UNIFORM, CURIOUS, CLEARED),
    measures=(
        Measure("model error at the end / before removal", each(_ratio), lower_is_better=True),
    ),
    claim=Claim(
        "Neither uniform nor Curious Replay forgets as a cleared buffer does",
        [(UNIFORM.name, CLEARED.name), (CURIOUS.name, CLEARED.name)],
    ),
    seeds=6,
    # The object goes at 1.5M frames (mini: 60,000), where other runs on the assay end (70,000).
    settings={"paper": {"train.steps": 1_000_000}, "mini": {"train.steps": 40_000}},
)
