"""One seed for a run, and from it one for each purpose, so that none disturbs another."""

import zlib

import numpy as np
import torch


def seed_of(root: int, purpose: str, number: int = 0) -> int:
    """Return a seed below 2^31 for this purpose.

    `number` tells apart what happens many times.
    """
    words = np.random.SeedSequence([root, zlib.crc32(purpose.encode()), number])
    return int(words.generate_state(1)[0] >> 1)


def generator_of(root: int, purpose: str) -> np.random.Generator:
    """Return NumPy's generator for this purpose."""
    return np.random.default_rng(seed_of(root, purpose))


def torch_generator_of(root: int, purpose: str) -> torch.Generator:
    """Return a generator of torch, on the CPU, for this purpose."""
    return torch.Generator().manual_seed(seed_of(root, purpose))
