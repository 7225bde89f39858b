"""Curious replay for TorchRL: a sampler of slices for its `ReplayBuffer`.

buffer = TensorDictReplayBuffer(
    storage=LazyTensorStorage(100_000),
    sampler=CuriousSampler(Curious(), slice_len=64),
    priority_key="loss",
    batch_size=16 * 64,
)
"""

try:
    from curious_replay.torchrl.sampler import CuriousSampler
except ModuleNotFoundError as error:
    if error.name not in ("torch", "torchrl", "tensordict"):
        raise
    raise ImportError(
        f"curious_replay.torchrl needs {error.name}: pip install 'curious-replay[torchrl]'"
    ) from error

__all__ = ["CuriousSampler"]
