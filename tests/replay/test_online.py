"""Online queue: each new step is replayed once, soon after it came, before anything is drawn."""

import numpy as np
import pytest
from helpers.streams import fill, step

from curious_replay.replay import LoadError, ReplayBuffer, Uniform


def test_every_step_comes_once_and_in_time():
    buffer = ReplayBuffer(1000, 5, num_envs=3, online=True)
    seen = []
    for t in range(203):
        fill(buffer, 1, start=t)
        if buffer.ready:
            batch = buffer.sample(4)
            new = batch.ids[np.isnan(batch.probabilities)]
            assert (np.isnan(batch.probabilities) == (np.arange(4) < len(new))).all()
            seen.extend(new.ravel().tolist())
            assert len(seen) == (t + 1) // 5 * 5 * 3  # as soon as a window is whole
    assert sorted(seen) == list(range(200 * 3))
    assert buffer.stats()["online"] == 40 * 3


def test_what_waits_longest_comes_first_and_all_of_a_batch_may_wait():
    buffer = ReplayBuffer(1000, 5, num_envs=2, online=True)
    one = {name: value[0] for name, value in step(0).items()}
    for env, count in ((0, 10), (1, 20)):
        for _ in range(count):
            buffer.add(one | {"is_last": False, "is_terminal": False}, env=env)
    assert buffer.sample(3).ids[:, 0].tolist() == [1, 11, 0]
    state = buffer.rng.bit_generator.state
    assert buffer.sample(3).ids[:, 0].tolist() == [21, 10, 31]
    assert buffer.rng.bit_generator.state == state  # nothing was drawn
    assert np.isfinite(buffer.sample(3).probabilities).all()


def test_steps_that_were_overwritten_or_cleared_no_longer_wait():
    buffer = ReplayBuffer(20, 5, online=True)
    fill(buffer, 33)
    assert buffer.sample(2).ids[:, 0].tolist() == [13, 18]
    buffer.clear()
    fill(buffer, 6, start=33)
    batch = buffer.sample(2)
    assert batch.ids[0].tolist() == [33, 34, 35, 36, 37]
    assert np.isfinite(batch.probabilities[1])


@pytest.mark.parametrize("window", ["last", "first"])
def test_windows_stay_in_their_episode(window):
    """Episodes of 12 steps, windows of 5: 0 to 4, 5 to 9, and 7 to 11 in the next batch."""
    buffer = ReplayBuffer(100, 5, window=window, cross_episodes=False, online=True)
    fill(buffer, 30, episode=12)
    starts = [buffer.sample(9) for _ in range(4)]
    new = [b.ids[np.isnan(b.probabilities), 0].tolist() for b in starts]
    assert new == [[0, 5], [7, 12, 17], [19, 24], []]
    short = ReplayBuffer(100, 5, cross_episodes=False, online=True)
    fill(short, 11, episode=3)  # none has a window
    fill(short, 6, start=50)
    assert short.sample(2).ids[0].tolist() == [11, 12, 13, 14, 15]


def test_shorter_windows_cover_all_steps_too():
    buffer = ReplayBuffer(100, 6, online=True)
    fill(buffer, 12)
    assert buffer.sample(5, length=2).ids.ravel().tolist() == list(range(10))


def test_drawn_windows_share_no_step_with_waiting_ones():
    buffer = ReplayBuffer(100, 5, rule=Uniform(), repeats=False, online=True)
    fill(buffer, 20)
    buffer.sample(4)
    fill(buffer, 10, start=20)
    for _ in range(20):
        buffer.queue.next[:] = 20
        batch = buffer.sample(5)
        assert np.isnan(batch.probabilities).sum() == 2
        assert len({*batch.ids.ravel()}) == 25 or batch.distinct < 1  # repeats where it must
        drawn = batch.ids[2:4]  # two fit wherever the first of them lies
        assert not {*drawn.ravel()} & {*batch.ids[:2].ravel()}


def test_weights_of_new_windows_are_one():
    buffer = ReplayBuffer(100, 5, online=True)
    fill(buffer, 22)
    buffer.sample(4)
    fill(buffer, 3, start=22)
    batch = buffer.sample(3)
    assert batch.weights(0.5)[0] == 1
    assert buffer.sample(1).weights().tolist() == [1]


def test_the_queue_is_saved(tmp_path):
    buffer = ReplayBuffer(100, 5, num_envs=2, online=True)
    fill(buffer, 18)
    buffer.sample(3)
    buffer.save(tmp_path)
    loaded = ReplayBuffer.load(tmp_path)
    for _ in range(4):
        ours, theirs = buffer.sample(3), loaded.sample(3)
        assert (ours.ids == theirs.ids).all()
        np.testing.assert_array_equal(ours.probabilities, theirs.probabilities)
    assert loaded.stats() == buffer.stats()


def test_a_save_that_says_that_steps_of_the_future_were_replayed_is_refused(tmp_path):
    buffer = ReplayBuffer(100, 5, online=True)
    fill(buffer, 18)
    buffer.queue.next[:] = 19
    buffer.save(tmp_path)
    with pytest.raises(LoadError, match="replayed before they came"):
        ReplayBuffer.load(tmp_path)
