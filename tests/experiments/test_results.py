"""From runs to tables, and back from results.json."""

import json
from dataclasses import replace

import numpy as np
import pytest

from curious_replay.analysis.load import Run
from curious_replay.experiments import page
from curious_replay.experiments.experiment import (
    MEDIAN,
    OVERALL,
    Claim,
    Experiment,
    Measure,
    Method,
    Reported,
    each,
)
from curious_replay.experiments.measured import judged_anew, pooled, results, shared
from curious_replay.experiments.results import Results

NUMBERS = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 100.0}


def run(task, seed):
    return Run(None, {"seed": seed, "choice": {"env": task}})


def experiment(tasks):
    of_run = each(lambda run: NUMBERS[run.setting("env")] * 10**run.seed)
    return Experiment(
        "x", "Table 0", "X", tuple(tasks), (Method("m", "agent", "replay"),),
        (Measure("number", of_run, paper={(tasks[0], "m"): Reported(7, 0.5),
                                          (OVERALL, "m"): Reported(8)} if len(tasks) > 1 else {}),),
        Claim("m is m", [("m", "m")]), seeds=2,
    )  # fmt: skip


def made(tasks, seeds=(0, 1)):
    found = {(task, "m"): [run(task, seed) for seed in seeds] for task in tasks}
    return results(experiment(tasks), "mini", found, {"command": "c"})


def rows(result):
    return {row.task: row for row in result.measures[0].rows}


def test_every_run_has_its_number_beside_the_papers():
    found = rows(made("ab"))
    assert found["a"].seeds == [0, 1]
    assert found["a"].values == [1.0, 10.0]
    assert (found["a"].paper, found["b"].paper) == ("7 ± 0.5", "")


def test_tasks_are_averaged_seed_by_seed():
    found = rows(made("abcde"))
    assert found[OVERALL].values == [22.0, 220.0]
    assert found[OVERALL].paper == "8"
    assert found[MEDIAN].values == [3.0, 30.0]
    assert MEDIAN not in rows(made("ab"))
    assert OVERALL not in rows(made("a"))


def test_only_seeds_that_have_all_tasks_are_averaged():
    found = {("a", "m"): [run("a", 0), run("a", 1)], ("b", "m"): [run("b", 1)]}
    result = results(experiment("ab"), "mini", found, {})
    assert rows(result)[OVERALL].seeds == [1]
    assert rows(result)[OVERALL].values == [15.0]


def test_json_gives_back_the_same_tables():
    result = made("abcde")
    again = Results.from_json(json.loads(json.dumps(result.to_json())))
    assert again == result
    assert [table.csv() for table in again.tables()] == [table.csv() for table in result.tables()]


def test_sweeps_are_pooled_seed_by_seed():
    old, new = made("abcde", (0, 1)), replace(made("abcde", (1, 2)), made=[{"command": "d"}])
    both = pooled(experiment("abcde"), old, new)
    whole = made("abcde", (0, 1, 2))
    assert both.measures == whole.measures
    assert (both.word, both.verdict) == (whole.word, whole.verdict)
    assert both.made == [{"command": "c"}, {"command": "d"}]
    assert pooled(experiment("abcde"), both, new) == both  # a sweep that is added already


def test_what_is_newer_counts_where_both_have_a_seed():
    old, new = made("a", (0, 1)), made("a", (1,))
    old.measures[0].rows[0].values[:] = [-1.0, -2.0]
    assert rows(pooled(experiment("a"), old, new))["a"].values == [-1.0, 10.0]


def test_other_experiments_and_one_number_for_all_runs_are_not_pooled():
    old = made("a")
    with pytest.raises(ValueError, match=r"same experiment and scale .* got x at debug scale"):
        pooled(experiment("a"), replace(old, scale="debug"), old)
    old.measures[0].rows[0].values.pop()
    with pytest.raises(ValueError, match="number is one number for all runs of m on a"):
        pooled(experiment("a"), old, made("a"))


def grid(name, *methods, steps=None):
    settings = {} if steps is None else {"mini": {"train.steps": steps}}
    return Experiment(
        name, "Table 0", "X", ("toy/mirror",), tuple(methods),
        (Measure("number", each(lambda run: float(run.seed))),),
        Claim("is no worse", [(methods[0].name, methods[0].name)]), seeds=2, settings=settings,
    )  # fmt: skip


UNIFORM, COUNT = (Method(name, "dreamerv3", name) for name in ("uniform", "count"))


def measured(of, *names):
    found = {("toy/mirror", name): [run("toy/mirror", seed) for seed in (0, 1)] for name in names}
    return results(of, "mini", found, {"command": of.name})


def test_runs_that_two_experiments_share_count_for_both():
    baseline = replace(UNIFORM, name="the baseline")
    one, other = grid("one", COUNT, UNIFORM), grid("other", baseline)
    found = shared(one, other, measured(other, "the baseline"))
    assert [row.method for row in found.measures[0].rows] == ["uniform"]
    both = pooled(one, found, measured(one, "count"))
    assert [(row.method, row.values) for row in both.measures[0].rows] == [
        ("count", [0.0, 1.0]), ("uniform", [0.0, 1.0])
    ]  # fmt: skip
    assert both.made == [{"command": "other"}, {"command": "one"}]


def test_runs_with_other_settings_are_not_shared():
    other = grid("other", UNIFORM, steps=77)
    assert shared(grid("one", UNIFORM), other, measured(other, "uniform")) is None


def test_old_numbers_are_told_in_todays_words():
    result = made("abcde")
    assert judged_anew(experiment("abcde"), replace(result, title="?", verdict="?")) == result


def test_bars_have_the_p_values_of_the_verdict(monkeypatch):
    """Also where some runs never got there, and whatever else is drawn."""
    numbers = {"m": [1, 2, 3, 4], "n": [5, np.nan, np.nan, np.nan], "o": [9, 9, 9, 8]}
    mine = Experiment(
        "x", "Table 0", "X", ("a",), tuple(Method(name, "agent", name) for name in numbers),
        (Measure("number", each(lambda run: numbers[run.setting("replay")][run.seed]),
                 lower_is_better=True, never=True),),
        Claim("m is sooner", [("m", "n")]), seeds=4,
    )  # fmt: skip
    found = {
        ("a", name): [Run(None, {"seed": s, "choice": {"env": "a", "replay": name}})
                      for s in range(4)] for name in numbers
    }  # fmt: skip
    result = results(mine, "mini", found, {})
    monkeypatch.setattr(page.headline, "bars", lambda name, measure, tests: tests)
    ((test,),) = page.bars(mine, result)
    assert (test.first, test.second) == ("m", "n")
    assert f"p = {test.corrected:.2g})" in result.verdict


def test_no_result_is_none():
    odd = Experiment(
        "x", "Table 0", "X", ("a",), (Method("m", "agent", "replay"),),
        (Measure("number", lambda runs: [np.nan for _ in runs]),), Claim("", [("m", "m")]), seeds=1,
    )  # fmt: skip
    result = results(odd, "mini", {("a", "m"): [run("a", 0)]}, {})
    assert rows(result)["a"].values == [None]
    assert "\na,m,1,0,,,,,,\n" in result.tables()[0].csv()
