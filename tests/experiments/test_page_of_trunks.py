"""The page of an experiment with trunks, from run folders made by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.folders import counters, write_run

from curious_replay.experiments import catalogue, page
from curious_replay.experiments.experiment import Registration
from curious_replay.experiments.jobs import jobs, with_trunks

GRID = str(Path(__file__).parents[1] / "sweep" / "small_trunk.py")


def make(job, runs, losses):
    """The folder of a complete run: losses {step: loss}, and an hour for each hundred steps."""
    folder, steps = job.folder(runs), job.config.train.steps
    meta = {"id": f"{job.name}", "commit": "a" * 40 if job.trunk else "b" * 40}
    if job.trunk is not None:
        trunk = job.trunk
        meta["parent"] = {
            "id": trunk.name, "folder": str(trunk.folder(runs)), "step": 150, "frame": 150,
            "checkpoint": "000003-step-150", "checksum": "abc", "parent": None,
        }  # fmt: skip
    write_run(
        folder,
        metrics=[{**counters(step), "model/loss": loss} for step, loss in losses.items()],
        replay=job.config.choice.replay,
        env="toy/count",
        seed=job.config.seed,
        steps=steps,
        meta=meta,
    )
    speed = {**counters(steps), "session": 1, "steps_per_second": 100 / 3600}
    (folder / "speed.jsonl").write_text(json.dumps(speed) + "\n")
    (folder / "checkpoints" / f"000009-step-{steps}").mkdir(parents=True)


@pytest.fixture
def made(tmp_path):
    experiment = catalogue.find(GRID)
    wanted = jobs(experiment, "debug", 6)
    for job in with_trunks(wanted):
        before = {100: 9.0, 150: 8.0}
        after = {"uniform": 7.0, "curious": 5.0, "slow": 7.0}.get(job.method.name)
        after = after and after + job.config.seed
        make(job, tmp_path, before if job.trunk is None else {**before, 300: after})
    return experiment, wanted, tmp_path


def write(made, wanted=None):
    experiment, every, runs = made
    found = page.write(experiment, "debug", wanted or every, runs, runs / "out", "a command")
    return found, (runs / "out" / "report.html").read_text()


def test_branches_are_compared_and_trunks_named(made):
    found, html = write(made)
    faster, same = found.claims[0].compared
    assert (faster.pairs, faster.better, faster.effect) == (6, 6, -2)
    assert (same.ties, same.effect) == (6, 0)
    assert found.claims[1].word == "held"
    assert "All methods go on from the same run of each seed" in html
    assert page.GROUPED in html
    assert html.count("trunk of others") == 6
    assert (made[2] / "out" / "figures" / "small-trunk-pairs.csv").exists()


def test_a_trunk_is_paid_once_on_the_page(made):
    (told,) = write(made)[0].made
    assert (told["runs"], told["wanted"]) == (18, 18)
    assert told["hours"] == pytest.approx(6 * 1.5 + 18 * 1.5)
    assert told["commits"] == ["a" * 10, "b" * 10]


def test_trunks_may_be_deleted(made):
    _, wanted, runs = made
    for job in with_trunks(wanted):
        if job.trunk is None:
            job.folder(runs).rename(runs / job.name)
    found, html = write(made)
    assert found.claims[0].compared[0].pairs == 6
    assert "trunk of others" not in html


def test_a_trunk_that_is_not_that_of_its_branches_is_left_out(made):
    """It was deleted, and trained again for others."""
    _, wanted, runs = made
    path = wanted[0].trunk.folder(runs) / "meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "id": "another"}))
    assert write(made)[1].count("trunk of others") == 5


def test_registered_experiments_say_so(made):
    experiment, wanted, runs = made
    registered = Registration("2026-01-31", scale="debug")
    mine = replace(experiment, seeds=6, registered=registered)
    found, html = write((mine, wanted, runs))
    assert found.word == "not tested"
    assert "Registered on 2026-01-31 for debug scale" in html
