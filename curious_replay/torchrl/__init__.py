"""Curious replay for TorchRL: a sampler of slices for its `ReplayBuffer`.

buffer = TensorDictReplayBuffer(
    storage=LazyTensorStorage(100_000),
    sampler=CuriousSampler(Curious(), slice_len=64),
    priority_key="loss",
    batch_size=16 * 64,
)
"""

from curious_replay.extras import explained

with explained("curious_replay.torchrl", extra="torchrl"):
    from curious_replay.torchrl.sampler import CuriousSampler

__all__ = ["CuriousSampler"]
