"""Sequence replay with curious priorities: NumPy and Numba only, for any agent.

buffer = ReplayBuffer(capacity=1_000_000, length=64, rule=Curious())
buffer.add(step)
batch = buffer.sample(16)
buffer.update(batch.ids, {"model": loss})
"""

from curious_replay.replay.access.prefetch import Prefetch
from curious_replay.replay.batch import Batch
from curious_replay.replay.buffer import ReplayBuffer
from curious_replay.replay.mixture import Balanced, Mixture
from curious_replay.replay.priority import Adversarial, Count, Curious, TemporalDifference, Uniform
from curious_replay.replay.rule import Rule
from curious_replay.replay.saves.chunkfiles import LoadError
from curious_replay.replay.saves.reading import SavedBuffer

__all__ = [
    "Adversarial",
    "Balanced",
    "Batch",
    "Count",
    "Curious",
    "LoadError",
    "Mixture",
    "Prefetch",
    "ReplayBuffer",
    "Rule",
    "SavedBuffer",
    "TemporalDifference",
    "Uniform",
]
