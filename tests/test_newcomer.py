"""The picture of an object that appears is drawn from what was counted in runs."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from curious_replay.experiments.jobs import jobs, with_trunks
from curious_replay.experiments.miniatures import appears

ROOT = Path(__file__).parents[1]
T0, T1 = appears.T0, appears.T1


@pytest.fixture
def newcomer():
    spec = importlib.util.spec_from_file_location("newcomer", ROOT / "results" / "newcomer.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Steps:
    """Stored steps of an agent that stands in one cell until T0 and then in another."""

    def __init__(self):
        self.frame = np.arange(1, appears.END + 1)
        self.places = np.where(self.frame[:, None] > T0, (4, 20), (4, 4))

    def has(self, name):
        return name == "log_agent_position"

    def field(self, name):
        assert name == "log_agent_position"
        return self.places


def run_of(job):
    return SimpleNamespace(name=job.name, seed=job.config.seed, complete=True)


def counted(newcomer, monkeypatch, runs):
    steps = Steps()
    contacts = np.where((steps.frame > T0 + 100) & (steps.frame <= T0 + 110), 1, 0)
    monkeypatch.setattr(newcomer.stored, "newest", lambda run: steps)
    monkeypatch.setattr(
        newcomer.interaction, "counts_of", lambda run, name, found: (steps.frame, contacts)
    )
    return newcomer.count(runs)


def test_steps_in_cells_and_contacts_are_counted(newcomer, monkeypatch):
    wanted = with_trunks(jobs(appears.APPEARS, "mini", 2))
    told = counted(newcomer, monkeypatch, [run_of(job) for job in wanted])
    assert {*told} == {"before", *(method.name for method in appears.APPEARS.methods)}
    for name, each in told.items():
        assert each["seeds"] == [2000, 2001]
        (row,), (column,) = np.nonzero(each["cells"][0])
        assert (row, column) == ((4, 4) if name == "before" else (4, 20))
        assert each["cells"][0][row][column] == T1 - T0
    assert told["curious"]["contacts"][0][:4] == [0, 0, 10, 10]
    chart = newcomer.draw(told)
    assert "2 seeds" in chart.caption
    titles = [axes.get_title(loc="left") for axes in chart.figure.axes]
    assert titles == [
        "before the object appears (brighter: more steps)", "after it, uniform replay",
        "after it, curious replay", "contacts with it (median and middle half of seeds)",
    ]  # fmt: skip


def test_other_runs_and_unfinished_ones_are_not_counted(newcomer, monkeypatch):
    one, other = (run_of(job) for job in jobs(appears.APPEARS, "mini", 1)[:2])
    one.name, other.complete = "another", False
    assert counted(newcomer, monkeypatch, [one, other]) == {}
