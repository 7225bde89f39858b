"""Running agents: the only package that knows the others.

run = load_agent("runs/crafter")
episodes = evaluate(run, episodes=10, video="out.mp4")
print(sum(episode.values["return"] for episode in episodes) / 10)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from curious_replay.extras import explained

if TYPE_CHECKING:
    from curious_replay.run.forking import fork, fork_run
    from curious_replay.run.saved_run import SavedRun, evaluate, load_agent
    from curious_replay.run.settings.config import Choice, Config, load_config
    from curious_replay.run.settings.presets import preset
    from curious_replay.run.training import Outcome, train

# Imported when first asked for: reading settings and help texts should not wait for PyTorch.
_HOMES = {
    "Choice": "settings.config",
    "Config": "settings.config",
    "Outcome": "training",
    "SavedRun": "saved_run",
    "evaluate": "saved_run",
    "fork": "forking",
    "fork_run": "forking",
    "load_agent": "saved_run",
    "load_config": "settings.config",
    "preset": "settings.presets",
    "train": "training",
}

__all__ = [
    "Choice",
    "Config",
    "Outcome",
    "SavedRun",
    "evaluate",
    "fork",
    "fork_run",
    "load_agent",
    "load_config",
    "preset",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with explained(f"{__name__}.{name}"):
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
