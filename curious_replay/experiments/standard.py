"""What experiments change of every preset: what must be recorded, and a debug scale of seconds.

At debug scale everything happens once (a change, an evaluation, a snapshot, a probe, a checkpoint)
so that the whole catalogue can be tried in minutes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from curious_replay.run.settings.config import Choice, Config
from curious_replay.run.settings.env_config import family_of
from curious_replay.run.settings.presets import Settings, changed, preset

PROBES = {"paper": 10_000, "mini": 2_000, "debug": 40}
"""Steps between two tests of the world model in the assay, by scale."""
DEBUG: Settings = {
    "train.steps": 120,
    "train.ratio": 4.0,
    "train.log_every": 40,
    "eval.every": 100,
    "eval.max_steps": 10,
    "eval.video": False,
    "record.tensorboard": False,
    "record.video_every": 0,
    "record.snapshot_every": 60,
}
UNWATCHED: Settings = {"eval.every": 0, "record.video_every": 0}
"""Of toys: nothing is measured in evaluations and videos, and they take time."""
_RAYS: Settings = {"env.camera": "ray"}  # to open OpenGL takes longer than to draw so few pictures
_TASK: Settings = {**_RAYS, "env.episode_frames": 40}
DEBUG_WORLDS: Mapping[str, Settings] = {
    "assay": _RAYS,
    "background": _TASK,
    "constrained": _TASK,
    "control": _TASK,
    "crafter": {"env.length": 30},
    "toy/mirror": {"env.length": 8},
}
"""By family: quickly drawn, and with episodes that end within the run."""
DEBUG_SCHEDULES: Mapping[str, Sequence[tuple[int, str]]] = {
    "object-interaction": ((0, "empty"), (80, "ball")),
    "object-interaction-removal": ((0, "empty"), (80, "ball"), (160, "empty")),
    "constrained": ((0, "constrained"), (80, "free")),
    "background-swap": ((0, "A"), (80, "B"), (160, "A")),
    "toy/mirror": ((0, "straight"), (60, "mirrored")),
}
"""By environment, or what is before the slash in its name: changes within the run."""


def standard(choice: Choice, seed: int) -> Config:
    """Return the preset with what all experiments change of it."""
    family, scale = family_of(choice.env), choice.scale
    settings: dict[str, Any] = {}
    if scale == "debug":
        settings = {**DEBUG, **DEBUG_WORLDS.get(family, {})}
        schedules = DEBUG_SCHEDULES
        schedule = schedules.get(choice.env, schedules.get(choice.env.partition("/")[0]))
        if schedule is not None:
            settings["env.schedule"] = schedule
    elif family.startswith("toy/"):
        settings = {**UNWATCHED}
    if family == "assay":
        settings["record.probe_every"] = PROBES[scale]
    return changed(preset(choice, seed), settings)
