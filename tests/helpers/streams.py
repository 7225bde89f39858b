"""Streams of steps whose observation is their own number, for tests of the buffer."""

import numpy as np


def step(time, num_envs=1, episode=50, size=()):
    """One step of every environment; episodes have `episode` steps."""
    place = time % episode
    return {
        "number": np.full((num_envs, *size), time, np.int64),
        "env": np.arange(num_envs),
        "reward": np.full(num_envs, time / 2, np.float32),
        "is_first": np.full(num_envs, place == 0),
        "is_last": np.full(num_envs, place == episode - 1),
        "is_terminal": np.full(num_envs, place == episode - 1),
        "log_phase": np.full(num_envs, time % 7, np.int8),
    }


def fill(buffer, count, start=0, **options):
    """Add `count` steps to every environment; returns the ids [count, num_envs]."""
    times = range(start, start + count)
    return np.array([buffer.add(step(t, buffer.num_envs, **options)) for t in times])
