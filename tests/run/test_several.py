"""Runs that torchrun starts in two processes: they are runs as any other, and end together."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.processes import PATIENCE, started
from helpers.runs import lines

from curious_replay import cli, launch
from curious_replay.run.record.record_files import read_meta

HERE = Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
            "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]  # fmt: skip
SHORT = ["--env", "toy/two-rooms", "--agent", "dreamerv3", "--scale", "debug",
         "--train.batch-size", "2", "--record.no-tensorboard",
         "--import", str(HERE / "dying.py")]  # fmt: skip


def command(folder, *more, alone=False):
    start = [sys.executable] if alone else TORCHRUN
    return [*start, "-m", "curious_replay", "train", *SHORT, "--logdir", str(folder), *more]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "OMP_NUM_THREADS": "1", **more}


def run(folder, *more, alone=False, **variables):
    return subprocess.run(
        command(folder, *more, alone=alone), env=environment(**variables),
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run in two processes that nothing happened to."""
    folder = tmp_path_factory.mktemp("several") / "whole"
    ended = run(folder)
    assert ended.returncode == 0, ended.stderr
    return folder


def test_a_run_in_two_processes_is_that_of_one(whole, tmp_path):
    ended = run(tmp_path / "one", alone=True)
    assert ended.returncode == 0, ended.stderr
    assert read_meta(whole)["processes"] == 2
    assert read_meta(tmp_path / "one")["processes"] == 1
    found, wanted = metrics(whole), metrics(tmp_path / "one")
    assert len(found) == len(wanted) > 1
    assert any("model/loss" in line for line in wanted)
    for ours, other in zip(found, wanted, strict=True):
        assert ours == pytest.approx(other, rel=1e-3, abs=1e-4)


def test_a_process_that_dies_ends_all_and_the_run_resumes(whole, tmp_path):
    ended = run(tmp_path, DIES="1 5 error")
    assert ended.returncode != 0
    assert "RuntimeError: planted in process 1" in ended.stderr
    assert "another process of this run has ended" in ended.stderr
    assert f"`curious train --logdir {tmp_path} --resume" in ended.stderr
    ended = run(tmp_path, "--resume")
    assert ended.returncode == 0, ended.stderr
    assert lines(tmp_path) == lines(whole)


@pytest.mark.slow
@pytest.mark.parametrize("dies", ["0 5 error", "0 5 SIGKILL", "1 5 SIGKILL"])
def test_no_process_waits_for_one_that_is_gone(dies, whole, tmp_path):
    """`run` returns when all processes have ended, as each holds what is read here."""
    ended = run(tmp_path, DIES=dies)
    assert ended.returncode != 0
    assert ("planted in process 0" in ended.stderr) == (dies == "0 5 error")
    assert ("another process of this run has ended" in ended.stderr) == (dies[0] == "1")
    assert "complete" not in ended.stdout
    ended = run(tmp_path, "--resume")
    assert ended.returncode == 0, ended.stderr
    assert lines(tmp_path) == lines(whole)


def test_a_signal_stops_all_in_order(tmp_path):
    folder = tmp_path / "run"
    with started(
        command(folder, "--train.steps", "1e6"), env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        until = time.monotonic() + PATIENCE
        lines = folder / "metrics.jsonl"
        while not lines.exists() or "model/loss" not in lines.read_text():
            assert process.poll() is None and time.monotonic() < until, process.stdout.read()
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE)
    assert "stopped by SIGTERM at step" in output
    assert "Traceback" not in output.partition("stopped by SIGTERM")[0]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (["--train.batch-size", "3"], "--train.batch-size must be a multiple of 2, the number of "
         "processes, got 3: 2 would be one"),
        (["--agent.starts", "0.06"], "--agent.starts 0.06 lets imagination begin from 1 states"),
        (["--agent", "iris", "--agent.pictures", "5"], "--agent.pictures must be a multiple of 2"),
        (["--train.graphs"], "--train.graphs is for one process, and here are 2"),
    ],
)  # fmt: skip
def test_what_cannot_be_shared_is_refused_before_anything_starts(tmp_path, options, refusal):
    ended = run(tmp_path / "run", *options)
    assert ended.returncode != 0
    assert refusal in ended.stderr
    assert ended.stderr.count("curious: ") == 1
    assert not (tmp_path / "run").exists()


def test_other_commands_are_for_one_process(monkeypatch, capsys):
    for name, value in {launch.STARTED: "1", "WORLD_SIZE": "2", "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    assert cli.main(["doctor"]) == 2
    assert "torchrun started 2 processes, and curious doctor is work for one" in (
        capsys.readouterr().err
    )


def test_variables_of_others_than_torchrun_mean_nothing(monkeypatch):
    monkeypatch.delenv(launch.STARTED, raising=False)
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("RANK", "3")
    assert (launch.processes(), launch.number()) == (1, 0)
