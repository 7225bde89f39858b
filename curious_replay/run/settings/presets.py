"""Settings by environment, agent and scale.

    paper   the published sizes; needs a graphics card and a day
    mini    two CPU cores, minutes
    debug   seconds: everything runs, nothing is learned

A preset is a table of what differs from the defaults, which are those of DreamerV3 on Crafter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

from curious_replay.errors import UsageError
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.config import Choice, Config, EvalConfig, RecordConfig, TrainConfig
from curious_replay.run.settings.config_io import RENAMED, option
from curious_replay.run.settings.dreamer_v3_presets import Overrides, is_grid
from curious_replay.run.settings.env_config import FAMILIES, family_of
from curious_replay.run.settings.replay_config import REPLAYS, ReplayConfig

Settings = Mapping[str, Any]
"""{"replay.alpha": 0.5}: what differs from other settings, by the name of the option."""


class Times(NamedTuple):
    """A setting that is so many times what the preset has."""

    factor: float


FRAMES = {
    "assay": (1_500_000, 70_000),
    "background": (3_000_000, 120_000),
    "constrained": (1_500_000, 60_000),
    "control": (1_000_000, 30_000),
    "toy/count": (100_000, 20_000),
    "toy/two-rooms": (100_000, 20_000),
    "toy/mirror": (30_000, 4_500),
    "minigrid": (500_000, 40_000),
    "minigrid/key-swap": (300_000, 40_000),
    "minigrid/lava": (300_000, 60_000),
    "minigrid/new-object": (300_000, 40_000),
}
"""Of training, by family of environments: at paper and at mini scale."""


def preset(choice: Choice, seed: int = 0) -> Config:
    """Return the settings that a choice of names stands for."""
    family = family_of(choice.env)
    groups: dict[str, Any] = {
        "env": FAMILIES[family](),
        "agent": AGENTS[choice.agent].config(),
        "replay": REPLAYS[choice.replay](),
        "train": TrainConfig(),
        "eval": EvalConfig(),
        "record": RecordConfig(),
    }
    for changes in (
        _environment(family, choice.scale),
        AGENTS[choice.agent].preset(family, choice),
    ):
        groups |= {name: replace(groups[name], **values) for name, values in changes.items()}
    return Config(choice=choice, seed=seed, **groups)


def changed(config: Config, settings: Settings) -> Config:
    """Return a config with other settings, by their dotted names.

    Those within are checked as always.
    """
    groups: dict[str, Any] = {}
    for path, value in settings.items():
        group, *inside = path.split(".")
        if group not in ("env", "agent", "replay", "train", "eval", "record") or not inside:
            raise UsageError(f"{option(path)} is no setting that can be changed")
        groups[group] = _put(groups.get(group, getattr(config, group)), inside, value, path)
    return replace(config, **groups)


def with_replay(config: Config, replay: str) -> Config:
    """Return a config with another kind of replay.

    Its rule is as the preset has it, what is stored stays as it is.
    """
    if replay == config.choice.replay:
        return config
    choice = replace(config.choice, replay=replay)
    stored = {each.name: getattr(config.replay, each.name) for each in fields(ReplayConfig)}
    return replace(config, choice=choice, replay=replace(preset(choice).replay, **stored))


def _put(settings: Any, path: Sequence[str], value: Any, whole: str) -> Any:
    name, *inside = path
    if not hasattr(settings, name):
        if whole in RENAMED:
            raise UsageError(f"{option(whole)} is now {option(RENAMED[whole])}, for all agents")
        known = ", ".join(settings.__dataclass_fields__)
        raise UsageError(f"there is no setting {option(whole)}; {name!r} is not one of {known}")
    if inside:
        value = _put(getattr(settings, name), inside, value, whole)
    elif isinstance(value, Times):
        value = value.factor * getattr(settings, name)
    return replace(settings, **{name: value})


def _environment(family: str, scale: str) -> Overrides:
    """Return the settings that the size of the world asks for, whoever the agent is."""
    env: dict[str, Any] = {}
    if scale != "paper":
        env["image_size"] = 32
        if "scale" in FAMILIES[family].__dataclass_fields__:
            env["scale"] = "mini"
    if is_grid(family) or scale == "debug":
        env["processes"] = False  # a step is cheaper than a message to a process
    if family in ("toy/two-rooms", "minigrid/new-object"):
        env["length"] = 200
    if family == "toy/mirror" and scale != "paper":
        env |= {"room": 4, "length": 24}
    if family == "minigrid/lava" and scale != "paper":
        env["size"] = 7
    frames, mini_frames = FRAMES.get(family, (1_000_000, 20_000))
    repeat = getattr(FAMILIES[family](), "frames_per_step", 1)
    if scale == "paper":
        train = {"steps": frames // repeat}
    elif scale == "mini":
        train = {"steps": mini_frames // repeat}
    else:
        train = {"steps": 300}
    every = {"paper": 10_000, "mini": 1000, "debug": 100}[scale]
    return {"env": env, "train": train, "record": {"snapshot_every": every}}
