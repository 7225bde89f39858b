"""Sweeps on other machines: a Ray cluster that loses a node, and Slurm."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.processes import PATIENCE, started
from helpers.waiting import saved_on_the_way, stopped_in_order, trunks, wait_for

from curious_replay import cli

pytestmark = pytest.mark.slow

LOSE_A_NODE = Path(__file__).with_name("lose_a_node.py")
TRUNK = str(Path(__file__).with_name("small_trunk.py"))


def test_ray_survives_the_loss_of_a_node(either, sweep_command, results, tmp_path):
    grid, undisturbed, origins = either
    options = ("--launcher", "ray", "--ray.address", "ADDRESS", "--ray.gpus", "0")
    runs = tmp_path / "runs" / "debug"
    command = sweep_command(tmp_path, *options, grid=grid)
    command = [sys.executable, "-m", "curious_replay.cli", *command]
    steps = "150" if origins else "300"  # the node is lost while trunks are trained
    done = subprocess.run(
        [sys.executable, str(LOSE_A_NODE), str(runs), steps, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(tmp_path) == results(undisturbed)
    resumes = [len(json.loads(path.read_text())["resumes"]) for path in runs.glob("*/meta.json")]
    assert sum(resumes) >= 1  # the node was lost while it worked
    for path in runs.glob("*/metrics.jsonl"):
        steps = [json.loads(line)["step"] for line in path.read_text().splitlines()]
        assert steps == sorted(set(steps))
    assert trunks(runs) == origins


def test_ray_at_a_wrong_address_is_refused(sweep_command, tmp_path, capsys):
    options = ("--launcher", "ray", "--ray.address", "127.0.0.1:1")
    assert cli.main(sweep_command(tmp_path, *options)) == 2
    assert "--ray.address: there is no Ray cluster at 127.0.0.1:1" in capsys.readouterr().err


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Commands that look like Slurm's; returns the folder of what was submitted."""
    commands, state = tmp_path / "bin", tmp_path / "slurm"
    commands.mkdir()
    state.mkdir()
    source = Path(__file__).with_name("fake_slurm.py").read_text()
    for name in ("sbatch", "srun", "sacct", "scancel"):
        (commands / name).write_text(source.replace("/usr/bin/env python3", sys.executable))
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(state))
    return state


def test_slurm_jobs_give_the_same_numbers(
    undisturbed_trunk, sweep_command, results, slurm, tmp_path
):
    """Trunks are one array; the branches of each, another when it is complete."""
    options = (
        "--launcher", "slurm", "--slurm.partition", "long", "--slurm.minutes", "30",
        "--slurm.gpus", "0", "--slurm.at-once", "2",
    )  # fmt: skip
    assert cli.main(sweep_command(tmp_path, *options, grid=TRUNK)) == 0
    assert results(tmp_path) == results(undisturbed_trunk)
    assert trunks(tmp_path / "runs" / "debug") == {0: 1, 1: 1}
    first, *branches = (path.read_text() for path in sorted(slurm.glob("script-*")))
    assert "#SBATCH --array=0-1%2\n" in first
    assert len(branches) in (1, 2)  # both trunks may be complete at the same look
    assert len(branches) == 1 or all("#SBATCH --array=0-2%2\n" in each for each in branches)
    for script in (first, *branches):
        for line in ("--partition=long", "--time=30", "--cpus-per-task=1", "--gpus-per-node=0"):
            assert f"#SBATCH {line}\n" in script


@pytest.mark.parametrize("launcher", ["ray", "slurm"])
def test_a_stopped_sweep_saves_its_runs(
    launcher, undisturbed, sweep_command, results, slurm, tmp_path
):
    """Stopped on a cluster, it goes on anywhere."""
    options = ("--ray.address", "local", "--slurm.gpus", "0")  # no cluster of another test
    command = sweep_command(tmp_path, "--launcher", launcher, *options)
    command = [sys.executable, "-m", "curious_replay.cli", *command]
    runs = tmp_path / "runs" / "debug"
    with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as sweep:
        wait_for(lambda: saved_on_the_way(runs), sweep)
        sweep.terminate()
        assert sweep.wait(PATIENCE) == 128 + signal.SIGTERM
    wait_for(lambda: any(stopped_in_order(log) for log in runs.glob("*.log")))
    assert cli.main(sweep_command(tmp_path)) == 0
    assert results(tmp_path) == results(undisturbed)


@pytest.mark.parametrize(("launcher", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_launcher_that_is_not_installed_is_named(
    launcher, package, sweep_command, tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, package, None)
    assert cli.main(sweep_command(tmp_path, "--launcher", launcher)) == 2
    told = f"curious: --launcher {launcher} needs {package}, which is not installed: pip install"
    assert told in capsys.readouterr().err
