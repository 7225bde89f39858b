"""What DreamerV3's settings are, by family of environments and scale: see presets.py.

Where other agents were not tuned, theirs follow from these.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curious_replay.run.settings.config import Choice


Overrides = Mapping[str, Mapping[str, Any]]
"""{group: {setting: value}}."""
Preset = Callable[[str, "Choice"], Overrides]
"""What differs from the defaults, by family of environments and choice."""
SIMULATED = ("assay", "background", "constrained", "control")
"""Families with continuous actions."""


def is_grid(family: str) -> bool:
    """Return whether a family is one of small worlds of cells."""
    return family.startswith(("toy/", "minigrid"))


def dreamer_v3(family: str, choice: "Choice") -> Overrides:
    """Return the settings of DreamerV3.

    Published: XL on Crafter, S on control tasks, 512 replayed steps a step on both.
    """
    simulated = family in SIMULATED
    if choice.scale == "paper":
        # The released replay knows one environment only, so the paper ran prioritised replay with
        # one and uniform replay, on control tasks, with four.
        several = simulated and choice.replay == "uniform"
        return {
            "env": {"num_envs": 4 if several else 1},
            "agent": {"size": "XL" if family == "crafter" else "S"},
            "train": {"ratio": 512.0, "batch_size": 16, "batch_length": 64, "prefill": 1100},
            "replay": {"capacity": 1_000_000},
            "eval": {"every": 50_000, "episodes": 5},
            "record": {"video_every": 50_000},
        }
    if choice.scale == "mini":
        return _small(family)
    return {
        "agent": {"size": "debug", "imagination": 3},
        "train": {
            "ratio": 8.0,
            "batch_size": 2,
            "batch_length": 8,
            "prefill": 40,
            "log_every": 50,
            "save_every": 100,
        },
        "replay": {"capacity": 1000},
        "eval": {"every": 100, "max_steps": 20},
        "record": {"video_every": 100, "video_context": 3},
    }


def _small(family: str) -> Overrides:
    """Return settings for one or two CPU cores."""
    if is_grid(family):
        # Small worlds and short episodes: quick steps, and an eye on the near future.
        return _mini(
            {
                "size": "micro",
                "model_lr": 2e-3,
                "actor_lr": 1e-3,
                "critic_lr": 1e-3,
                "entropy": 3e-3,
                "imagination": 8,
                "discount_horizon": 30.0,
            },
            {"ratio": 64.0, "batch_size": 8, "batch_length": 16, "prefill": 200, "log_every": 250},
            every=2000,
        )
    if family == "control":
        # Thin bodies before a background that stays. Clipped at the published norm, the first
        # gradients are a hundred times the later ones, and a body is seen far later; and before it
        # is seen there is nothing to learn from acting.
        return _mini(
            {
                "size": "micro",
                "model_lr": 1e-3,
                "model_clip": 10.0,
                "actor_lr": 3e-4,
                "critic_lr": 1e-3,
                "imagination": 12,
                "discount_horizon": 50.0,
            },
            {
                "ratio": 128.0,
                "batch_size": 16,
                "batch_length": 16,
                "prefill": 2000,
                "pretrain": 1500,
            },
            every=5000,
        )
    return _mini(
        {"size": "nano", "model_lr": 3e-4, "actor_lr": 1e-4, "critic_lr": 1e-4},
        {"ratio": 64.0, "batch_size": 8, "batch_length": 32, "prefill": 500},
        every=5000,
    )


def _mini(agent: Mapping[str, Any], train: Mapping[str, Any], every: int) -> Overrides:
    """Return settings at mini scale, which evaluate, record and save every so many steps."""
    return {
        "agent": agent,
        "train": {**train, "save_every": every},
        "replay": {"capacity": 100_000},
        "eval": {"every": every, "episodes": 3},
        "record": {"video_every": every},
    }
