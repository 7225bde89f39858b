"""What each agent's settings are, by family of environments and scale: see presets.py.

A table of what differs from the defaults, which are those of DreamerV3 on Crafter.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.configs.plan2explore import EnsembleConfig
from curious_replay.run.settings.dreamer_v3_presets import SIMULATED, Overrides, dreamer_v3, is_grid
from curious_replay.run.settings.replay_config import REPLAYS, AdversarialPart, Signal

if TYPE_CHECKING:
    from curious_replay.run.settings.config import Choice


GAUSSIAN = {
    "size": "G",
    "reward_transform": "none",
    "discount": 0.99,
    "discount_head": False,
    "free_nats": 1.0,
    "actor_lr": 8e-5,
    "critic_lr": 8e-5,
    "entropy": 1e-4,
}
"""What DreamerV2 and DreamerPro share on simulated bodies."""


def dreamer_v2(family: str, choice: "Choice") -> Overrides:
    """Return the settings of DreamerV2.

    Published: categorical on Crafter, Gaussian elsewhere, an update every 5 steps.
    """
    simulated = family in SIMULATED
    agent: dict[str, Any] = {}
    if simulated:
        # Where the paper and the released settings differ these are the paper's: Gaussian latents,
        # 10 windows in a batch, and a state that only what is seen gives its shape.
        agent = {**GAUSSIAN, "grad_heads": "observed", "model_lr": 3e-4}
    replay = _dreamer_v2_replay(family, choice)
    if choice.scale == "paper":
        windows = 10 if simulated else 16
        return {
            "agent": agent,
            "train": {
                "ratio": windows * 50 / 5,
                "batch_size": windows,
                "batch_length": 50,
                "prefill": 1000 if simulated else 10_000,
                "pretrain": 100 if simulated else 1,
            },
            "replay": {"capacity": 2_000_000, **replay},
            "eval": {"every": 100_000},
            "record": {"video_every": 50_000},
        }
    if choice.scale == "mini":
        agent |= {"size": "nano-G" if simulated else "nano-D", "imagination": 10}
        # Until the critic is copied a second time, the actor follows targets made of first weights.
        agent |= {"model_lr": 1e-3, "actor_lr": 1e-4, "critic_lr": 3e-4, "target_every": 20}
        agent |= {"entropy": 1e-3} if simulated else {}
        if is_grid(family):
            # Of episodes of some ten steps. With the published discount the critic, whose returns
            # nothing scales, comes to promise several times what there is, and a task that was
            # solved is lost again.
            agent |= {"discount": 0.97, "imagination": 8, "actor_lr": 3e-4, "critic_lr": 1e-3}
        return {
            "agent": agent,
            "train": {
                "ratio": 32.0,
                "batch_size": 5,
                "batch_length": 25,
                "prefill": 500,
                "pretrain": 50,
                "save_every": 5000,
            },
            "replay": {"capacity": 100_000, **replay},
            "eval": {"every": 5000, "episodes": 3},
            "record": {"video_every": 5000},
        }
    agent |= {"size": "debug-G" if simulated else "debug-D", "imagination": 3}
    debug = dreamer_v3(family, choice)
    return {**debug, "agent": agent, "replay": {**debug["replay"], **replay}}


def _dreamer_v2_replay(
    family: str, choice: "Choice", signal: Signal = "likelihood"
) -> dict[str, Any]:
    """Return the replay settings of the released reading of the rule.

    Windows lie ahead, in one episode, and the loss is without KL.
    """
    # Where episodes may be shorter than a window.
    short = is_grid(family) or family in ("user", "switch")
    changes: dict[str, Any] = {"window": "first", "cross_episodes": short}
    known = REPLAYS[choice.replay].__dataclass_fields__
    changes |= {"dialect": "dv2"} if "dialect" in known else {}
    changes |= {"signal": signal} if "signal" in known else {}
    if "adversarial" in known:
        changes["adversarial"] = AdversarialPart(signal=signal, dialect="dv2")
    if choice.agent == "dreamerv2" and choice.replay == "curious" and family == "crafter":
        changes["alpha"] = 0.5  # of the paper's main table; 0.7 everywhere else
    return changes


def dreamer_pro(family: str, choice: "Choice") -> Overrides:
    """Return the settings of DreamerPro.

    Published: as DreamerV2, but for larger batches and what prototypes ask for.
    """
    simulated = family in SIMULATED
    agent: dict[str, Any] = {}
    if simulated:
        agent = {**GAUSSIAN, "sinkhorn_eps": 0.0125, "norm_scale": 0.0}
    replay = _dreamer_v2_replay(family, choice, signal="model")
    if choice.scale == "paper":
        return {
            "agent": agent,
            "train": {
                "ratio": 50 * 51 / 5,
                "batch_size": 50,
                "batch_length": 51,
                "prefill": 2500 if simulated else 10_000,
                "pretrain": 100 if simulated else 1,
            },
            "replay": {"capacity": 2_000_000, **replay},
            "eval": {"every": 100_000},
        }
    # Prototypes for few kinds of images, which are half as large.
    agent |= {"prototypes": 250, "frozen_updates": 500, "shift": 1.5, "imagination": 10}
    agent |= {"size": "nano-G" if simulated else "nano-D", "target_every": 20}
    agent |= {"model_lr": 1e-3, "actor_lr": 1e-4, "critic_lr": 3e-4}
    like: Overrides
    if choice.scale == "mini" and is_grid(family):
        like = dreamer_v3(family, choice)
        agent |= {"prototypes": 64, "frozen_updates": 200, "shift": 1.0, "imagination": 8}
        agent |= {"discount": 0.97, "actor_lr": 3e-4, "critic_lr": 1e-3}
    elif choice.scale == "mini":
        like = dreamer_v2(family, choice)
    else:
        like = dreamer_v3(family, choice)
        agent |= {"size": "debug-G" if simulated else "debug-D", "imagination": 3}
        agent |= {"prototypes": 10, "prototype_size": 4, "frozen_updates": 5}
    return {
        "agent": agent,
        "train": like["train"],
        "replay": {**replay, "capacity": like["replay"]["capacity"]},
        "eval": like["eval"],
    }


def plan2explore(family: str, choice: "Choice") -> Overrides:
    """Return the settings of Plan2Explore.

    Published: as DreamerV2, and without any reward but disagreement.
    """
    changes = dreamer_v2(family, choice)
    agent: dict[str, Any] = {"dreamer": DreamerV2Config(**changes["agent"])}
    train = dict(changes["train"])
    if choice.scale == "mini":
        if family in SIMULATED:
            # DreamerV2 scales no returns: with less, it drives into a wall and stays there.
            agent["dreamer"] = replace(agent["dreamer"], entropy=3e-2)
        agent["ensemble"] = EnsembleConfig(members=5, lr=1e-3)
        train["ratio"] = 16.0  # an update takes more than twice the time
    return {**changes, "agent": agent, "train": train}


def plan2explore_v3(family: str, choice: "Choice") -> Overrides:
    """Return DreamerV3's settings, on disagreement alone.

    They were not published with prioritised replay.
    """
    changes = dreamer_v3(family, choice)
    return {**changes, "agent": {"dreamer": DreamerV3Config(**changes["agent"])}}


def iris(family: str, choice: "Choice") -> Overrides:
    """Return the settings of IRIS.

    Published: an update of each part for every step, the later parts from steps 5200 and 10200. The
    paper ran it with uniform replay only. It knows discrete actions only, and refuses others.
    """
    if choice.scale == "paper":
        return {
            "train": {"ratio": 64 * 20.0, "batch_size": 64, "batch_length": 20, "prefill": 1200},
            "replay": {"capacity": 1_000_000},
            "eval": {"every": 50_000, "episodes": 16},
            "record": {"video_every": 50_000},
        }
    if choice.scale == "mini":
        toy = is_grid(family)
        agent: dict[str, Any] = {
            "size": "micro" if toy else "nano",
            "context": 4 if toy else 10,  # the steps of a window
            "pictures": 16 if toy else 32,
            "starts": 16,
            "burn_in": 1 if toy else 5,
            "imagination": 6 if toy else 10,
            "reconstruction": "squared",
            "commitment": 0.25 if toy else 1.0,
            "settled": 0.1 if toy else 1.0,
            "model_after": 500,
            "actor_after": 700 if toy else 1250,
            "tokenizer_lr": 3e-3 if toy else 1e-3,
            "model_lr": 3e-3 if toy else 1e-3,
            "actor_critic_lr": 1e-3 if toy else 3e-4,
            "dropout": 0.0 if toy else 0.1,
            "discount": 0.95 if toy else 0.99,
            "entropy": 1e-2 if toy else 1e-3,
        }
        windows, length, every = (24, 4, 2) if toy else (8, 10, 4)
        dreamer = dreamer_v3(family, choice)
        return {
            **dreamer,
            "agent": agent,
            "train": {
                **dreamer["train"],
                "ratio": windows * length / every,
                "pretrain": agent["model_after"],  # of the tokenizer alone
                "batch_size": windows,
                "batch_length": length,
            },
            "record": {**dreamer["record"], "video_context": 1 if toy else 5},
        }
    agent = {
        "size": "debug",
        "context": 8,
        "pictures": 4,
        "starts": 2,
        "burn_in": 2,
        "imagination": 3,
        "model_after": 3,
        "actor_after": 6,
    }
    return {**dreamer_v3(family, choice), "agent": agent}
