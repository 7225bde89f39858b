"""Settings by environment, agent and scale.

    paper   the published sizes; needs a graphics card and a day
    mini    two CPU cores, minutes
    debug   seconds: everything runs, nothing is learned

A preset is a table of what differs from the defaults, which are those of DreamerV3 on Crafter.
"""

from dataclasses import replace
from typing import Any

from curious_replay.run.agent_presets import PRESETS
from curious_replay.run.agents import AGENTS
from curious_replay.run.config import Choice, Config, EvalConfig, RecordConfig, TrainConfig
from curious_replay.run.dreamer_v3_presets import Overrides
from curious_replay.run.env_config import FAMILIES, family
from curious_replay.run.replay_config import REPLAYS


def preset(choice: Choice, seed: int = 0) -> Config:
    """The settings that a choice of names stands for."""
    kind = family(choice.env)
    groups: dict[str, Any] = {
        "env": FAMILIES[kind](),
        "agent": AGENTS[choice.agent].config(),
        "replay": REPLAYS[choice.replay](),
        "train": TrainConfig(),
        "eval": EvalConfig(),
        "record": RecordConfig(),
    }
    for changes in (_environment(kind, choice.scale), PRESETS[choice.agent](kind, choice)):
        groups |= {name: replace(groups[name], **values) for name, values in changes.items()}
    return Config(choice=choice, seed=seed, **groups)


def _environment(kind: str, scale: str) -> Overrides:
    """What the size of the world asks for, whoever the agent is."""
    env: dict[str, Any] = {}
    if scale != "paper":
        env["image_size"] = 32
        if "scale" in FAMILIES[kind].__dataclass_fields__:
            env["scale"] = "mini"
    if kind.startswith("toy/") or scale == "debug":
        env["processes"] = False  # a step is cheaper than a message to a process
    if kind == "toy/two-rooms":
        env["length"] = 200
    if kind == "toy/mirror" and scale != "paper":
        env |= {"room": 4, "length": 24}
    frames = {
        "assay": 1_500_000,
        "background": 3_000_000,
        "constrained": 1_500_000,
        "control": 1_000_000,
        "toy/count": 100_000,
        "toy/two-rooms": 100_000,
        "toy/mirror": 30_000,
    }
    mini_frames = {
        "toy/mirror": 4_500,
        "assay": 70_000,
        "background": 120_000,
        "constrained": 60_000,
        "control": 30_000,
    }
    repeat = getattr(FAMILIES[kind](), "frames_per_step", 1)
    if scale == "paper":
        train = {"steps": frames.get(kind, 1_000_000) // repeat}
    elif scale == "mini":
        train = {"steps": mini_frames.get(kind, 20_000) // repeat}
    else:
        train = {"steps": 300}
    every = {"paper": 10_000, "mini": 1000, "debug": 100}[scale]
    return {"env": env, "train": train, "record": {"snapshot_every": every}}
