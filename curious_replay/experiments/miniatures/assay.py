"""A ball appears in the real assay: `object-interaction` in its small arena, without any reward.

Plan2Explore on DreamerV3 explores the empty arena; at T0 a ball appears where the agent is not.
Each action is held for four frames, so that the agent gets about. Contacts are counted as the
released code does: points of contact in each frame, of which a touch has several.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from curious_replay.experiments.assay.shared import frames_to
from curious_replay.experiments.experiment import Claim, Experiment, Trunk
from curious_replay.experiments.miniatures.shared import arms, exploring

AGENT = "plan2explore-v3"
T0, END = 10_000, 14_000
"""Steps: the ball appears, the end."""
REPEAT = 4
"""Frames of a step."""


def chance(rng: np.random.Generator, info: Mapping[str, Any]) -> np.ndarray:
    """Draw roll and steer evenly from all there are, float32 [2]."""
    return rng.uniform(-1, 1, 2).astype(np.float32)


def oracle(rng: np.random.Generator, info: Mapping[str, Any]) -> np.ndarray:
    """Turn to the ball, and drive at it once it is ahead, float32 [2]."""
    away = info["log_magenta_position"] - info["log_agent_position"]
    left = math.remainder(math.atan2(away[1], away[0]) - info["log_agent_heading"], 2 * math.pi)
    roll = -1.0 if abs(left) < 0.6 else -0.1
    return np.array([roll, np.clip(-2 * left, -1, 1)], np.float32)


WORLD = exploring.World(
    empty="empty",
    shown="ball",
    budget=END - T0,
    warm=2_000,
    chance=chance,
    oracle=oracle,
    contact=50,
    walks=1,  # a simulator takes its time
    cell=1.4,
)

BALL = Experiment(
    name="mini-assay",
    where="Q1 in miniature",
    title="Contacts of an exploring agent with a ball that appears, in the arena of the assay",
    tasks=("object-interaction",),
    methods=arms.arms(AGENT, arms.UNIFORM, arms.CURIOUS),
    measures=(
        exploring.contacts(),
        frames_to(5),
        frames_to(1),
        frames_to(50),
        exploring.in_view(),
    ),
    seeds=10,
    settings={
        "mini": {
            "env.action_repeat": REPEAT,
            "env.appears": "away",
            "env.camera": "ray",
            "env.processes": False,
            "env.schedule": ((0, "empty"), (REPEAT * T0, "ball")),
            "agent.task_actor": "off",
            "agent.normalise": "on",
            "agent.ensemble.members": 5,
            "agent.ensemble.layers": 2,
            "agent.ensemble.units": 128,
            "agent.ensemble.target": "mean",
            "agent.ensemble.lr": 3e-4,
            "agent.dreamer.size": "micro",
            "agent.dreamer.model_lr": 1e-3,
            "agent.dreamer.actor_lr": 3e-4,
            "agent.dreamer.critic_lr": 1e-3,
            "agent.dreamer.discount_horizon": 50.0,
            "agent.dreamer.imagination": 10,
            "agent.dreamer.starts": 0.5,
            "agent.dreamer.entropy": 1e-2,
            "train.steps": END,
            "train.ratio": 64.0,
            "train.batch_size": 8,
            "train.batch_length": 16,
            "train.save_every": 5_000,
            "train.log_every": 500,
            "eval.every": 0,
            "record.video_every": 0,
            "record.probe_every": 0,
            "record.tensorboard": False,
        },
        "debug": {"env.action_repeat": REPEAT},
    },
    trunk=Trunk("uniform", until={"mini": T0, "debug": 20}),
    claim=Claim(
        "Curious Replay touches the ball more often than uniform replay does",
        [(arms.CURIOUS, arms.UNIFORM)],
    ),
    also=(
        Claim(
            "Curious Replay comes to the fifth contact sooner",
            [(arms.CURIOUS, arms.UNIFORM)],
            measure="frames to contact 5",
        ),
    ),
    # Not registered any more: given up before any branch of a seed that judges was made.
    # docs/miniatures.md says why.
    ladder=exploring.ladder(WORLD, coverage=1.0),
    scales=("mini", "debug"),
)
