"""How often a task is tried: what counts as a failure, and what does not."""

import json
import signal

import pytest

from curious_replay.sweep import sweep as module
from curious_replay.sweep.sweep import Sweep
from curious_replay.sweep.task import Task
from curious_replay.sweep.work import Ended

STOPPED = 128 + signal.SIGTERM


class Scripted:
    """A launcher whose task ends as told, [(code, step to which it has come by then)]."""

    def __init__(self, *ends):
        self.ends, self.waiting = list(ends), []

    def submit(self, tasks):
        self.waiting = tasks

    def running(self):
        return set()

    def ended(self):
        (task,), (code, step) = self.waiting, self.ends.pop(0)
        task.folder.mkdir(exist_ok=True)
        (task.folder / "metrics.jsonl").write_text(json.dumps({"frame": step, "step": step}) + "\n")
        return [Ended(task.name, code)]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.0)

    def run(launcher, retries):
        sweep = Sweep.of([Task("a", {"train": {"steps": 10}}, tmp_path / "a")])
        sweep.run(launcher, retries)
        return sweep.entries["a"]

    return run


def test_a_run_that_had_to_make_room_goes_on_however_often(run):
    launcher = Scripted((STOPPED, 1), (STOPPED, 2), (STOPPED, 3), (1, 4), (STOPPED, 5), (1, 6))
    entry = run(launcher, retries=1)
    assert not launcher.ends  # it was tried until it had failed twice
    assert (entry.status, entry.attempts) == ("failed", 2)


def test_a_run_that_is_stopped_again_and_again_where_it_was_fails(run):
    launcher = Scripted((STOPPED, 1), *[(STOPPED, 1)] * 2, (STOPPED, 2))
    entry = run(launcher, retries=1)
    assert launcher.ends == [(STOPPED, 2)]
    assert (entry.status, entry.attempts) == ("failed", 2)
