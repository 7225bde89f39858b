"""How tasks on this machine end when a sweep does, without tasks."""

from collections import Counter
from pathlib import Path

import pytest
import torch

from curious_replay.commands.sweep import SweepCommand
from curious_replay.sweep import local
from curious_replay.sweep.launchers import RayOptions, SlurmOptions, launcher
from curious_replay.sweep.local import LocalLauncher
from curious_replay.sweep.task import Task


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
    pictures = SweepCommand("background-swap", images=Path("DAVIS"), clips=("boat", "bmx-bumps"))
    assert pictures.whole == (
        "curious sweep background-swap --scale mini --images DAVIS --clips boat bmx-bumps"
    )


def test_tasks_end_with_a_sweep_that_fails():
    """Or else multiprocessing would wait for them, however long they take."""
    process = Process(hears=True)
    options = ("local", 1, 1, RayOptions(), SlurmOptions())
    with pytest.raises(BrokenPipeError), launcher(*options) as here:
        here._processes["task"] = process, None
        raise BrokenPipeError
    assert process.exitcode == 143


@pytest.mark.parametrize(
    ("visible", "found", "shares"),
    [
        (None, 2, {"0": 3, "1": 3}),
        ("2,3", 2, {"2": 3, "3": 3}),
        ("GPU-a, GPU-b,GPU-c,GPU-d", 4, {"GPU-a": 2, "GPU-b": 2, "GPU-c": 1, "GPU-d": 1}),
        ("5,-1,6", 1, {"5": 6}),  # what follows a wrong name does not count
        ("", 0, {None: 6}),
        (None, 0, {None: 6}),
    ],
)
def test_runs_share_the_cards_that_are_visible(visible, found, shares, monkeypatch):
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: found)
    monkeypatch.setattr(local, "_start", lambda process: None)
    with launcher("local", 6, 1, RayOptions(), SlurmOptions()) as here:
        here.submit([Task(str(number), {}, Path("unused")) for number in range(8)])
        assert Counter(card for _, card in here._processes.values()) == shares
        for name, (_, card) in here._processes.items():
            here._processes[name] = Process(hears=True), card
        here._processes["1"][0].exitcode = 0
        freed = here._processes["1"][1]
        here.ended()
        assert "6" in here.running()
        assert here._processes["6"][1] == freed  # the next run is where one has ended
        here._processes["6"] = Process(hears=True), freed


def test_there_are_as_many_runs_at_once_as_cards(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3,4")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(local, "_start", lambda process: None)
    with launcher("local", 0, 1, RayOptions(), SlurmOptions()) as here:
        here.submit([Task(str(number), {}, Path("unused")) for number in range(5)])
        assert sorted(card for _, card in here._processes.values()) == ["2", "3", "4"]
        here._processes.clear()
