"""What must hold before methods are compared."""

import json
import math
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest

from curious_replay import cli
from curious_replay.experiments.jobs import jobs
from curious_replay.experiments.ladder import Footing, Rung, climb, pooled
from curious_replay.experiments.miniatures import (
    MINIATURES,
    QUICK,
    answers,
    appears,
    assay,
    doorkey,
    lava,
    mirror,
    rooms,
    rooms_variants,
)
from curious_replay.experiments.miniatures.shared import arms
from curious_replay.experiments.miniatures.shared.policies import chooses, play
from curious_replay.experiments.results import Results

NEVER = math.nan
GIVEN_UP = ("mini-assay",)  # before it was judged


def footing(*seeds):
    return Footing(None, [SimpleNamespace(seed=seed) for seed in seeds])


def result(values, **bounds):
    (found,) = climb([Rung("a rung", lambda _: values, **bounds)], footing(0))
    return found


@pytest.mark.parametrize(
    ("values", "bounds", "held"),
    [
        ([1, 2, 9], {"at_most": 2}, True),
        ([1, 3, 9], {"at_most": 2}, False),
        ([1, 2, 9], {"at_least": 2}, True),
        ([1, 1, 9], {"at_least": 2}, False),
        ([1, 1, 1], {"at_least": 0, "at_most": 2}, True),
        ([NEVER, NEVER, 1], {"at_least": 100}, True),  # never is later than any step
        ([NEVER, NEVER, 1], {"at_most": 100}, False),
        ([NEVER, 1, 1], {"at_most": 100}, True),
        ([], {"at_most": 100}, False),
    ],
)
def test_the_median_must_lie_within_the_bounds(values, bounds, held):
    assert result(values, **bounds).held is held


def test_a_result_keeps_every_number_and_says_what_was_asked():
    found = result([1.5, NEVER], at_least=1000, at_most=2000)
    assert (found.values, found.median) == ([1.5, None], None)
    assert found.bound == "at least 1,000 and at most 2,000"


@pytest.mark.parametrize("walks", [1, 2])
def test_rungs_of_several_sweeps_are_pooled_seed_by_seed(walks):
    """Some have as many numbers for each seed."""

    def seeds_of(place):
        return [run.seed or NEVER for run in place.runs for _ in range(walks)]

    ladder = [Rung("a rung", seeds_of, at_most=3)]
    old, new, whole = (
        climb(ladder, footing(*seeds)) for seeds in ((3, 4), (0, 2, 3), (0, 2, 3, 4))
    )
    assert not old[0].held
    assert pooled(ladder, old, new) == whole
    assert whole[0].median == 3.5 and not whole[0].held
    assert pooled(ladder, [], new) == new
    assert pooled(ladder, old, []) == old
    nameless = [replace(each, seeds=[]) for each in old]  # kept before seeds were
    assert pooled(ladder, nameless, new) == new


def test_a_rung_without_a_bound_is_refused():
    with pytest.raises(ValueError, match="the rung 'free' has no bound"):
        Rung("free", lambda _: [])


def test_without_runs_nothing_is_measured():
    assert climb([Rung("a", lambda _: [1.0], at_least=0)], Footing(None, [])) == []


def test_a_policy_plays_in_the_world_of_a_run():
    config = jobs(mirror.TURNED, "mini", 1)[0].config
    one, same, other = (play(config, chooses(4), "mirrored", 200, seed) for seed in (3, 3, 4))
    assert one["log_agent_position"].shape == (200, 2)
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert not np.array_equal(one["log_agent_position"], other["log_agent_position"])
    ended = np.flatnonzero(one["last"])
    assert (np.diff(ended) <= 30).all()
    assert one["reward"].sum() == one["reward"][ended].sum() > 0


class Seeded:
    """Stands for a run of which only the seed is asked."""

    seed = 7


@pytest.mark.parametrize(
    ("experiment", "least", "most"),
    [
        (mirror.TURNED, 20, 160),  # 20 episodes of 8 steps at most
        (rooms.APPEARS, 18, 30),  # some twenty cells away
        (appears.APPEARS, 18, 30),
        (rooms_variants.SAME_OFTEN, 18, 30),
        pytest.param(assay.BALL, 30, 100, marks=pytest.mark.slow, id=assay.BALL.name),
        (lava.LAVA, 20 * 5, 20 * 8),  # 20 episodes; four steps ahead and a turn or more
        (doorkey.DOORKEY, 20 * 9, 20 * 16),  # the same, with a key to fetch and a door to open
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_who_knows_the_world_is_quick_and_chance_is_not(experiment, least, most):
    footing = Footing(jobs(experiment, "mini", 1)[0].config, [Seeded()])
    *_, oracle, chance = experiment.ladder
    (known,) = oracle.values(footing)
    assert least <= known <= most
    assert (*climb([oracle, chance], footing),)[0].held
    assert math.isinf(np.median(np.nan_to_num(chance.values(footing), nan=math.inf)))


def test_chance_may_walk_before_the_world_changes():
    config = jobs(rooms.APPEARS, "mini", 1)[0].config
    at_once = play(config, chooses(5), "object", 50, 3)
    later = play(config, chooses(5), "object", 50, 3, before=("empty", 30))
    assert len(later["last"]) == 50
    places = [rows["log_agent_position"] for rows in (at_once, later)]
    assert np.array_equal(places[0][30:], places[1][:20])  # the same walk, later
    assert (later["log_object_position"] >= 0).all()


@pytest.mark.parametrize("experiment", MINIATURES, ids=lambda each: each.name)
def test_every_miniature_has_a_ladder_and_is_judged_on_seeds_it_was_not_tuned_on(experiment):
    assert experiment.ladder
    assert experiment.registered or experiment.name in GIVEN_UP
    assert experiment.scales == ("mini", "debug")


@pytest.mark.slow
def test_the_ladder_is_on_the_page_and_in_the_results(stop_forkserver, tmp_path):
    stop_forkserver()
    places = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    assert cli.main(["sweep", "mini-mirror-back", "--scale", "debug", *places]) == 0
    found = json.loads((tmp_path / "out/results.json").read_text())
    assert [rung["name"] for rung in found["ladder"]] == [rung.name for rung in mirror.LADDER]
    assert all(len(rung["values"]) == 1 for rung in found["ladder"])
    page = (tmp_path / "out/report.html").read_text()
    for rung in mirror.LADDER:
        assert rung.name in page
    read = Results.from_json(found)
    assert [asdict(rung) for rung in read.ladder] == found["ladder"]
    assert Results.from_json(replace(read, ladder=[]).to_json()).ladder == []


def test_the_quick_ones_have_two_arms_three_seeds_and_share_their_runs():
    for experiment in QUICK:
        (whole,) = [each for each in MINIATURES if each.name == experiment.name]
        assert {method.name for method in experiment.methods} == {arms.UNIFORM, arms.CURIOUS}
        assert experiment.registered is None
        names = {job.name for job in jobs(experiment, "mini")}
        assert len(names) == 6
        assert names <= {job.name for job in jobs(whole, "mini", first_seed=0)}


def test_quick_is_for_the_miniatures(capsys):
    assert cli.main(["sweep", "toy-mirror", "--quick"]) == 2
    assert "--quick is for miniatures, got 'toy-mirror'" in capsys.readouterr().err


def test_every_claim_of_a_miniature_answers_one_question():
    asked = [claim for question in answers.QUESTIONS for claim in question.claims]
    there = [(each.name, index) for each in MINIATURES for index in range(len(each.claims))]
    assert sorted(asked) == sorted(there)
    assert {*asked} >= answers.LEADING


@pytest.mark.slow
def test_all_miniatures_are_answered_on_one_page(stop_forkserver, tmp_path, capsys):
    stop_forkserver()
    places = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    assert cli.main(["sweep", "miniatures", "--quick", "--scale", "debug", *places]) == 0
    assert str(tmp_path / "out" / "report.html") in "".join(capsys.readouterr().out.split())
    page = (tmp_path / "out" / "report.html").read_text()
    for experiment in QUICK:
        assert experiment.title in page
        assert f'href="{experiment.name}/report.html"' in page
        assert (tmp_path / "out" / experiment.name / "report.html").exists()
    assert "Does it adapt sooner when the world changes?" in page
