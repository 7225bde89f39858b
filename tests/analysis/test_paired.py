"""Paired tests against published values, all signs gone through by hand, and SciPy."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import PermutationMethod, rankdata, wilcoxon

from curious_replay.analysis.paired import Pairs, least_p

NAN = math.nan
# Hollander and Wolfe (1973), example 3.1: a depression scale of nine patients before and after a
# tranquilliser. R prints V = 40 and p = 0.01953 (greater); their estimate is 0.46, and their
# interval of 96.1 %, the narrowest above 95 %, from 0.010 to 0.786.
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
DIFFERENCES = st.lists(st.integers(-6, 6), min_size=1, max_size=9)


def of(differences, **options):
    return Pairs.of(differences, np.zeros(len(differences)), **options)


def enumerated(differences, side):
    """p by going through all signs of the differences that are not 0."""
    sizes = np.abs(differences)
    ranks = rankdata(sizes)[sizes > 0]  # zeros take the lowest ranks and drop out
    seen = rankdata(sizes)[np.asarray(differences) > 0].sum()
    sums = [np.dot(signs, ranks) for signs in itertools.product((0, 1), repeat=len(ranks))]
    greater, less = np.mean(np.array(sums) >= seen), np.mean(np.array(sums) <= seen)
    return {"greater": greater, "less": less, "both": min(1, 2 * min(greater, less))}[side]


def test_hollander_and_wolfes_tranquilliser():
    pairs = Pairs.of(BEFORE, AFTER)
    assert len(pairs) == 9
    assert pairs.test("greater") == 10 / 512 == pytest.approx(0.01953, abs=5e-6)
    assert pairs.test() == 20 / 512
    found = pairs.effect()
    assert [found.value, found.low, found.high] == pytest.approx([0.46, 0.010, 0.786])


def test_worked_by_hand():
    # 1, 2, 3 and -4: positive ranks add up to 6; of 16 signs 7 have at least as much.
    assert of([1, 2, 3, -4]).test("greater") == 7 / 16
    # 5, 5 and -5 share the rank 2: sums 0, 2, 4, 6 in 1, 3, 3, 1 of 8 signs.
    assert of([5, 5, -5]).test("greater") == 4 / 8
    assert of([5, 5, -5]).test("less") == 7 / 8
    # Three 0 take the ranks 1 to 3 and leave 4, 5 and 6, of which 9 are positive: sums of at least
    # 9 are 9, 10, 11 and 15. Dropped before, they would leave 1, 2 and 3, and 5 of 8 signs.
    assert of([0, 0, 0, 1, 2, -3]).test("greater") == 4 / 8
    assert of([0, 0]).test() == 1
    # Means of 1, 2 and 6 with each other: 1, 1.5, 2, 3.5, 4, 6.
    assert of([1, 2, 6]).effect().value == 2.75


@given(DIFFERENCES, st.sampled_from(["both", "greater", "less"]))
def test_all_signs(differences, side):
    assert of(differences).test(side) == pytest.approx(enumerated(differences, side), abs=1e-12)


@pytest.mark.parametrize(("side", "scipys"), [("both", "two-sided"), ("greater", "greater")])
def test_scipy(side, scipys):
    rng = np.random.default_rng(0)
    for n in (3, 8, 25):
        values = rng.normal(0.3, 1, n)
        expected = wilcoxon(values, alternative=scipys, method="exact").pvalue
        assert of(values).test(side) == pytest.approx(expected, rel=1e-9)
    tied = [0, 1, 1, -1, 2, 0, 3, 3, -2, 4]
    every = PermutationMethod(n_resamples=np.inf)
    found = wilcoxon(tied, zero_method="pratt", alternative=scipys, method=every)
    assert of(tied).test(side) == pytest.approx(found.pvalue, rel=1e-12)


def test_rounding_makes_no_difference():
    first, second = [0.3, 3.0, 0.7], [0.2, 2.9, 0.7 + 1e-16]
    assert first[0] - second[0] != first[1] - second[1]
    assert Pairs.of(first, second).signs.tolist() == [1, 1, 0]
    assert Pairs.of(first, second).test("greater") == 1 / 4
    three = Pairs.of([1000, 2000, 3], [500, 1000, 6], ratio=True)  # twice, twice, half
    assert three.test("greater") == 4 / 8


def test_who_never_got_there_took_longest():
    # 10 before 20; 30 before never; never and never; 40 before never; never after 50.
    first, second = [10, 30, NAN, 40, NAN], [20, NAN, NAN, NAN, 50]
    pairs = Pairs.of(first, second, never=math.inf)
    assert pairs.signs.tolist() == [-1, -1, 0, -1, 1]
    # Ranks: the tie 1, 10 2, then never after 50, 40 and 30: 3, 4, 5. Positive: 3. Sums of 2, 3, 4,
    # 5 up to 3: 0, 2, 3.
    assert pairs.test("less") == 3 / 16
    ratio = Pairs.of(first, second, never=math.inf, ratio=True)
    assert ratio.test("less") == 3 / 16
    larger = Pairs.of([1, NAN], [2, 0], never=-math.inf)  # of scores it is the least
    assert larger.signs.tolist() == [-1, -1]
    assert len(Pairs.of(first, second)) == 1  # where it is no result at all


def test_effects_of_runs_that_never_got_there():
    soon, late = [100, 200, 400, 100, 100, 100], [200, 400, 800, 200, 200, NAN]
    found = Pairs.of(soon, late, ratio=True, never=math.inf).effect()
    assert [found.value, found.low, found.high] == pytest.approx([0.5, 0, 0.5])
    mostly = Pairs.of(soon, [NAN] * 4 + [200, 50], ratio=True, never=math.inf).effect(0.6)
    assert (mostly.value, mostly.low) == (0, 0)  # sooner by more than any number
    assert mostly.high < math.inf
    other = Pairs.of([NAN] * 6, soon, never=math.inf).effect()
    assert (other.value, other.low, other.high) == (math.inf,) * 3
    # Once each: what is unknown of one cancels that of the other. 30 / never and never / 20.
    both = Pairs.of([30, NAN], [NAN, 20], ratio=True, never=math.inf).effect().value
    assert both == pytest.approx(math.sqrt(30 / 20))
    nobody = Pairs.of([NAN] * 6, [NAN] * 6, ratio=True, never=math.inf)
    assert (nobody.test(), nobody.effect().value) == (1, 1)


@given(st.integers(0, 2**32 - 1), st.integers(6, 14))
def test_the_interval_holds_what_the_test_does_not_reject(seed, n):
    rng = np.random.default_rng(seed)  # numbers without ties, where the interval may be wider
    pairs = of(rng.normal(0.5, 1, n))
    found = pairs.effect()
    assert found.low <= found.value <= found.high
    for against in rng.normal(0.5, 1, 10):
        assert (found.low < against < found.high) == (pairs.test(against=against) > 0.05)


def test_too_few_pairs_have_no_interval():
    assert of([1, 2, 3, 4, 5]).effect() == of([1, 2, 3, 4, 5]).effect(0.99)
    assert (of([1] * 5).effect().low, of([1] * 5).effect().high) == (-math.inf, math.inf)
    assert (of([1] * 6).effect().low, of([1] * 6).effect().high) == (1, 1)
    one = Pairs.of([1, 2], [2, 4], ratio=True).effect()
    assert (one.value, one.low, one.high) == (pytest.approx(0.5), 0, math.inf)
    assert [least_p(n) for n in (0, 1, 5, 6)] == [1, 1, 1 / 16, 1 / 32]
    assert least_p(5, "less") == 1 / 32
    assert of([1] * 6).test() == least_p(6)
    assert math.isnan(of([]).test())
    assert math.isnan(of([]).effect().value)


def test_similar_is_two_one_sided_tests():
    near = of([-1, 1, 2, -2, 0])
    # All five are above -3 and below 3; -2 is as far from 1 as from -5.
    assert near.similar(-3, 3) == 1 / 32
    assert near.similar(-3, 1) == near.test("less", 1) == of([-2, 0, 1, -3, -1]).test("less")
    assert near.similar(-1, 3) == near.test("greater", -1)
    twice = Pairs.of([20, 40, 60], [10, 20, 30], ratio=True)
    assert twice.similar(1.9, 2.1) == 1 / 8
    assert twice.similar(1 / 1.1, 1.1) == 1
    nobody = Pairs.of([NAN] * 3, [NAN] * 3, ratio=True, never=math.inf)
    assert nobody.similar(0.9, 1.1) == 1 / 8
    once = Pairs.of([NAN, 1, 1], [1, 1, 1], ratio=True, never=math.inf)
    assert once.similar(0.01, 1e6) == of([9, -1, -1]).test("less") > 1 / 8  # no margin is enough


@pytest.mark.parametrize("numbers", [[0.0, 1.0], [-1.0, 1.0]])
def test_ratios_are_of_numbers_above_zero(numbers):
    with pytest.raises(ValueError, match=r"ratios need numbers above 0, got (0|-1)$"):
        Pairs.of(numbers, [1, 1], ratio=True)
    with pytest.raises(ValueError, match="a ratio must be above 0, got -2"):
        Pairs.of([1], [1], ratio=True).test(against=-2)
