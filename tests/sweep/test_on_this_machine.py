"""How tasks on this machine end when a sweep does, without tasks."""

import pytest

from curious_replay.commands.sweep import SweepCommand
from curious_replay.sweep import local
from curious_replay.sweep.launchers import RayOptions, SlurmOptions, launcher
from curious_replay.sweep.local import LocalLauncher


class Process:
    """One that ends when it is asked to, or only when it is killed."""

    def __init__(self, hears):
        self.hears, self.exitcode, self.killed = hears, None, False

    def terminate(self):
        self.exitcode = 143 if self.hears else None

    def join(self, timeout=None):
        assert self.exitcode is not None or timeout is not None, "this would take for ever"

    def kill(self):
        self.killed, self.exitcode = True, -9


def test_a_task_that_does_not_hear_is_ended(monkeypatch):
    monkeypatch.setattr(local, "STOP_SECONDS", 0.0)
    here = LocalLauncher(at_once=2)
    hearing, deaf = Process(hears=True), Process(hears=False)
    here._processes = {"hearing": (hearing, None), "deaf": (deaf, None)}
    here.stop()
    assert (hearing.killed, deaf.killed) == (False, True)
    assert [(each.name, each.code) for each in here.ended()] == [("hearing", 143), ("deaf", -9)]


def test_the_command_on_record_is_that_of_all_runs():
    """Not of those that were left when it was called last, nor of one machine's folders."""
    command = SweepCommand("toy-mirror", only=("DreamerV3",), at_once=3, seeds=5, first_seed=2)
    assert command.whole == "curious sweep toy-mirror --scale mini --seeds 5 --first-seed 2"
    assert SweepCommand("my grid.py", threads=2).whole == (
        "curious sweep 'my grid.py' --scale mini --threads 2"
    )


def test_tasks_end_with_a_sweep_that_fails():
    """Or else multiprocessing would wait for them, however long they take."""
    process = Process(hears=True)
    options = ("local", 1, 1, RayOptions(), SlurmOptions())
    with pytest.raises(BrokenPipeError), launcher(*options) as here:
        here._processes["task"] = process, None
        raise BrokenPipeError
    assert process.exitcode == 143
