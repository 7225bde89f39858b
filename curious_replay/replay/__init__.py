"""Sequence replay with curious priorities: NumPy and Numba only, for any agent.

buffer = ReplayBuffer(capacity=1_000_000, length=64, rule=Curious())
buffer.add(step)
batch = buffer.sample(16)
buffer.update(batch.ids, {"model": loss})
"""

from .batch import Batch
from .buffer import ReplayBuffer
from .chunkfiles import LoadError
from .mixture import Balanced, Mixture
from .priority import Adversarial, Count, Curious, TemporalDifference, Uniform
from .reading import SavedBuffer
from .rule import Rule

__all__ = [
    "Adversarial",
    "Balanced",
    "Batch",
    "Count",
    "Curious",
    "LoadError",
    "Mixture",
    "ReplayBuffer",
    "Rule",
    "SavedBuffer",
    "TemporalDifference",
    "Uniform",
]
