"""The order of a sweep with trunks: none is run twice, and no branch before its own."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from curious_replay import cli
from curious_replay.commands import sweep as command
from curious_replay.experiments import catalogue
from curious_replay.experiments.jobs import jobs
from curious_replay.sweep import local
from curious_replay.sweep import sweep as module
from curious_replay.sweep.local import LocalLauncher
from curious_replay.sweep.sweep import Sweep
from curious_replay.sweep.table import SweepTable
from curious_replay.sweep.work import Ended, run_task

GRID = str(Path(__file__).with_name("small_trunk.py"))
OTHER = "eval.every=0-{}train.save-every=50-train.steps"
TRUNKS = [f"toy-count-dreamerv3-uniform-{OTHER.format('')}=150-seed={seed}" for seed in (0, 1)]


@pytest.fixture
def tasks(tmp_path):
    """The branches of two seeds, three of each."""
    return [command._task(job, tmp_path) for job in jobs(catalogue.find(GRID), "debug", 2)]


def make(task, step=None):
    """What a run leaves that has come to a step, by default its last."""
    step = task.steps if step is None else step
    (task.folder / "checkpoints" / f"000001-step-{step}").mkdir(parents=True)
    (task.folder / "config.json").write_text(json.dumps(task.config))


class Scripted:
    """A launcher that completes a task at each look, or fails as often as told: {name: times}."""

    def __init__(self, fails=()):
        self.fails, self.given, self.waiting = dict(fails), [], []

    def submit(self, tasks):
        self.given += [task.name for task in tasks]
        self.waiting += tasks

    def running(self):
        return set()

    def ended(self):
        if not self.waiting:
            return []
        task = self.waiting.pop(0)
        if self.fails.get(task.name, 0):
            self.fails[task.name] -= 1
            return [Ended(task.name, 1, "no floor")]
        make(task)
        return [Ended(task.name, 0)]

    def stop(self):
        self.waiting = []


@pytest.fixture
def run(tasks, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.0)

    def run(launcher, retries=0, **options):
        sweep = Sweep.of(tasks)
        sweep.run(launcher, retries, **options)
        return sweep

    return run


def test_a_branch_waits_for_its_trunk_alone(run, tasks):
    names = [task.name for task in tasks]
    launcher = Scripted()
    sweep = run(launcher)
    assert {entry.status for entry in sweep.entries.values()} == {"complete"}
    assert launcher.given[:5] == [*TRUNKS, *names[:3]]
    assert sorted(launcher.given) == sorted([*TRUNKS, *names])  # each of them once
    again = Scripted()
    run(again)
    assert again.given == []


def test_branches_of_a_trunk_that_fails_for_good_are_reported(run, tasks):
    launcher = Scripted({TRUNKS[0]: 2})
    sweep = run(launcher, retries=1)
    assert launcher.given.count(TRUNKS[0]) == 2
    for task in tasks:
        entry = sweep.entries[task.name]
        if task.trunk.name == TRUNKS[0]:
            assert (entry.status, entry.attempts) == ("failed", 0)
            assert entry.reason == f"its trunk {TRUNKS[0]} failed: no floor"
            assert task.name not in launcher.given
        else:
            assert entry.status == "complete"
    again = Scripted({TRUNKS[0]: 1})  # as often as told, from the start
    sweep = run(again, retries=1)
    assert {entry.status for entry in sweep.entries.values()} == {"complete"}
    assert TRUNKS[1] not in again.given


def test_a_branch_that_fails_is_tried_again_without_its_trunk(run, tasks):
    launcher = Scripted({tasks[0].name: 1})
    run(launcher, retries=1)
    assert launcher.given.count(tasks[0].name) == 2
    assert launcher.given.count(TRUNKS[0]) == 1


def test_a_trunk_is_run_only_for_branches_that_have_not_begun(run, tasks):
    make(tasks[0])
    make(tasks[1], step=200)
    make(tasks[2], step=200)
    launcher = Scripted()
    sweep = run(launcher)
    assert TRUNKS[0] not in launcher.given
    assert TRUNKS[0] not in sweep.entries
    assert {tasks[1].name, tasks[2].name, TRUNKS[1]} < {*launcher.given}
    assert tasks[0].name not in launcher.given


@pytest.mark.parametrize("state", ["missing", "broken"])
def test_a_trunk_is_run_again_for_a_branch_that_must_begin(state, run, tasks):
    for task in tasks[:2]:
        make(task)
    if state == "broken":
        make(tasks[2], step=200)
        (tasks[2].folder / "config.json").write_text("{")
    launcher = Scripted()
    Sweep.of(tasks).run(launcher, 0, stop=lambda: bool(launcher.given))
    assert launcher.given == TRUNKS


def test_a_stopped_sweep_leaves_its_branches_for_later(run, tasks):
    looks = iter([False, True])
    sweep = run(Scripted(), stop=lambda: next(looks))
    assert sweep.stopped
    states = [entry.status for entry in sweep.entries.values()]
    assert (states.count("complete"), states.count("stopped")) == (2, 6)


def test_what_a_branch_waits_for_is_shown(tasks, console):
    shown = SweepTable(console, Sweep.of(tasks), "title")
    console.print(shown.picture())
    lines = [line.split("  ") for line in console.file.getvalue().splitlines()]
    states = [[cell.strip() for cell in line if cell.strip()][1] for line in lines[1:9]]
    assert sorted(states) == ["waiting"] * 2 + ["waiting for its trunk"] * 6


def test_time_left_is_that_of_the_branch(tasks, console, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    sweep = Sweep.of(tasks)
    entry = sweep.entries[tasks[0].name]
    entry.status = "running"
    table = SweepTable(console, sweep, "title")
    table.show()  # it has not forked yet
    now[0] += 60
    make(tasks[0], step=200)
    assert table._left(entry, 200) == "0:02:00"  # 50 steps took a minute


def test_branches_go_before_trunks_that_wait(tasks, monkeypatch):
    monkeypatch.setattr(local, "_start", lambda process: None)
    here = LocalLauncher(at_once=0)
    trunks = [tasks[0].trunk, tasks[3].trunk]
    here.submit(trunks)
    here.submit(tasks[:3])
    here.submit(tasks[3:])
    assert [*here._waiting] == [*tasks, *trunks]


def test_branches_go_before_the_next_trunk_when_theirs_has_ended(tasks, monkeypatch):
    monkeypatch.setattr(local, "_start", lambda process: None)
    here = LocalLauncher(at_once=1)
    first, second = tasks[0].trunk, tasks[3].trunk
    here.submit([first, second])
    assert here.running() == {first.name}
    here._processes[first.name] = SimpleNamespace(exitcode=0), None
    assert [each.name for each in here.ended()] == [first.name]
    here.submit(tasks[:3])
    assert here.running() == {tasks[0].name}
    assert [*here._waiting] == [*tasks[1:3], second]


def test_a_branch_without_its_trunk_says_what_to_do(tasks):
    assert run_task(tasks[0]) == 1
    said = tasks[0].log.read_text()
    assert f"its trunk {tasks[0].trunk.folder} is not complete: start the sweep again" in said
    assert not tasks[0].folder.exists()


def test_a_branch_of_a_damaged_trunk_says_what_to_do(tasks):
    make(tasks[0].trunk)  # its checkpoint is empty
    assert run_task(tasks[0]) == 1
    last = tasks[0].log.read_text().strip().splitlines()[-1]
    kind = "curious_replay.errors.UsageError"
    assert last.startswith(f"{kind}: its trunk {tasks[0].trunk.folder} cannot be read: ")
    assert last.endswith("; move it away and start the sweep again, which trains it anew")
    assert not tasks[0].folder.exists()
    assert tasks[0].trunk.folder.exists()


def test_the_command_says_why_branches_were_not_begun(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setattr(command, "launcher", lambda *_: nullcontext(Scripted({TRUNKS[0]: 1})))
    options = ["--retries", "0", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    assert cli.main(["sweep", GRID, "--scale", "debug", *options]) == 1
    said = capsys.readouterr().out.splitlines()
    log = tmp_path / "runs" / "debug" / f"{TRUNKS[0]}.log"
    assert "4 runs (1 of them trunks)" in said[0]
    failed, *others = said[-4:]
    assert failed == f"failed 1 times: {TRUNKS[0]}: no floor; see {log}"
    for line in others:
        assert line.startswith("not begun: toy-count-dreamerv3-")
        assert line.endswith(f"its trunk {TRUNKS[0]} failed: no floor; see {log}")
    assert "3 of 3 runs are not complete" in (tmp_path / "out" / "report.html").read_text()


def test_dry_run_names_trunks_and_only_those_of_the_methods_chosen(tmp_path, capsys):
    options = ["--runs", str(tmp_path), "--dry-run", "--only", "slow"]
    assert cli.main(["sweep", GRID, "--scale", "debug", *options]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"waiting   {TRUNKS[0]}",
        f"waiting   toy-count-dreamerv3-count-{OTHER.format('replay.beta=0.9-')}=300"
        "-from=uniform-150-seed=0",
    ]
