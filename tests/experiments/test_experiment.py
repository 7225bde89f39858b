"""What an experiment refuses, how its runs are named, and how it is found."""

import re
from dataclasses import replace

import pytest

from curious_replay.experiments import catalogue
from curious_replay.experiments.experiment import Claim, Experiment, Measure, Method, Reported, each
from curious_replay.experiments.jobs import jobs
from curious_replay.run.settings.presets import Times

UNIFORM = Method("uniform", "dreamerv3", "uniform")
OFTEN = Method("often", "dreamerv3", "curious", {"train.ratio": Times(2), "replay.beta": 0.5})
LENGTH = Measure("length", each(lambda run: run.steps_done))


def experiment(**changes):
    values = {
        "name": "mine",
        "where": "of my own",
        "title": "A title",
        "tasks": ("toy/mirror", "toy/two-rooms", "toy/count"),
        "methods": (UNIFORM, OFTEN),
        "measures": (LENGTH,),
        "claim": Claim("often is better", [("often", "uniform")]),
        "seeds": 2,
    }
    return Experiment(**{**values, **changes})


def names(made):
    return [job.name for job in made]


def test_runs_of_a_seed_come_together():
    made = jobs(experiment(tasks=("toy/mirror",)), "mini")
    assert names(made) == [
        "toy-mirror-dreamerv3-uniform-seed=0",
        "toy-mirror-dreamerv3-curious-replay.beta=0.5-train.ratio=128.0-seed=0",
        "toy-mirror-dreamerv3-uniform-seed=1",
        "toy-mirror-dreamerv3-curious-replay.beta=0.5-train.ratio=128.0-seed=1",
    ]
    assert made[1].config.train.ratio == 128
    assert len(jobs(experiment(), "mini", 5)) == 30


def test_names_are_of_what_a_run_is(tmp_path):
    spelled_out = replace(UNIFORM, settings={"train.ratio": 64.0})
    (one, *_) = jobs(experiment(), "mini")
    (same, *_) = jobs(experiment(methods=(spelled_out, OFTEN)), "mini", threads=4)
    assert (same.name, same.config.train.threads) == (one.name, 4)
    (longer, *_) = jobs(experiment(settings={"mini": {"train.steps": 9000}}), "mini")
    assert longer.name == "toy-mirror-dreamerv3-uniform-train.steps=9000-seed=0"
    assert one.folder(tmp_path) == tmp_path / "mini" / one.name


def test_names_that_are_too_long_for_a_folder_end_in_a_hash(tmp_path):
    def made(images, last=0.5):
        settings = {"env.images": images, "train.ratio": 7.0, "replay.beta": last}
        mine = experiment(
            tasks=("background-swap/walker_run",),
            methods=(replace(OFTEN, settings=settings), UNIFORM),
        )
        return jobs(mine, "mini", 2)[::2]

    beginning = "background-swap-walker_run-dreamerv3-curious-env.images=-"
    rest = "-replay.beta=0.5-train.ratio=7.0-seed=0"
    fits = "/" + "x" * (200 - len(beginning) - len(rest))
    assert made(fits)[0].name == beginning + fits[1:] + rest
    long = [job.name for last in (0.5, 0.25) for job in made(fits + "x" * 100, last)]
    assert len({*long}) == 4  # they differ only in what was cut off
    for name, seed in zip(long, (0, 1) * 2, strict=True):
        assert len(name) == 200
        assert re.fullmatch(f"{re.escape(beginning)}x+-[0-9a-f]{{10}}-seed={seed}", name)
    assert long[0] == made(fits + "x" * 100)[0].name
    (tmp_path / long[0]).mkdir()


def test_settings_of_a_method_go_before_those_of_the_experiment():
    mine = experiment(
        settings={"mini": {"replay.beta": 0.1}}, methods=(OFTEN,), claim=Claim("", [])
    )
    assert {job.config.replay.beta for job in jobs(mine, "mini")} == {0.5}
    assert {job.config.replay.beta for job in jobs(mine, "paper")} == {0.5}


def test_debug_scale_runs_a_part():
    whole = experiment()
    assert len(jobs(whole, "debug")) == 4
    part = experiment(debug_tasks=1, debug_methods=("often",))
    assert [(job.task, job.method.name) for job in jobs(part, "debug")] == [("toy/mirror", "often")]


def test_a_method_may_be_for_some_tasks_only():
    mine = experiment(methods=(UNIFORM, replace(OFTEN, tasks=("toy/count",))))
    found = [(task, method.name) for task, method in mine.cells("paper")]
    assert found.count(("toy/count", "often")) == 1
    assert len(found) == 4


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"claim": Claim("", [("often", "seldom")])}, "mine: the claim speaks of the method 'sel"),
        ({"debug_methods": ("seldom",)}, "mine: at debug scale is to be run the method 'seldom'"),
        ({"measures": ()}, "mine: an experiment needs a measure"),
        ({"methods": (UNIFORM, OFTEN, OFTEN)}, "mine: two methods have the same name among"),
        ({"methods": (UNIFORM, replace(OFTEN, tasks=("x",)))}, "mine: a method is for the t"),
        (
            {"measures": (replace(LENGTH, paper={("crafter", "often"): Reported(1)}),)},
            "mine: the paper's numbers name the task 'crafter'; there are",
        ),
        (
            {"measures": (replace(LENGTH, paper={("toy/count", "x"): Reported(1)}),)},
            "mine: the paper's numbers name the method 'x'; there are ",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        experiment(**changes)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"replay.gamma": 1},
            r"there is no setting --replay.gamma; 'gamma' is not one of capacity",
        ),
        ({"choice.env": "crafter"}, "--choice.env is no setting that can be changed"),
        ({"seed": 1}, "--seed is no setting that can be changed"),
        ({"replay.beta": 3.0}, "--replay.beta must be"),
    ],
)
def test_settings_that_there_are_not(settings, said):
    mine = experiment(methods=(replace(OFTEN, settings=settings), UNIFORM))
    with pytest.raises(ValueError, match=said):
        jobs(mine, "mini")


def test_bad_scale_and_seeds():
    with pytest.raises(
        ValueError, match="--scale must be one of paper, mini, debug for mine, got 'big'"
    ):
        jobs(experiment(), "big")
    with pytest.raises(ValueError, match="--seeds must be at least 1, got 0"):
        jobs(experiment(), "mini", 0)


def test_finding(tmp_path):
    assert catalogue.find("crafter").where == "Table 1, Figures 4 and 20"
    with pytest.raises(ValueError, match="unknown experiment 'craftr'; did you mean crafter"):
        catalogue.find("craftr")
    with pytest.raises(ValueError, match="`curious experiments` lists all"):
        catalogue.find("qqqq")
    with pytest.raises(ValueError, match="there is no file"):
        catalogue.find(str(tmp_path / "none.py"))
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(ValueError, match="must define EXPERIMENT"):
        catalogue.find(str(tmp_path / "empty.py"))


def test_numbers_as_text():
    assert str(Reported(19.4, 1.6)) == "19.4 ± 1.6"
    assert str(Reported(508)) == "508"
    assert str(Reported(float("nan"))) == "never"
