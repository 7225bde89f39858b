"""The picture of the README is drawn from what was counted in runs."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from curious_replay.experiments.jobs import jobs
from curious_replay.experiments.miniatures import mirror

ROOT = Path(__file__).parents[1]


@pytest.fixture
def story():
    spec = importlib.util.spec_from_file_location("story", ROOT / "results" / "story.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Played(dict):
    """A table of columns."""


class Branch:
    """A complete branch with some episodes."""

    parent, complete = {"step": mirror.T0}, True

    def __init__(self, job, goals):
        self.name, self.seed = job.name, job.config.seed
        self.goals = goals
        self.metrics = {
            "step": np.array([mirror.T0, mirror.T0 + 250, mirror.T0 + 500]),
            "replay/share_after_change": np.array([0.0, 0.25, 0.51239]),
        }

    def played(self):
        return Played(step=np.array(self.goals), **{"return": np.ones(len(self.goals))})


def test_goals_are_counted_by_method_and_seed(story):
    wanted = jobs(mirror.BACK, "mini", 2)
    runs = [Branch(job, [mirror.T0 - 450, mirror.T0 + 10, mirror.T0 + 20]) for job in wanted]
    told = story.count(runs)
    assert [*told] == [method.name for method in mirror.BACK.methods]
    for each in told.values():
        assert each["seeds"] == [200, 201]
        assert each["goals"][0][:6] == [1, 0, 0, 0, 0, 2]
        assert each["steps"] == [mirror.T0 + 250, mirror.T0 + 500]
        assert each["share"][1] == [0.25, 0.512]


def test_other_runs_are_not_counted(story):
    (branch,) = [Branch(job, []) for job in jobs(mirror.BACK, "mini", 1)[:1]]
    branch.name += "-another"
    assert not any(each["seeds"] for each in story.count([branch]).values())


def test_the_picture_is_of_the_seeds_that_judge(story):
    told = json.loads(story.COUNTED.read_text())
    for each in told.values():
        assert each["seeds"] == [*mirror.BACK.judged]
    chart = story.draw(told)
    assert f"{mirror.BACK.seeds} seeds of each kind" in chart.caption
    assert story.PICTURE.with_suffix(".png").exists()
