"""Claims that are judged seed by seed, on numbers worked by hand."""

import math
from dataclasses import replace

import pytest

from curious_replay.analysis.load import Run
from curious_replay.experiments import design, page
from curious_replay.experiments.experiment import (
    Claim,
    Experiment,
    Measure,
    Method,
    Registration,
    Trunk,
    each,
)
from curious_replay.experiments.measured import results
from curious_replay.experiments.paired_verdict import Asked, judge_pairs

NAN = math.nan
RETURN = Measure("return", lambda runs: [])
STEPS = Measure("steps", lambda runs: [], lower_is_better=True, never=True)
BETTER = Claim("New beats old", [("new", "old")])
SIX = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def asked(claim, measure, new, old, task="a"):
    values = {(task, "new"): new, (task, "old"): old}
    return Asked(claim, measure, {key: dict(enumerate(each)) for key, each in values.items()})


def judged(claim, measure, new, old):
    (verdict,) = judge_pairs([asked(claim, measure, new, old)], "mini")
    return verdict


def plus(numbers, difference):
    return [each + difference for each in numbers]


def test_better_is_shown_by_six_of_six():
    verdict = judged(BETTER, RETURN, plus(SIX, 1), SIX)
    assert verdict.word == "held"
    assert verdict.sentence == (
        "New beats old: held at mini scale (return). a: new against old: difference 1 (95 % "
        "interval 1 to 1), better in 6 of 6 pairs, p = 0.031."
    )
    assert judged(BETTER, RETURN, SIX, plus(SIX, 1)).word == "contradicted"
    assert judged(BETTER, STEPS, SIX, [2 * each for each in SIX]).word == "held"
    other = [0.0, 3, 4, 5, 6, 7]
    assert judged(BETTER, RETURN, other, SIX).word == "not shown"


def test_times_are_told_by_their_ratio():
    verdict = judged(BETTER, STEPS, [10, 20, 30, 40, 50, NAN], [20, 40, 60, 80, NAN, NAN])
    (one,) = verdict.compared
    assert (one.pairs, one.better, one.ties) == (6, 5, 1)
    assert (one.effect, one.low) == (pytest.approx(0.5), 0)
    assert one.p == one.corrected == 2 / 32
    assert "ratio 0.5 (95 % interval 0 to " in verdict.sentence
    assert "better in 5 of 6 pairs, equal in 1, p = 0.062" in verdict.sentence
    assert judged(BETTER, replace(STEPS, ratio=False), SIX, plus(SIX, 1)).compared[0].effect == -1


def test_seeds_make_the_pairs_whatever_their_order():
    claim = asked(BETTER, RETURN, plus(SIX, 1), SIX)
    shuffled = {5: 6.0, 1: 2.0, 0: 1.0, 3: 4.0, 2: 3.0, 4: 5.0, 77: -100.0}
    (verdict,) = judge_pairs([replace(claim, values={**claim.values, ("a", "old"): shuffled})], "")
    assert verdict.compared == judge_pairs([claim], "")[0].compared


def test_five_pairs_are_too_few():
    verdict = judged(BETTER, RETURN, plus(SIX[:5], 1), SIX[:5])
    assert verdict.word == "not tested"
    assert (
        "difference 1 (95 % interval – to –), better in 5 of 5 pairs, no test" in verdict.sentence
    )
    assert judged(BETTER, RETURN, [], []).word == "not tested"
    five = Claim("As good", [("new", "old")], kind="no worse", margin=2)
    assert judged(five, RETURN, SIX[:5], SIX[:5]).word == "held"  # one-sided: 1 in 32


def test_where_nobody_got_there_nothing_is_tested():
    alike = Claim("Alike", [("new", "old")], kind="similar", margin=0.1)
    for claim in (BETTER, alike):
        assert judged(claim, STEPS, [NAN] * 6, [NAN] * 6).word == "not tested"


@pytest.mark.parametrize(
    ("kind", "margin", "difference", "word"),
    [
        ("no worse", 2, 0, "held"),
        ("no worse", 2, 9, "held"),
        ("no worse", 2, -1, "held"),
        ("no worse", 2, -2.5, "contradicted"),
        ("similar", 2, 0, "held"),
        ("similar", 2, 1, "held"),
        ("similar", 2, 3, "contradicted"),
        ("similar", 2, -3, "contradicted"),
    ],
)
def test_margins_are_in_the_unit_of_the_measure(kind, margin, difference, word):
    claim = Claim("As good", [("new", "old")], kind=kind, margin=margin)
    found = judged(claim, RETURN, plus(SIX, difference), SIX)
    assert found.word == word
    wanted = "above -2 is asked for" if kind == "no worse" else "above -2 and below 2 is asked for"
    assert wanted in found.sentence


@pytest.mark.parametrize(
    ("kind", "times", "word"),
    [
        ("no worse", 1.05, "held"),
        ("no worse", 0.1, "held"),
        ("no worse", 1.2, "contradicted"),
        ("similar", 1.05, "held"),
        ("similar", 0.95, "held"),
        ("similar", 0.8, "contradicted"),
    ],
)
def test_margins_of_times_are_a_part(kind, times, word):
    claim = Claim("As soon", [("new", "old")], kind=kind, margin=0.1)
    assert judged(claim, STEPS, [times * each for each in SIX], SIX).word == word


def test_a_wide_difference_is_not_similar():
    claim = Claim("As good", [("new", "old")], kind="similar", margin=2)
    found = judged(claim, RETURN, [9.0, -7, 3.5, 4, 4.5, 6], SIX)
    assert found.word == "not shown"
    assert found.compared[0].outcome == "open"


def test_all_comparisons_are_corrected_together():
    noise = [1.5, 1.0, 3.5, 3.0, 5.5, 5.0]
    claims = [asked(BETTER, RETURN, plus(SIX, 1), SIX), asked(BETTER, STEPS, noise, SIX)]
    first, second = judge_pairs(claims, "mini")
    (one,), (other,) = first.compared, second.compared
    assert one.corrected == 2 * one.p == 2 * 2 / 64
    assert other.corrected == other.p > 0.5
    assert first.word == "not shown"
    untested = asked(BETTER, RETURN, [1.0], [2.0])  # is no test, and takes nothing away
    assert judge_pairs([claims[0], untested], "mini")[0].word == "held"


def test_several_comparisons():
    pairs = [("new", "old"), ("new", "other")]
    values = {("a", "new"): plus(SIX, 1), ("a", "old"): SIX, ("a", "other"): plus(SIX, 1)}
    by_seed = {key: dict(enumerate(each)) for key, each in values.items()}
    claim = replace(BETTER, pairs=pairs)
    (verdict,) = judge_pairs([Asked(claim, RETURN, by_seed)], "mini", significant=0.1)
    assert verdict.word == "held in part"
    many = {(f"{task}", name): each for task in range(3) for (_, name), each in by_seed.items()}
    (verdict,) = judge_pairs([Asked(claim, RETURN, many)], "mini")
    assert "Of 6 comparisons 0 show it with p < 0.05, 0 show the opposite." in verdict.sentence
    (verdict,) = judge_pairs([Asked(claim, RETURN, many)], "mini", significant=0.1)
    assert "Of 6 comparisons 3 show it with p < 0.1, 0 show the opposite." in verdict.sentence


NUMBERS = {"new": plus(SIX, 1), "old": SIX}
SCORE = Measure("score", each(lambda run: NUMBERS[run.setting("replay")][run.seed % 100]))
LENGTH = Measure("length", each(lambda run: 7.0))
ALIKE = Claim("It is as long", [("new", "old")], kind="similar", margin=1, measure="length")


def experiment(**changes):
    whole = Experiment(
        "x", "of ours", "X", ("a",), (Method("new", "agent", "new"), Method("old", "agent", "old")),
        (SCORE, LENGTH), BETTER, seeds=6, trunk=Trunk(until=10), also=(ALIKE,),
    )  # fmt: skip
    return replace(whole, **changes)


def measured(of, seeds, scale="mini"):
    found = {
        ("a", name): [Run(None, {"seed": s, "choice": {"env": "a", "replay": name}}) for s in seeds]
        for name in ("new", "old")
    }
    return results(of, scale, found, {})


def test_every_claim_has_its_verdict_in_one_table():
    result = measured(experiment(), range(6))
    assert (result.word, [claim.word for claim in result.claims]) == ("held", ["held", "held"])
    assert result.verdict == result.claims[0].verdict
    table, *others = result.tables()
    assert [row[0] for row in table.rows] == ["score", "length"]
    assert table.csv().splitlines()[1] == "score,a,new,old,6,6,0,1,1,1,0.03125,0.03125,for"
    assert len(others) == 2


def test_without_a_trunk_runs_are_groups_unless_pairs_are_asked_for():
    assert not measured(experiment(trunk=None), range(6)).claims[0].compared
    asked_for = measured(experiment(trunk=None, test="pairs"), range(6))
    assert asked_for.claims == measured(experiment(), range(6)).claims


def test_bars_have_the_p_values_of_pairs(monkeypatch):
    monkeypatch.setattr(page.headline, "bars", lambda name, measure, tests: tests)
    result = measured(experiment(), range(6))
    ((test,),) = page.bars(experiment(), result)  # not of the claim on another measure
    assert (test.first, test.second, test.corrected) == ("new", "old", 2 / 64)


REGISTERED = experiment(registered=Registration("2026-01-31", significant=0.04))


def test_registered_seeds_judge_alone():
    whole = measured(REGISTERED, [0, 1, *range(100, 106)])
    assert whole.word == "held"
    assert whole.claims[0].compared[0].pairs == 6
    assert len(whole.measures[0].rows[0].seeds) == 8  # the table has all runs
    other = measured(REGISTERED, range(6), "debug")  # where nothing was registered
    assert other.word == "held"


def test_a_registered_claim_holds_with_the_p_that_was_registered():
    def nearly(run):  # one in six goes the other way, by the least: p = 4 / 64
        name = run.setting("replay")
        return NUMBERS[name][run.seed % 100] - 1.5 * (name == "new" and run.seed == 100)

    whole = replace(REGISTERED, measures=(replace(SCORE, values=each(nearly)),), also=())
    for significant, word in ((0.04, "not shown"), (0.5, "held")):
        mine = replace(whole, registered=Registration("2026-01-31", significant=significant))
        assert measured(mine, range(100, 106)).word == word


def test_there_is_no_verdict_before_all_registered_runs_are_there():
    tuning = measured(REGISTERED, range(3))
    assert tuning.word == "not tested"
    assert tuning.verdict == (
        "New beats old: not tested at mini scale. Registered for seeds 100 to 105: there is no "
        "verdict before all of their runs are complete, and 12 are missing."
    )
    assert "and 2 are missing" in measured(REGISTERED, range(100, 105)).verdict
    groups = replace(REGISTERED, trunk=None)
    assert measured(groups, range(3)).word == "not tested"
    assert not page._tests(groups, tuning, page.measures.Measured("score", {}))


def test_how_it_is_judged_is_told():
    assert design.claims(REGISTERED) == [
        "New beats old.",
        "It is as long (length). (Neither worse nor better by 1 of length.)",
    ]
    trunk, test, registered = design.how(REGISTERED)
    assert trunk == (
        "All methods go on from the same run of each seed, which has uniform replay until step 10."
    )
    assert test.startswith("Methods are compared seed by seed, by Wilcoxon's signed-rank test")
    assert registered == (
        "Registered on 2026-01-31 for mini scale: settings were chosen on seeds 0, 1, 2, and seeds "
        "100 to 105 judge, with p < 0.04."
    )
    assert design.how(experiment())[1].endswith("A claim holds with p < 0.05.")
    changing = design.how(experiment(trunk=Trunk("count")))[0]
    assert changing.endswith("which has count replay until the world first changes.")
    scaled = design.how(experiment(trunk=Trunk(until={"mini": 9000, "debug": 9})))[0]
    assert scaled.endswith("until step 9,000 (mini scale), 9 (debug scale).")
    assert not design.how(experiment(trunk=None))
    part = replace(ALIKE, kind="no worse", margin=0.2, measure="score")
    timed = (replace(SCORE, ratio=True), LENGTH)
    assert design.claims(experiment(also=(part,), measures=timed))[1] == (
        "It is as long. (No worse by 20%.)"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"test": "groups"}, "x: branches of a trunk are pairs, not groups"),
        ({"also": (replace(ALIKE, measure="width"),)}, "x: the claim is about the measure 'width'"),
        ({"seeds": 5}, r"x: 5 pairs can at best have p = 0.062, and p < 0.04 is asked for"),
        (
            {"registered": Registration("2026-01-31", first_seed=2)},
            r"x: settings were chosen on the seeds \[2\], which judge",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        replace(REGISTERED, **changes)


def test_claims_and_registrations_that_say_too_little():
    for kind in ("no worse", "similar"):
        with pytest.raises(ValueError, match=f"of kind {kind}: it must state a margin above 0"):
            Claim("As good", [], kind=kind)
    with pytest.raises(ValueError, match="of kind better, which has no margin"):
        Claim("Better", [], margin=0.1)
    with pytest.raises(ValueError, match="significant must be between 0 and 1, got 5"):
        Registration("2026-01-31", significant=5)
    with pytest.raises(ValueError, match="isoformat"):
        Registration("yesterday")
