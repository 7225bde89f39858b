"""The sum tree: exact sums, right frequencies, no drift."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from curious_replay.replay.sumtree import WIDTH, SumTree


def check_sums(tree):
    """Every number above the leaves is the sum of its node, so the root is the sum of all."""
    levels = [tree.table[a:b].reshape(-1) for a, b in zip(tree.level, tree.level[1:], strict=False)]
    for above, below in itertools.pairwise(levels):
        sums = below.reshape(-1, WIDTH).sum(1)
        np.testing.assert_allclose(above[: len(sums)], sums, rtol=1e-12)
        assert (above[len(sums) :] == 0).all()
    assert all((level >= 0).all() for level in levels)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5000), st.integers(0, 2**32 - 1))
def test_set_and_get(capacity, seed):
    rng = np.random.default_rng(seed)
    tree, plain = SumTree(capacity), np.zeros(capacity)
    for _ in range(10):
        indices = rng.integers(0, capacity, rng.integers(0, 300))
        values = rng.random(len(indices)) * 10.0 ** rng.integers(-5, 6)
        tree.set(indices, values)
        for index, value in zip(indices, values, strict=True):
            plain[index] = value  # of an index that occurs twice the last value stays
        np.testing.assert_array_equal(tree.get(np.arange(capacity)), plain)
        check_sums(tree)
        assert tree.total == pytest.approx(plain.sum(), rel=1e-12)


def runs(rng, capacity):
    """Indices of some runs of neighbours, broken off and repeated here and there."""
    lengths = rng.integers(1, 40, rng.integers(1, 8))
    starts = rng.integers(0, capacity, len(lengths))
    indices = np.concatenate([np.arange(a, a + n) for a, n in zip(starts, lengths, strict=True)])
    indices = indices[indices < capacity]
    return np.delete(indices, rng.integers(0, len(indices), len(indices) // 10))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3000), st.integers(0, 2**32 - 1))
def test_set_runs_of_neighbours(capacity, seed):
    rng = np.random.default_rng(seed)
    tree, plain = SumTree(capacity), np.zeros(capacity)
    for _ in range(10):
        indices = runs(rng, capacity)
        values = rng.random(len(indices))
        tree.set(indices, values)
        plain[indices] = values
        np.testing.assert_array_equal(tree.get(np.arange(capacity)), plain)
        check_sums(tree)


def test_other_kinds_of_arrays():
    indices, values = np.arange(5, 45), np.arange(1.0, 41.0)
    kinds = [
        (indices.astype(np.int32), values),
        (indices.astype(np.uint64), values),
        (indices, values.astype(np.float32)),
        (np.repeat(indices, 2)[::2], values),
        (indices, np.repeat(values, 2)[::2]),
        (indices[::-1], values[::-1]),
    ]
    for some_indices, some_values in kinds:
        tree = SumTree(50)
        tree.set(some_indices, some_values)
        np.testing.assert_array_equal(tree.get(indices), values)
        assert tree.total == values.sum()


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf, 1e300])
@pytest.mark.parametrize("at", [0, 3, 7, 8, 20, 29])
def test_a_run_is_set_up_to_its_first_wrong_value(wrong, at):
    tree, values = SumTree(100), np.ones(30)
    values[at] = wrong
    with pytest.raises(ValueError, match=f"cannot set index {at + 13} to"):
        tree.set(np.arange(13, 43), values)
    assert tree.total == at
    check_sums(tree)


@pytest.mark.parametrize("start", [-3, 60])
def test_a_run_that_leaves_the_tree_is_refused(start):
    tree = SumTree(70)
    with pytest.raises(ValueError, match=f"cannot set index {start if start < 0 else 70} to"):
        tree.set(np.arange(start, start + 24), np.ones(24))
    assert tree.total == (0 if start < 0 else 10)
    check_sums(tree)


def test_no_drift_after_a_million_updates():
    rng = np.random.default_rng(0)
    tree = SumTree(20_000)
    for _ in range(1000):
        indices = rng.integers(0, 20_000, 1000)
        tree.set(indices, 10.0 ** rng.uniform(-8, 8, 1000) * (rng.random(1000) > 0.1))
    leaves = tree.get(np.arange(20_000))
    assert tree.total == pytest.approx(leaves.sum(), rel=1e-9)
    check_sums(tree)
    tree.set(np.arange(20_000), np.zeros(20_000))
    assert tree.total == 0.0


def test_a_tree_depends_on_its_values_alone():
    rng = np.random.default_rng(0)
    tree = SumTree(3000)
    for _ in range(200):
        tree.set(rng.integers(0, 3000, 50), rng.random(50))
    fresh = SumTree(3000)
    fresh.set(np.arange(3000), tree.get(np.arange(3000)))
    np.testing.assert_array_equal(fresh.table, tree.table)


@pytest.mark.parametrize("capacity", [5, 64, 1000])
def test_frequencies(capacity):
    rng = np.random.default_rng(capacity)
    values = rng.exponential(size=capacity) * (rng.random(capacity) > 0.2)
    tree = SumTree(capacity)
    tree.set(np.arange(capacity), values)
    drawn = np.bincount(tree.sample(400_000, rng), minlength=capacity)
    assert (drawn[values == 0] == 0).all()
    some = values > 0
    expected = values[some] / values.sum() * drawn.sum()
    assert chisquare(drawn[some], expected).pvalue > 1e-3


class LargestDraw(np.random.Generator):
    """Always draws the largest number below 1."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def random(self, size):
        return np.full(size, np.nextafter(1.0, 0.0))


@pytest.mark.parametrize("capacity", [0, 512])
@pytest.mark.parametrize("last", [0, 3, 7, 8, 16, 39, 100, 299, 511])
def test_rounding_never_leads_to_a_leaf_of_value_0_nor_out_of_the_tree(last, capacity):
    rng = np.random.default_rng(last)
    for _ in range(300):
        tree = SumTree(max(capacity, last + 1))
        tree.set(np.arange(last + 1), rng.random(last + 1) * 10.0 ** rng.uniform(-12, 12, last + 1))
        assert (tree.get(tree.sample(5, LargestDraw())) > 0).all()


def test_tiny_beside_huge():
    tree = SumTree(9)
    tree.set(np.array([2, 8]), np.array([1e-200, 1e280]))
    assert set(tree.sample(1000, np.random.default_rng(0))) == {8}
    tree.set(np.array([8]), np.array([0.0]))
    assert set(tree.sample(1000, np.random.default_rng(0))) == {2}


@pytest.mark.parametrize(
    ("index", "value"), [(10, 1.0), (-1, 1.0), (3, -1.0), (3, np.nan), (3, np.inf), (3, 1e300)]
)
def test_wrong_values_are_refused(index, value):
    tree = SumTree(10)
    with pytest.raises(ValueError, match=f"cannot set index {index} to"):
        tree.set(np.array([1, index]), np.array([5.0, value]))
    assert tree.total == 5.0
    check_sums(tree)


def test_other_errors():
    with pytest.raises(ValueError, match="capacity must be at least 1, got 0"):
        SumTree(0)
    with pytest.raises(ValueError, match="2 indices but 1 values"):
        SumTree(3).set(np.array([0, 1]), np.array([1.0]))
    with pytest.raises(ValueError, match="all values are 0"):
        SumTree(3).sample(1, np.random.default_rng(0))
