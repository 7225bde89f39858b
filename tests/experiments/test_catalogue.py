"""All experiments of the catalogue: their grids, their runs' names, and the paper's numbers."""

import statistics
from pathlib import Path

import pytest

from curious_replay.experiments import catalogue
from curious_replay.experiments.control import control_suite
from curious_replay.experiments.experiment import MEDIAN, OVERALL
from curious_replay.experiments.jobs import jobs, with_trunks
from curious_replay.experiments.miniatures import MINIATURES
from curious_replay.run.settings.config import SCALES, Config

ALL = catalogue.experiments()
AGENTS = {"dreamerv3", "dreamerv2", "dreamerpro", "plan2explore", "iris"}  # those of the paper


def settings(job):
    """All settings of a run but the threads it computes with."""
    values = job.config.to_json()
    del values["train"]["threads"]
    return values


def at(scale):
    """Experiments that there are at a scale."""
    return [experiment for experiment in ALL.values() if scale in experiment.scales]


def test_every_file_is_an_experiment_of_its_name():
    folder = Path(catalogue.__file__).parent
    files = [path for path in folder.glob("*/*.py") if "\nEXPERIMENT = " in path.read_text()]
    assert {f"{path.parent.name}.{path.stem}" for path in files} == {*catalogue.MODULES}
    stems = [module.rpartition(".")[2] for module in catalogue.MODULES]
    miniatures = [experiment.name for experiment in MINIATURES]
    names = [name.replace("-", "_") for name in ALL if name not in miniatures]
    assert [*names, *miniatures] == [*stems, *[*ALL][len(stems) :]]


@pytest.mark.parametrize("scale", SCALES)
def test_all_runs_can_be_made_and_are_named_by_what_they_are(scale):
    by_name = {}
    for experiment in at(scale):
        made = jobs(experiment, scale)
        seeds = 1 if scale == "debug" else experiment.seeds
        assert len(made) == seeds * len(experiment.cells(scale)) > 0
        for job in with_trunks(made):
            assert Config.from_json(job.config.to_json()) == job.config
            assert by_name.setdefault(job.name, settings(job)) == settings(job), job.name
            assert "/" not in job.name
    texts = [str(values) for values in by_name.values()]
    assert len({*texts}) == len(texts), "a run has two names"


def test_debug_runs_are_few_and_short_and_try_every_part():
    made = {job.name: job for e in ALL.values() for job in jobs(e, "debug", threads=1)}
    assert len(made) <= 75
    assert {job.config.choice.agent for job in made.values()} == {*AGENTS, "plan2explore-v3"}
    for job in made.values():
        config = job.config
        steps = config.train.steps
        assert 20 <= sum(each.updates for each in with_trunks([job])) <= 200
        assert steps <= 120
        assert 0 < config.eval.every <= steps
        assert 0 < config.record.snapshot_every <= steps
        schedule = getattr(config.env, "schedule", None) or ((0, "only"),)
        assert schedule[-1][0] < steps * config.env.frames_per_step
        if config.replay.clear_at_change:
            assert len(schedule) > config.replay.clear_at_change


def test_a_claim_compares_methods_on_the_same_task():
    for experiment in ALL.values():
        cells = {(task, method.name) for task, method in experiment.cells("mini")}
        tasks = {name: {task for task, other in cells if other == name} for _, name in cells}
        for first, second in experiment.claim.pairs:
            assert tasks[first] & tasks[second], (experiment.name, first, second)


def test_numbers_are_of_runs_that_there_are():
    for experiment in ALL.values():
        cells = {(task, method.name) for task, method in experiment.cells("paper")}
        for measure in experiment.measures:
            assert {key for key in measure.paper if key[0] not in (OVERALL, MEDIAN)} <= cells


def test_the_same_run_has_the_same_number_in_all_tables():
    found = {}
    for experiment in at("paper"):
        for job in jobs(experiment, "paper", 1):
            for measure in experiment.measures:
                number = measure.paper.get((job.task, job.method.name))
                if number is not None:
                    found.setdefault((measure.name, job.name), set()).add(number[:2])
    differ = {key: numbers for key, numbers in found.items() if len(numbers) > 1}
    # The paper itself has two numbers for DreamerV2 CR with α = 0.5, in its Tables 1 and 5.
    assert differ == {
        ("Crafter score (%)", "crafter-dreamerv2-curious-seed=0"): {(13.2, 1.4), (13.3, 1.3)}
    }


def test_means_over_tasks_are_those_of_the_table():
    for task, together in ((OVERALL, statistics.mean), (MEDIAN, statistics.median)):
        columns = zip(*control_suite.TABLE.values(), strict=True)
        for number, column in zip(control_suite.TOGETHER[task], columns, strict=True):
            assert together(column) == pytest.approx(number, abs=0.06)


def test_paper_settings_of_some_rows():
    made = {job.method.name: job.config for job in jobs(ALL["train-frequency"], "paper", 1)}
    assert made["DreamerV2 8x"].train.ratio == 8 * made["DreamerV2"].train.ratio == 8 * 160
    assert made["DreamerV2 CR 8x"].replay.alpha == 0.7
    made = {job.method.name: job.config for job in jobs(ALL["crafter"], "paper", 1)}
    assert made["DreamerV2 CR"].replay.alpha == 0.5
    assert made["Plan2Explore CR"].choice.env == "crafter-noreward"
    assert made["DreamerV3"].choice.env == "crafter"
    for job in jobs(ALL["forgetting"], "paper", 1):
        assert job.config.train.steps * 2 > 1_500_000
        assert job.config.record.probe_every == 10_000
