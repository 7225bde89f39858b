"""Slurm jobs as submitit runs them, without Slurm: what happens when their time is up."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.processes import PATIENCE, started
from helpers.waiting import wait_for
from submitit.core.job_environment import JobEnvironment
from submitit.core.utils import DelayedSubmission, JobPaths, pickle_load

from curious_replay import cli
from curious_replay.experiments import catalogue
from curious_replay.experiments.jobs import jobs
from curious_replay.sweep import on_slurm
from curious_replay.sweep.launchers import SlurmOptions
from curious_replay.sweep.on_slurm import SlurmLauncher, _Resumable
from curious_replay.sweep.task import Task

GRID = str(Path(__file__).with_name("small_grid.py"))
TIME_IS_UP = JobEnvironment._usr_sig()
JOB = "7"


@pytest.fixture
def long_task(tmp_path):
    """A run that would take hours and saves only when it is stopped; environments in processes."""
    config = jobs(catalogue.find(GRID), "debug", 1)[0].config.to_json()
    config["train"] |= {"steps": 1_000_000, "save_every": 0}
    config["env"] |= {"processes": True, "num_envs": 2}
    return Task("long", config, tmp_path / "runs" / "long")


@pytest.fixture
def job(long_task, tmp_path):
    """The command of a job, its variables, the files of submitit, and what Slurm was asked."""
    paths, asked = JobPaths(tmp_path / "jobs", job_id=JOB), tmp_path / "asked"
    paths.folder.mkdir()
    submission = DelayedSubmission(_Resumable(), long_task)
    submission.set_timeout(30, 5)
    submission.dump(paths.submitted_pickle)
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    (tmp_path / "scontrol").chmod(0o755)
    variables = {
        **os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "SUBMITIT_EXECUTOR": "slurm", "SLURM_JOB_ID": JOB, "SLURM_PROCID": "0",
    }  # fmt: skip
    command = [sys.executable, "-m", "submitit.core._submit", str(paths.folder)]
    return command, variables, paths, asked


@pytest.mark.slow
def test_a_job_whose_time_is_up_saves_is_queued_again_and_resumes(job, long_task):
    command, variables, paths, asked = job
    options = {"env": variables, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with started(command, start_new_session=True, **options) as process:
        wait_for(lambda: long_task.steps_done, process, PATIENCE)
        os.killpg(process.pid, TIME_IS_UP)  # Slurm tells all processes of a job
        process.wait(PATIENCE)
    (saved,) = long_task.folder.glob("checkpoints/*-step-[1-9]*")
    assert asked.read_text() == f"requeue {JOB}\n"
    assert not paths.result_pickle.exists()  # which would mean that the job is over
    said = long_task.log.read_text()
    assert "failed" not in said  # no environment was lost on the way

    with started(command, start_new_session=True, **options) as process:
        wait_for(lambda: "resumed" in long_task.log.read_text(), process, PATIENCE)
        os.killpg(process.pid, signal.SIGTERM)  # it has to make room, or its sweep is stopped
        process.wait(PATIENCE)
    step = re.search(r"resumed at step ([\d,]+)", long_task.log.read_text())[1].replace(",", "")
    assert saved.name.endswith(f"-step-{step}")
    assert asked.read_text() == f"requeue {JOB}\n"  # once: now the sweep decides
    assert pickle_load(paths.result_pickle) == ("success", 128 + signal.SIGTERM)


class Requeued(BaseException):
    """What submitit's handler does stands for the exit of the process."""


@pytest.fixture
def submitit_listens():
    """Handlers as submitit sets them before it calls a function."""

    def requeue(number, frame):
        raise Requeued

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, TIME_IS_UP)}
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    signal.signal(TIME_IS_UP, requeue)
    yield requeue
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_job_is_queued_again_at_once_while_there_is_nothing_to_save(
    submitit_listens, long_task, monkeypatch
):
    monkeypatch.setattr(on_slurm, "run_task", lambda task: os.kill(os.getpid(), TIME_IS_UP))
    with pytest.raises(Requeued):
        _Resumable()(long_task)
    assert signal.getsignal(TIME_IS_UP) is submitit_listens


@pytest.mark.parametrize("code", [0, 1])
def test_a_run_that_ends_by_itself_is_not_queued_again(
    code, submitit_listens, long_task, monkeypatch
):
    """It was complete, or failed, before it could hear that its time is up."""

    def run(task):
        signal.signal(signal.SIGTERM, lambda number, frame: None)  # as a run listens
        os.kill(os.getpid(), TIME_IS_UP)
        return code

    monkeypatch.setattr(on_slurm, "run_task", run)
    assert _Resumable()(long_task) == code


def test_a_run_of_days_may_pass_many_time_limits(long_task, tmp_path, monkeypatch):
    (tmp_path / "srun").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    executor = SlurmLauncher(1, SlurmOptions())._executor(long_task)
    assert executor._executor.max_num_timeout >= 1000


def test_a_machine_without_slurm_is_refused(sweep_command, tmp_path, capsys, monkeypatch):
    command = sweep_command(tmp_path, "--launcher", "slurm")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert cli.main(command) == 2
    said = capsys.readouterr().err
    assert "--launcher slurm: there is no command sbatch, srun, sacct, scancel here" in said
    for name in ("sbatch", "srun", "scancel"):
        (tmp_path / "bin" / name).touch(mode=0o755)
    assert cli.main(command) == 2
    assert "there is no command sacct here" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
