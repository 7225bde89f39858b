"""The agents of this package, by the registry: one that is added is tested too."""

from curious_replay.run.settings.agents import AGENTS

OURS = [name for name, entry in AGENTS.items() if str(entry.kind).startswith("curious_replay.")]
