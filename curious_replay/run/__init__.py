"""Running agents: the only package that knows the others.

run = load_agent("runs/crafter")
episodes = evaluate(run, episodes=10, video="out.mp4")
print(sum(episode.values["return"] for episode in episodes) / 10)
"""

from curious_replay.run.config import Choice, Config
from curious_replay.run.presets import preset
from curious_replay.run.saved_run import SavedRun, evaluate, load_agent, load_config
from curious_replay.run.training import Outcome, train

__all__ = [
    "Choice",
    "Config",
    "Outcome",
    "SavedRun",
    "evaluate",
    "load_agent",
    "load_config",
    "preset",
    "train",
]
