"""How much novelty a rule asks for, and when a run says that it is too much."""

import io
import math

import pytest
from helpers.runs import config
from rich.console import Console

from curious_replay.run import train
from curious_replay.run.loop.novelty import Novelty, forecast, visits_wanted
from curious_replay.run.record.files import read_lines


def test_visits_until_a_new_step_counts_as_an_old_one():
    assert visits_wanted(1e4, 0.7, 10.0) == pytest.approx(19.37, abs=0.01)
    assert visits_wanted(1e4, 0.7, 1.0) == pytest.approx(25.82, abs=0.01)
    assert visits_wanted(1.0, 0.7, 10.0) == 0.0
    assert visits_wanted(1e4, 0.0, 10.0) == 1.0
    assert visits_wanted(1e4, 1.0, 10.0) == math.inf
    assert visits_wanted(1e4, 0.7, 0.0) == math.inf


def settings(rule, ratio=16.0, **replay):
    return config("toy/two-rooms", rule, train={"ratio": ratio}, replay=replay)


def test_the_forecast_compares_with_the_train_ratio():
    (line,) = forecast(settings("curious"))
    assert "26 / 19 / 13 visits while the loss term of old ones is 1 / 10 / 100" in line
    assert "the train ratio gives 16 to a step" in line
    (line,) = forecast(settings("balanced", novelty=0.4))
    assert "40% of each batch is drawn by count" in line
    for rule in ("uniform", "adversarial", "td", "td+adversarial", "count"):
        assert forecast(settings(rule)) == []


def stats(share, surprise, updated=1):
    return {"novelty_share": share, "surprise_mean": surprise, "updated": updated}


def test_more_visits_than_the_ratio_gives_are_told_once():
    watch = Novelty(settings("curious", ratio=20.0))
    assert watch.see(stats(1.0, 0.0, updated=0)) is None  # during prefill
    assert watch.see(stats(0.5, 10.0)) is None  # 19.4
    said = watch.see(stats(0.5, 1.0))  # 25.8
    assert "old steps are no longer replayed" in said
    assert "26 visits" in said
    assert "train ratio gives 20" in said
    for option in ("--replay balanced", "--replay.beta", "--replay.c", "--train.ratio"):
        assert option in said
    assert watch.see(stats(0.5, 1.0)) is None


def test_a_whole_interval_of_novelty_is_told():
    watch = Novelty(settings("curious", ratio=1000.0))
    assert watch.see(stats(0.95, 10.0)) is None  # perhaps only just now
    assert watch.see(stats(0.89, 10.0)) is None
    assert watch.see(stats(0.95, 10.0)) is None
    assert "95% of the draws" in watch.see(stats(0.95, 10.0))


@pytest.mark.parametrize("rule", ["balanced", "count", "uniform", "adversarial", "td+adversarial"])
def test_rules_whose_share_is_meant_are_left_alone(rule):
    watch = Novelty(settings(rule))
    for _ in range(3):
        assert watch.see(stats(1.0, 0.1)) is None


@pytest.mark.parametrize(("rule", "told"), [("curious", True), ("balanced", False)])
def test_a_run_says_that_old_steps_are_no_longer_replayed(tmp_path, rule, told):
    said = io.StringIO()
    made = config("toy/two-rooms", rule, train={"steps": 120, "ratio": 16.0, "log_every": 30})
    train(made, tmp_path, console=Console(file=said, width=1000))
    assert said.getvalue().count("old steps are no longer replayed") == told
    shares = [line["replay/novelty_share"] for line in read_lines(tmp_path / "metrics.jsonl")]
    assert shares[-1] > 0.8 if told else shares[-1] == pytest.approx(0.3)
    assert "novelty: " in said.getvalue()
