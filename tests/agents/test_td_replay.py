"""Replay by temporal-difference errors, as agents report them, over many short episodes."""

import numpy as np
import torch

from curious_replay.agents.blocks.returns import td_errors
from curious_replay.replay import ReplayBuffer, TemporalDifference

LENGTH, EPISODES, WINDOW = 10, 20, 8


def test_beginnings_of_episodes_do_not_take_replay_over():
    """No step leads to them, so they have no error; a new step's priority must not stay theirs."""
    buffer = ReplayBuffer(1000, WINDOW, rule=TemporalDifference())
    for step in range(EPISODES * LENGTH):
        flags = {"is_first": step % LENGTH == 0, "is_last": step % LENGTH == LENGTH - 1}
        flags["is_terminal"] = False
        buffer.add({name: np.array([flag]) for name, flag in flags.items()})
    firsts = []
    for _ in range(300):
        batch = buffer.sample(8)
        is_first = torch.from_numpy(batch["is_first"]).T
        ones = torch.ones(WINDOW, 8)
        errors = td_errors(3 * ones[1:], ones, ones, is_first)
        buffer.update(batch.ids, {"td": errors.T.numpy()})
        firsts.append((batch.ids[:, -1] % LENGTH == 0).mean())
    assert np.mean(firsts[100:]) < 0.02  # a tenth of all steps, but without any error
