"""Batches without repeats: no step twice while there are others, each drawn by its chance."""

from collections import Counter

import numpy as np
import pytest
from helpers.streams import fill

from curious_replay.replay import Adversarial, Curious, Mixture, ReplayBuffer, Uniform

SHAPES = [("last", True), ("last", False), ("first", True), ("first", False)]


def uneven(buffer, seed=0):
    """Give the steps of a buffer priorities of many sizes."""
    ids = buffer.ids()
    losses = np.random.default_rng(seed).lognormal(0.0, 2.0, len(ids))
    buffer.update(ids, {"model": losses, "td": losses[::-1]})
    return ids


def windows_of(buffer, length):
    """{drawn slot: its window as a set of ids} of all steps that can be drawn."""
    slots = np.flatnonzero(buffer.sampler.parts[0].tree.leaves)
    _, _, ids = buffer.windows.around(slots, length)
    return {slot: frozenset(row.tolist()) for slot, row in zip(slots.tolist(), ids, strict=True)}


@pytest.mark.parametrize(("window", "cross"), SHAPES)
@pytest.mark.parametrize("length", [2, 5])
@pytest.mark.parametrize("rule", [Curious(), Mixture(Adversarial(), Uniform(), 0.4)])
def test_no_step_is_there_twice_while_enough_remain(window, cross, length, rule):
    buffer = ReplayBuffer(
        150, 5, num_envs=3, rule=rule, window=window, cross_episodes=cross, repeats=False
    )
    fill(buffer, 70, episode=13)  # 50 of each environment are left, after a wrap-around
    uneven(buffer)
    leaves = [part.tree.table.copy() for part in buffer.sampler.parts]
    for size in (2, 8):
        for _ in range(100):
            batch = buffer.sample(size, length)
            assert len(set(batch.ids.ravel().tolist())) == batch.ids.size
            assert batch.distinct == 1.0
    for part, before in zip(buffer.sampler.parts, leaves, strict=True):
        np.testing.assert_array_equal(part.tree.table, before)  # all is as it was, to the last bit
    assert buffer.stats()["distinct"] == 1.0


def sequences(buffer, size, length):
    """The chance of each sequence of drawn slots, by the definition; one rule only."""
    tree = buffer.sampler.parts[0].tree
    windows = windows_of(buffer, length)
    chances = {(): 1.0}
    for _ in range(size):
        longer = {}
        for drawn, chance in chances.items():
            taken = frozenset().union(*(windows[slot] for slot in drawn))
            left = [s for s, window in windows.items() if not window & taken] or list(windows)
            total = tree.leaves[left].sum()
            for slot in left:
                longer[*drawn, slot] = chance * tree.leaves[slot] / total
        chances = longer
    return chances


@pytest.mark.parametrize(("window", "cross"), SHAPES)
def test_frequencies_are_those_of_one_draw_after_the_other(window, cross):
    """Chi-square over all sequences of two draws; each reports the chance that it had."""
    buffer = ReplayBuffer(
        13, 3, rule=Adversarial(alpha=0.5), window=window, cross_episodes=cross, repeats=False
    )
    fill(buffer, 16, episode=6)
    uneven(buffer)
    expected = sequences(buffer, 2, 3)
    names = {row: slot for slot, row in windows_of(buffer, 3).items()}
    assert len(names) > 3
    draws = 40_000
    found, chance = Counter(), {}
    for _ in range(draws):
        slots, probabilities = buffer.sampler.draw_apart(2, 3, buffer.windows, buffer.rng)
        found[tuple(slots.tolist())] += 1
        chance[tuple(slots.tolist())] = probabilities.prod()
    assert found.keys() <= expected.keys()
    for drawn, product in chance.items():
        assert product == pytest.approx(expected[drawn], rel=1e-9)
    wanted = np.array(list(expected.values())) * draws
    seen = np.array([found[drawn] for drawn in expected])
    often = wanted >= 5
    chi2 = ((seen - wanted)[often] ** 2 / wanted[often]).sum()
    freedom = often.sum() - 1
    assert chi2 < freedom + 4 * np.sqrt(2 * freedom)


def test_it_repeats_where_too_few_windows_are_left():
    buffer = ReplayBuffer(10, 4, rule=Curious(), repeats=False)
    fill(buffer, 10)
    batch = buffer.sample(6)
    assert batch.ids.shape == (6, 4)
    assert batch.distinct < 1
    assert (batch.probabilities > 0).all()


def test_a_mixture_reports_the_chance_under_both_rules():
    buffer = ReplayBuffer(30, 1, rule=Mixture(Uniform(), Adversarial(), 0.5), repeats=False)
    fill(buffer, 30)
    uneven(buffer)
    slots, probabilities = buffer.sampler.draw_apart(30, 1, buffer.windows, buffer.rng)
    assert sorted(slots.tolist()) == list(range(30))
    left = np.ones(30, bool)
    for slot, chance in zip(slots, probabilities, strict=True):
        each = [part.tree.leaves[slot] / part.tree.leaves[left].sum()
                for part in buffer.sampler.parts]  # fmt: skip
        assert chance == pytest.approx(np.mean(each), rel=1e-9)
        left[slot] = False


def test_the_setting_is_saved_and_repeats_are_the_default(tmp_path):
    buffer = ReplayBuffer(60, 4, repeats=False)
    fill(buffer, 60)
    buffer.save(tmp_path)
    loaded = ReplayBuffer.load(tmp_path)
    assert loaded.repeats is False
    assert loaded.sample(5).ids.tolist() == buffer.sample(5).ids.tolist()
    assert ReplayBuffer(60, 4).repeats is True


def test_copies_in_a_batch_are_counted():
    buffer = ReplayBuffer(200, 8, num_envs=2, rule=Uniform())
    fill(buffer, 40)
    shares = []
    for _ in range(50):
        batch = buffer.sample(6)
        assert batch.distinct == len(np.unique(batch.ids)) / batch.ids.size
        shares.append(batch.distinct)
    assert 0.3 < min(shares) < max(shares) <= 1
    assert buffer.stats()["distinct"] == pytest.approx(np.mean(shares))
