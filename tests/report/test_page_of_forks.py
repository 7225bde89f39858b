"""The page of runs that are forks: what they share is drawn once, and they say what they are."""

import numpy as np
import pytest
from helpers.folders import counters, write_run
from helpers.runs import config, run

from curious_replay import cli
from curious_replay.analysis import load
from curious_replay.report.page import report
from curious_replay.report.parts import TRUNK, bands_of
from curious_replay.run import fork

FORK = 100  # steps; frames are two for each


def lines(steps, value, contacts=0):
    made = [{**counters(t, 2), "log/contacts": contacts * (t > 120)} for t in range(10, steps, 10)]
    played = [{**counters(t, 2), "mode": "train", "return": 5.0 if t <= FORK else value,
               "length": 10, "phase": "x"} for t in range(10, steps, 10)]  # fmt: skip
    probes = [{**counters(t, 2), "scene": 1, "ahead": 1, "mse": 0.1, "mse_object": t / 100}
              for t in range(20, steps, 20)]  # fmt: skip
    return {"metrics": made, "episodes": played, "probes": probes}


def write(place, name, seed, replay, value, parent=None, steps=201, **more):
    meta = {"id": name, "resumes": []}
    if parent is not None:
        meta["parent"] = {
            "id": parent, "folder": f"/gone/{parent}", "step": FORK, "frame": 2 * FORK,
            "checkpoint": f"000009-step-{FORK}", "checksum": "feedbeef", "parent": None,
        }  # fmt: skip
    write_run(place / name, **lines(steps, value, seed + 1), seed=seed, replay=replay, steps=200,
              env="object-interaction", meta=meta,
              env_settings={"action_repeat": 2, "schedule": [[0, "a"], [240, "b"]]})  # fmt: skip


@pytest.fixture
def place(tmp_path):
    """Two seeds: a trunk that ends at the fork, and two branches of it."""
    for seed in range(2):
        write(tmp_path, f"trunk-{seed}", seed, "uniform", 0.0, steps=FORK + 1)
        write(tmp_path, f"uniform-{seed}", seed, "uniform", 1.0, f"trunk-{seed}")
        write(tmp_path, f"curious-{seed}", seed, "curious", 9.0 + seed, f"trunk-{seed}")
    return tmp_path


def sections(place, *names):
    folders = [place / name for name in names] if names else [place]
    return report(load.load_runs(folders))


def curve(made, name):
    """What a chart shows: frames and means of each line, by its label."""
    (figure,) = [f for s in made.sections for f in s.figures if f.name.endswith(f"-{name}")]
    axes = figure.chart.figure.axes[0]
    drawn = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    return {name: xy for name, xy in drawn.items() if name.endswith(("run)", "runs)"))}, figure


@pytest.mark.parametrize("trunks", [True, False])
def test_a_shared_trunk_is_drawn_once(trunks, place):
    names = () if trunks else [f"{r}-{s}" for r in ("uniform", "curious") for s in (0, 1)]
    made = sections(place, *names)
    drawn, figure = curve(made, "return")
    assert set(drawn) == {"uniform (2 runs)", "curious (2 runs)", f"{TRUNK} (2 runs)"}
    for name, xy in drawn.items():
        assert len(xy)
        assert (xy[:, 0].max() <= 2 * FORK) == name.startswith(TRUNK)
        assert (xy[:, 0].min() > 2 * FORK) == (not name.startswith(TRUNK))
    assert np.all(drawn[f"{TRUNK} (2 runs)"][:, 1] == 5.0)
    assert "before the fork, each trunk counts once" in figure.chart.caption


def test_a_trunk_is_no_run_of_a_method(place):
    made = sections(place)
    (section,) = made.sections
    assert {name: len(runs) for name, runs in section.methods.items()} == {
        "uniform": 2,
        "curious": 2,
    }
    rows = {row[0]: row for row in made.tables[0].rows}
    assert rows["trunk-0"][8] == "trunk of others"
    assert rows["curious-1"][8] == "finished"
    first = section.measures[0]
    assert first.name == "frames to contact 5"
    assert {name: len(values) for name, values in first.values.items()} == {
        "uniform": 2, "curious": 2
    }  # fmt: skip


def test_a_parent_that_went_on_is_one_of_the_branches(tmp_path):
    write(tmp_path, "parent", 0, "uniform", 1.0)
    write(tmp_path, "fork", 0, "curious", 9.0, "parent")
    drawn, _ = curve(sections(tmp_path), "return")
    assert {name: xy[:, 0].min() > 2 * FORK for name, xy in drawn.items()} == {
        "uniform (1 run)": True, "curious (1 run)": True, f"{TRUNK} (1 run)": False
    }  # fmt: skip


def test_sums_and_errors_go_on_from_the_trunk(place):
    made = sections(place)
    contacts, _ = curve(made, "contacts")
    assert f"{TRUNK} (2 runs)" not in contacts  # the object comes after the fork
    assert contacts["curious (2 runs)"][-1, 1] == 8 * 1.5
    errors, _ = curve(made, "model-error")
    assert errors[f"{TRUNK} (2 runs)"][:, 0].tolist() == [40, 80, 120, 160, 200]
    assert errors["uniform (2 runs)"][0].tolist() == [240, 1.2]


def test_without_forks_nothing_is_different(tmp_path):
    for seed in range(2):
        write(tmp_path, f"run-{seed}", seed, "uniform", 1.0)
    made = sections(tmp_path)
    drawn, figure = curve(made, "return")
    assert list(drawn) == ["uniform (2 runs)"]
    assert "fork" not in figure.chart.caption
    assert "fork" not in made.html
    runs = load.load_runs([tmp_path]).runs
    grid = np.array([0, 100, 400])
    bands = bands_of({"all": runs}, grid, lambda r: (r.metrics["frame"], r.metrics["step"]))
    assert bands["all"].n.tolist() == [2, 2, 2]


def test_runs_of_a_method_that_share_a_trunk_are_named(place):
    write(place, "again", 1, "curious", 3.0, "trunk-1")
    (section,) = sections(place).sections
    said = "curious: again, curious-1 share a trunk: they are not independent"
    assert any(each.startswith(said) for each in section.verdicts)


def test_the_page_names_the_parent_the_step_and_the_checksum(place, tmp_path):
    html = sections(place).html
    assert "trunk-1 at step 100 (checkpoint 000009-step-100, checksum feedbeef)" in html
    assert "no run of a method" in html


def test_real_forks_are_recognised(tmp_path):
    made = config("toy/two-rooms", "curious", env={"length": 11}, train={"steps": 100},
                  record={"keep_at": (60,)})  # fmt: skip
    run(made, tmp_path / "runs" / "parent")
    for name, ratio in (("one", 2.0), ("two", 8.0)):
        folder = tmp_path / "runs" / name
        forked = fork(tmp_path / "runs" / "parent", logdir=folder, at=60,
                      settings={"train.ratio": ratio})  # fmt: skip
        run(forked, folder, resume=True)
    out = tmp_path / "report.html"
    by = ["--by", "train.ratio", "--baseline", "4.0"]
    assert cli.main(["report", str(tmp_path / "runs"), "--out", str(out), *by]) == 0
    html = out.read_text()
    assert html.count("parent at step 60 (checkpoint 000003-step-60, checksum ") == 2
    assert "each trunk counts once" in html
