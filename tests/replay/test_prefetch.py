"""Batches that are drawn ahead: the same whichever of the two threads is faster."""

import threading
import time

import numpy as np
import pytest
from helpers.streams import fill

from curious_replay.replay import Batch, ReplayBuffer


def losses(batch):
    return {"model": np.sin(batch.ids * 12.9898) ** 2 * 1e3}


def course(slow_draws, slow_learning, monkeypatch, rounds=12):
    """Ids of all batches of a loop in which drawing, or learning, takes its time."""
    buffer = ReplayBuffer(300, 4, num_envs=2, seed=1)
    fill(buffer, 60)
    draw = ReplayBuffer.sample

    def sample(self, *args, **options):
        if threading.current_thread() is not threading.main_thread():
            time.sleep(slow_draws)
        return draw(self, *args, **options)

    monkeypatch.setattr(ReplayBuffer, "sample", sample)
    batches = buffer.prefetch(4)
    seen = []
    for t, batch in zip(range(rounds), batches, strict=False):
        time.sleep(slow_learning)
        seen.append(batch.ids)
        buffer.update(batch.ids, losses(batch))
        fill(buffer, 1, start=60 + t)
    monkeypatch.undo()
    batches.close()
    return np.array(seen)


def test_the_course_of_events_does_not_depend_on_who_is_faster(monkeypatch):
    """As if each batch was drawn before the feedback, and the steps, of the one before it came."""
    buffer = ReplayBuffer(300, 4, num_envs=2, seed=1)
    fill(buffer, 60)
    ahead, expected = buffer.sample(4), []
    for t in range(12):
        batch, ahead = ahead, buffer.sample(4)
        expected.append(batch.ids)
        buffer.update(batch.ids, losses(batch))
        fill(buffer, 1, start=60 + t)
    for slow in ((0.0, 0.0), (0.02, 0.0), (0.0, 0.02)):
        assert (course(*slow, monkeypatch) == expected).all()


def test_the_batch_ahead_can_be_kept_and_put_back(tmp_path):
    buffer = ReplayBuffer(300, 4, seed=1)
    fill(buffer, 60)
    batches = buffer.prefetch(4)
    assert batches.ahead is None
    next(batches)
    kept = batches.ahead
    assert isinstance(kept, Batch)
    assert batches.ahead is kept
    buffer.save(tmp_path)
    loaded = ReplayBuffer.load(tmp_path)
    again = loaded.prefetch(4)
    again.ahead = kept
    for _ in range(3):
        assert (next(batches).ids == next(again).ids).all()
    batches.ahead = None
    fresh = ReplayBuffer.load(tmp_path)
    assert next(fresh.prefetch(4)).ids.shape == (4, 4)


def test_errors_are_told_where_the_batch_is_asked_for():
    buffer = ReplayBuffer(300, 4)
    batches = buffer.prefetch(4, length=2)
    with pytest.raises(ValueError, match="nothing to sample yet"):
        next(batches)
    fill(buffer, 10)
    assert next(batches).ids.shape == (4, 2)
    buffer.clear()
    assert next(batches).ids.shape == (4, 2)  # was drawn before
    with pytest.raises(ValueError, match="nothing to sample yet"):
        next(batches)
    fill(buffer, 10, start=10)
    assert (next(batches).ids >= 10).all()
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        next(buffer.prefetch(0))
    batches.close()
    with pytest.raises(RuntimeError):
        next(batches)
