"""A run's tables as DataFrames, where pandas is installed."""

import pytest
from helpers.folders import counters, write_run

import curious_replay as cr
from curious_replay import extras


@pytest.fixture
def folder(tmp_path):
    metrics = [{**counters(10 * i), "model/loss": 1 / i, "mode": "a"} for i in (1, 2, 4)]
    episodes = [{**counters(10), "return": 3.0}, counters(20)]
    return write_run(tmp_path / "run", metrics=metrics, episodes=episodes, seed=7)


def test_a_frame_has_the_lines_and_what_the_run_is(folder):
    pandas = pytest.importorskip("pandas")
    found = cr.load_run(folder).frame()
    assert isinstance(found, pandas.DataFrame)
    assert list(found.columns) == [
        "run", "env", "agent", "replay", "scale", "seed", "frame", "step", "update", "model/loss",
        "mode",
    ]  # fmt: skip
    assert found["model/loss"].tolist() == [1, 0.5, 0.25]
    assert found["step"].tolist() == [10, 20, 40]
    assert found["run"].tolist() == [str(folder)] * 3
    assert set(found["replay"]) == {"curious"}
    assert set(found["seed"]) == {7}
    episodes = cr.load_run(folder).frame("episodes")
    assert episodes["return"].isna().tolist() == [False, True]


def test_frames_of_runs_are_put_together(folder, tmp_path):
    pandas = pytest.importorskip("pandas")
    other = write_run(tmp_path / "other", replay="uniform", metrics=[counters(10)])
    empty = write_run(tmp_path / "empty")
    assert cr.load_run(empty).frame().shape == (0, 6)
    both = pandas.concat(cr.load_run(each).frame() for each in (folder, other))
    assert both.groupby("replay")["step"].max().to_dict() == {"curious": 40, "uniform": 10}


def test_there_are_no_other_tables(folder):
    pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"one of metrics, .*, got 'losses'"):
        cr.load_run(folder).frame("losses")


def test_without_pandas_it_is_said_in_one_line(folder, monkeypatch):
    monkeypatch.setattr(extras, "is_installed", lambda module: False)
    with pytest.raises(ImportError, match=r"^frame\(\) needs pandas, .*: pip install .*\[pandas\]"):
        cr.load_run(folder).frame()
