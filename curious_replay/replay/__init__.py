"""Sequence replay with curious priorities: NumPy and Numba only, for any agent.

buffer = ReplayBuffer(capacity=1_000_000, length=64, rule=Curious())
buffer.add(step)
batch = buffer.sample(16)
buffer.update(batch.ids, {"model": loss})
"""

from .buffer import Batch, ReplayBuffer
from .chunkfiles import LoadError
from .priority import Adversarial, Count, Curious, Rule, TemporalDifference, Uniform
from .reading import SavedBuffer
from .sampler import Mixture

__all__ = [
    "Adversarial",
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
