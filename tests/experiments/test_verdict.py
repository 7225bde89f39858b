"""Claims are judged by what the runs show, whatever that is."""

import numpy as np
import pytest

from curious_replay.experiments.experiment import Claim, Measure
from curious_replay.experiments.verdict import judge

RETURN = Measure("return", lambda runs: [])
FRAMES = Measure("frames", lambda runs: [], lower_is_better=True, never=True)
BETTER = Claim("New beats old", [("new", "old")])
NO_WORSE = Claim("New is as good as old", [("new", "old")], kind="no worse", margin=0.1)


def word(claim, measure, new, old, task="a"):
    return judge(claim, measure, {(task, "new"): new, (task, "old"): old}, "mini")


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ([9, 10, 11], [1, 2, 3], "held"),
        ([1, 2, 3], [9, 10, 11], "contradicted"),
        ([1, 2, 9], [1, 2, 8], "not shown"),
        ([9], [1], "not tested"),
        ([], [], "not tested"),
    ],
)
def test_better(new, old, expected):
    assert word(BETTER, RETURN, new, old).word == expected


def test_less_is_better_where_the_measure_says_so():
    assert word(BETTER, FRAMES, [1, 2, 3], [9, 10, 11]).word == "held"
    assert word(BETTER, FRAMES, [9, 10, 11], [1, 2, 3]).word == "contradicted"


def test_a_run_that_never_got_there_is_worse_than_all_that_did():
    """Left out, as a mean would, the runs of `old` would look faster."""
    never = [np.nan] * 4
    verdict = word(BETTER, FRAMES, [50, 60, 70, 80, 90], [*never, 40])
    assert "P(better) = 0.80" in verdict.sentence
    assert "40 (4 of 5 without)" in verdict.sentence
    assert word(BETTER, FRAMES, [50, 60, 70, 80, 90], [*never, np.nan]).word == "held"


def test_means_are_written_as_in_the_tables():
    sentence = word(BETTER, FRAMES, [12670, 12671], [11856.25, 370000.25]).sentence
    assert "new 12670 against old 190928" in sentence
    assert "new – (2 of 2 without)" in word(BETTER, FRAMES, [np.nan] * 2, [1, 2]).sentence


def test_several_pairs_hold_in_part():
    claim = Claim("New beats both", [("new", "old"), ("new", "other")])
    values = {("a", "new"): [9, 10, 11], ("a", "old"): [1, 2, 3], ("a", "other"): [8, 10, 12]}
    verdict = judge(claim, RETURN, values, "mini")
    assert verdict.word == "held in part"
    assert verdict.sentence.startswith(
        "New beats both: held in part at mini scale (return). a: new"
    )


def test_many_tasks_are_counted():
    values = {}
    for number in range(6):
        values[f"t{number}", "new"] = [9, 10, 11] if number < 4 else [1, 2, 3]
        values[f"t{number}", "old"] = [4, 5, 6]
    verdict = judge(BETTER, RETURN, values, "paper")
    assert verdict.word == "held in part"
    assert (
        "Of 6 comparisons 4 went the way of the claim, 4 of them with p < 0.05; 2 went the other "
        "way with p < 0.05."
    ) in verdict.sentence


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ([99, 100, 101], [99, 100, 101], "held"),
        ([150, 151, 152], [99, 100, 101], "held"),  # better is no worse
        ([49, 50, 51], [99, 100, 101], "contradicted"),
        ([10, 100, 190], [20, 100, 180], "not shown"),  # too wide to tell
        ([100], [100], "not tested"),
    ],
)
def test_no_worse(new, old, expected):
    assert word(NO_WORSE, RETURN, new, old).word == expected


def test_no_worse_of_frames():
    assert word(NO_WORSE, FRAMES, [150, 151, 152], [99, 100, 101]).word == "contradicted"
    assert word(NO_WORSE, FRAMES, [50, 51, 52], [99, 100, 101]).word == "held"


def test_no_worse_is_over_tasks_where_both_have_runs():
    """Over all that each has, `new` would look half as good: its mean is without the task `b`."""
    values = {
        ("a", "new"): [99, 100, 101], ("a", "old"): [99, 100, 101],
        ("b", "new"): [300, np.nan], ("b", "old"): [299, 300, 301],
    }  # fmt: skip
    verdict = judge(NO_WORSE, RETURN, values, "mini")
    assert verdict.word == "held"
    assert "new against old: 0% better over 1 tasks" in verdict.sentence
    apart = {("a", "new"): [1, 2], ("a", "old"): [], ("b", "new"): [], ("b", "old"): [1, 2]}
    assert judge(NO_WORSE, RETURN, apart, "mini").word == "not tested"


def test_no_worse_holds_only_if_all_pairs_do():
    claim = Claim(
        "Both are as good", [("new", "old"), ("other", "old")], kind="no worse", margin=0.1
    )
    values = {("a", "new"): [99, 100, 101], ("a", "old"): [99, 100, 101]}
    for untested in {}, {("a", "other"): [100]}:
        verdict = judge(claim, RETURN, {**values, **untested}, "mini")
        assert verdict.word == "held in part"
        assert "other against old: too few runs" in verdict.sentence
    values["a", "other"] = [99, 100, 101]
    assert judge(claim, RETURN, values, "mini").word == "held"
    values["a", "other"] = [49, 50, 51]
    assert judge(claim, RETURN, values, "mini").word == "contradicted"


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ([99, 100, 101], [99, 100, 101], "held"),
        ([150, 151, 152], [99, 100, 101], "contradicted"),
        ([49, 50, 51], [99, 100, 101], "contradicted"),
        ([10, 100, 190], [20, 100, 180], "not shown"),
    ],
)
def test_similar_is_neither_worse_nor_better(new, old, expected):
    claim = Claim("New is like old", [("new", "old")], kind="similar", margin=0.1)
    verdict = word(claim, RETURN, new, old)
    assert verdict.word == expected
    assert "at most 10% worse or better is asked for" in verdict.sentence


def test_how_small_p_must_be_can_be_chosen():
    values = {("a", "new"): [9, 10, 11], ("a", "old"): [1, 2, 3]}
    assert judge(BETTER, RETURN, values, "mini", 0.001).word == "held"
    assert judge(BETTER, RETURN, values, "mini", 0.0001).word == "not shown"
