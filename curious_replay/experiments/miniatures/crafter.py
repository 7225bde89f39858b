"""Crafter in minutes: DreamerV3 from the first step, on pictures of 32 pixels.

Nothing changes here but what the agent comes upon: each resource and each tool opens a part of the
game that it has not seen, and of which little is stored. That is where the paper expects Curious
Replay to help in a task without any change.
"""

import numpy as np

from curious_replay.analysis import crafter
from curious_replay.analysis.load import Run
from curious_replay.experiments.crafter.crafter_sampling import sampling
from curious_replay.experiments.crafter.crafter_training_count import training
from curious_replay.experiments.crafter.score import TASK, score
from curious_replay.experiments.experiment import Claim, Experiment, Measure, Registration, each
from curious_replay.experiments.ladder import Footing, Rung
from curious_replay.experiments.miniatures.shared import arms
from curious_replay.experiments.miniatures.shared.policies import chooses, play

AGENT = "dreamerv3"
END = 20_000
"""Steps."""
ACTIONS = 17
RESOURCES = ("wood", "wood_pickaxe")
"""What an agent of this size comes to hold; the paper's tables go on to iron."""


def _unlocked(run: Run) -> np.ndarray:
    """Return how many achievements each episode of a run unlocked, [episodes]."""
    counts: np.ndarray = crafter.episodes_of(run)[1].sum(1)
    return counts


def _learned(footing: Footing) -> list[float]:
    """Return the achievements in an episode of each run's last quarter, by those of chance."""
    found = []
    for run in footing.runs:
        rows = play(footing.config, chooses(ACTIONS), None, run.steps_done, run.seed)
        chance = (rows["log_achievements"][rows["last"]] > 0).sum(1)
        own = _unlocked(run)
        found.append(float(own[-(len(own) // 4) :].mean() / chance.mean()))
    return found


def _different(run: Run) -> float:
    return float(crafter.episodes_of(run)[1].any(0).sum())


_PER_EPISODE = Measure(
    "achievements unlocked in an episode", each(lambda run: float(_unlocked(run).mean()))
)
_SCORE = score({})

CRAFTER = Experiment(
    name="mini-crafter",
    where="Q2 in miniature",
    title="Achievements unlocked in Crafter within 20,000 steps",
    tasks=(TASK,),
    methods=arms.arms(AGENT, arms.UNIFORM, arms.CURIOUS, arms.BALANCED),
    measures=(
        _PER_EPISODE,
        _SCORE,
        Measure("different achievements unlocked", each(_different)),
        *(sampling(resource) for resource in RESOURCES),
        *(training(resource) for resource in RESOURCES),
    ),
    seeds=5,
    settings={
        "mini": {
            "env.image_size": 32,
            "env.processes": False,
            "agent.size": "micro",
            "agent.starts": 0.5,
            "agent.model_lr": 1e-3,
            "agent.actor_lr": 3e-4,
            "agent.critic_lr": 1e-3,
            "agent.entropy": 3e-3,
            "agent.imagination": 10,
            "agent.discount_horizon": 50.0,
            "train.steps": END,
            "train.log_every": 500,
            "eval.every": 0,
            "record.video_every": 0,
            "record.tensorboard": False,
        },
    },
    claim=Claim(
        "In Crafter more achievements are unlocked with Curious Replay than with uniform replay",
        [(arms.CURIOUS, arms.UNIFORM)],
    ),
    also=(
        Claim("The score is higher, too", [(arms.CURIOUS, arms.UNIFORM)], measure=_SCORE.name),
        Claim(
            "With balanced replay more achievements are unlocked than with uniform replay",
            [(arms.BALANCED, arms.UNIFORM)],
        ),
    ),
    debug_methods=(arms.UNIFORM, arms.CURIOUS),
    registered=Registration(on="2026-11-19", first_seed=1100, tuned=(0,)),
    ladder=(
        Rung(
            "achievements in an episode of its last quarter / of a random policy",
            _learned,
            at_least=1.05,
        ),
    ),
    scales=("mini", "debug"),
)
