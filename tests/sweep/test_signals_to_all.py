"""A signal to all processes at once, as service managers and schedulers send it."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest
from helpers.processes import PATIENCE
from helpers.waiting import saved_on_the_way, wait_for

from curious_replay.experiments import catalogue
from curious_replay.experiments.jobs import jobs
from curious_replay.run.loop.stop import Stop, repeats_ignored
from curious_replay.sweep.local import LocalLauncher
from curious_replay.sweep.task import Task

GRID = str(Path(__file__).with_name("small_grid.py"))
TWICE = f"""
import os
from curious_replay.run.loop.stop import Stop, repeats_ignored
with {{}} as stop:
    os.kill(os.getpid(), {signal.SIGTERM:d})
    os.kill(os.getpid(), {signal.SIGTERM:d})
    print(stop.signal.name)
"""


@pytest.mark.parametrize(
    ("listening", "code", "said"),
    [("Stop()", -signal.SIGTERM, ""), ("repeats_ignored(), Stop()", 0, "SIGTERM\n")],
    ids=["by hand", "in a sweep"],
)
def test_a_second_signal_ends_a_run_at_once_unless_it_is_part_of_a_sweep(listening, code, said):
    script = TWICE.format(listening)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, said)


def test_only_runs_of_a_sweep_ignore_repeats():
    with repeats_ignored():
        assert Stop.patient
    assert not Stop.patient


@pytest.mark.slow
def test_a_run_of_a_sweep_saves_however_often_it_hears(tmp_path):
    config = jobs(catalogue.find(GRID), "debug", 1)[0].config.to_json()
    config["train"] |= {"steps": 1_000_000, "save_every": 0}
    task = Task("long", config, tmp_path / "runs" / "long")
    here = LocalLauncher(at_once=1)
    try:
        here.submit([task])
        process, _ = here._processes["long"]
        wait_for(lambda: task.steps_done, seconds=PATIENCE)
        while process.is_alive() and not saved_on_the_way(tmp_path / "runs"):
            os.kill(forkserver._forkserver._forkserver_pid, signal.SIGTERM)
            process.terminate()  # more often than a sweep does, which has heard it too
            time.sleep(0.01)
        process.join(PATIENCE)
    finally:
        here.stop()
    assert saved_on_the_way(tmp_path / "runs")
