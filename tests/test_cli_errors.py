"""What ends a command from outside is told in one line: Ctrl-C, the disk, a place to write to."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import curious_replay
from curious_replay import cli
from curious_replay.commands import demo, envs, evaluate, report, sweep

RUN = "import sys; from curious_replay import cli; sys.exit(cli.main())"


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"curious-replay {curious_replay.__version__}\n"


def raising(error):
    def main(arguments, console):
        raise error

    return main


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_ctrl_c_is_one_line_in_every_command(name, monkeypatch, capsys):
    module = f"curious_replay.commands.{cli.COMMANDS[name][0]}"
    monkeypatch.setattr(f"{module}.main", raising(KeyboardInterrupt()))
    assert cli.main([name]) == 130
    assert capsys.readouterr().err == "curious: interrupted\n"


@pytest.mark.parametrize("name", cli.COMMANDS)
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(13, "Permission denied", "/x/y"), "/x/y: Permission denied"),
        (OSError("two\nlines"), "two lines"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_an_error_of_the_machine_is_one_line(name, error, told, monkeypatch, capsys):
    module = f"curious_replay.commands.{cli.COMMANDS[name][0]}"
    monkeypatch.setattr(f"{module}.main", raising(error))
    assert cli.main([name]) == 1
    assert capsys.readouterr().err == f"curious: {told}\n"


def test_ctrl_c_while_a_command_is_imported(monkeypatch, capsys):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.importlib, "import_module", interrupted)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "curious: interrupted\n"


def children(process):
    """Its processes, by /proc."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return path.read_text().split() if path.exists() else []


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 3.0])
def test_ctrl_c_ends_the_demo_and_its_processes(seconds, tmp_path):
    command = [sys.executable, "-c", RUN, "demo", "--seeds", "2", "--no-open"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(children(process)) < 3 and time.monotonic() < deadline:  # two, and one that tidies
        time.sleep(0.02)
    time.sleep(seconds)  # the processes are being imported, or at work
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, "curious: interrupted\n")


def never(*arguments, **options):
    raise AssertionError("work began before the place to write to was tried")


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["demo", "--out"], "--out"),
        (["demo", "--video"], "--video"),
        (["envs", "show", "toy/count", "--out"], "--out"),
        (["eval", "no-run", "--video"], "--video"),
        (["report", "no-run", "--out"], "--out"),
        (["report", "no-run", "--files"], "--files"),
        (["sweep", "toy-mirror", "--scale", "debug", "--runs", "{}/runs", "--out"], "--out"),
    ],
)
def test_a_place_to_write_to_is_tried_before_the_work(
    arguments, option, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for module, name in (
        (demo, "run_trials"), (envs, "record_random_policy"), (evaluate, "load_agent"),
        (report, "load_runs"), (sweep, "launcher"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, never)
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "made.gif"  # below what is no folder
    given = [each.format(tmp_path) for each in arguments]
    assert cli.main([*given, str(place)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{option}: nothing can be written to {place}: Not a directory" in said
    (tmp_path / "made.gif").mkdir()
    if option not in ("--files",) and arguments[0] != "sweep":
        assert cli.main([*given, "made.gif"]) == 2
        assert f"{option} must be a file, got the folder made.gif" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "made.gif"]


def test_a_file_that_may_not_be_written_is_refused(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.html"
    page.write_text("")
    monkeypatch.setattr(os, "access", lambda path, mode: path != page)
    assert cli.main(["report", str(tmp_path), "--out", str(page)]) == 2
    assert f"--out: {page} may not be written to; choose another" in capsys.readouterr().err
