"""An object that was always there beside one that appears, as results.json tell it."""

import importlib.util
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def figure7():
    spec = importlib.util.spec_from_file_location("figure7", ROOT / "results" / "figure7.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(uniform, curious):
    rows = [{"method": "uniform", "values": uniform}, {"method": "curious", "values": curious}]
    other = {"name": "contacts", "rows": [{"method": "uniform", "values": [1.0]}]}
    return {"measures": [other, {"name": "frames to contact 5", "rows": rows}]}


def test_times_are_those_of_both_worlds_and_never_is_more_than_any(figure7):
    same = results([300.0, None, 200.0], [None, None, 10.0])
    found = figure7.times(same, results([1.0, 2.0, 3.0], [5.0, 4.0, 6.0]))
    assert [(each.world, each.method) for each in found] == [
        ("always there", "uniform"), ("always there", "curious"),
        ("appears", "uniform"), ("appears", "curious"),
    ]  # fmt: skip
    assert [each.median for each in found] == [300.0, math.inf, 2.0, 5.0]


def test_every_run_is_a_dot_and_those_that_never_got_there_are_at_the_top(figure7):
    found = figure7.times(results([300.0, None], [None, None]), results([80.0, 90.0], [50.0, 40.0]))
    chart = figure7.draw(found)
    (axes,) = chart.figure.axes
    heights = [dots.get_offsets()[:, 1] for dots in axes.collections if len(dots.get_offsets())]
    seen = [np.sort(each).tolist() for each in heights if len(each) == 2]
    top = max(max(each) for each in seen)
    assert top > 300
    assert seen == [[300.0, top], [top, top], [80.0, 90.0], [40.0, 50.0]]
    assert "never" in [label.get_text() for label in axes.get_yticklabels()]


def test_each_pair_that_was_run_has_its_picture(figure7, tmp_path, monkeypatch):
    kept = figure7.HERE
    monkeypatch.setattr(figure7, "HERE", tmp_path)
    for name in {name for pair in figure7.PAIRS for name in pair}:
        if (kept / f"{name}-mini" / "results.json").exists():
            shutil.copytree(kept / f"{name}-mini", tmp_path / f"{name}-mini")
    there = sorted(path.relative_to(tmp_path) for path in tmp_path.glob("*/figure-7.svg"))
    for path in there:
        (tmp_path / path).unlink()
    figure7.main()
    drawn = sorted(path.relative_to(tmp_path) for path in tmp_path.glob("*/figure-7.svg"))
    assert drawn == there != []
