"""Sweeps on this machine: what is there is not run again, whatever happened before."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.processes import PATIENCE, started
from helpers.waiting import saved_on_the_way, saves, stopped_in_order, trunks, wait_for

from curious_replay import cli
from curious_replay.experiments import catalogue
from curious_replay.experiments.jobs import jobs
from curious_replay.sweep.sweep import Sweep
from curious_replay.sweep.task import Task, inspect_folder
from curious_replay.sweep.work import Ended

pytestmark = pytest.mark.slow

GRID = str(Path(__file__).with_name("small_grid.py"))
NAMES = [job.name for job in jobs(catalogue.find(GRID), "debug", 2)]


def test_a_sweep_leaves_runs_results_and_a_page(undisturbed, results):
    folders = [p for p in (undisturbed / "runs" / "debug").iterdir() if p.is_dir()]
    assert sorted(p.name for p in folders) == sorted(NAMES)
    (measure,) = results(undisturbed)["measures"]
    assert measure["name"] == "last loss"
    rows = {row["method"]: row for row in measure["rows"]}
    for method, name in (("uniform", NAMES[0]), ("curious", NAMES[1])):
        lines = (undisturbed / "runs" / "debug" / name / "metrics.jsonl").read_text().splitlines()
        assert rows[method]["seeds"] == [0, 1]
        assert rows[method]["values"][0] == json.loads(lines[-1])["model/loss"]
    page = (undisturbed / "out" / "report.html").read_text()
    assert results(undisturbed)["verdict"].replace("'", "&#x27;") in page
    assert "no paper: Model loss on a counting world" in page
    (made,) = json.loads((undisturbed / "out" / "results.json").read_text())["made"]
    assert made["runs"] == made["wanted"] == 4
    assert made["hours"] > 0
    assert made["command"] == f"curious sweep {GRID} --scale debug --seeds 2"


def test_again_it_runs_nothing_and_says_the_same(undisturbed, capsys, sweep_command, results):
    before = results(undisturbed)
    logs = {path: path.read_bytes() for path in (undisturbed / "runs" / "debug").glob("*.log")}
    assert cli.main(sweep_command(undisturbed)) == 0
    assert "running" not in capsys.readouterr().out
    assert results(undisturbed) == before
    assert logs == {p: p.read_bytes() for p in (undisturbed / "runs" / "debug").glob("*.log")}


def test_code_that_a_run_went_on_with_is_named(undisturbed, tmp_path, sweep_command):
    subprocess.run(["cp", "-r", str(undisturbed / "runs"), str(tmp_path)], check=True)
    path = tmp_path / "runs" / "debug" / NAMES[0] / "meta.json"
    meta = json.loads(path.read_text()) | {"commit": "a" * 40, "resumes": [{"commit": "b" * 40}]}
    path.write_text(json.dumps(meta))
    assert cli.main(sweep_command(tmp_path)) == 0
    (made,) = json.loads((tmp_path / "out" / "results.json").read_text())["made"]
    assert {"a" * 10, "b" * 10} < {*made["commits"]}


def test_dry_run_says_what_is_missing(undisturbed, capsys, sweep_command):
    assert cli.main(sweep_command(undisturbed, "--seeds", "3", "--dry-run")) == 0
    lines = capsys.readouterr().out.splitlines()
    states = {line.split()[1]: line.split()[0] for line in lines}
    assert all(states[name] == "complete" for name in NAMES)
    assert [name for name in states if states[name] == "waiting"] == [
        name.replace("seed=1", "seed=2") for name in NAMES[2:]
    ]


def test_seeds_can_begin_later(undisturbed, capsys, sweep_command):
    options = ["--seeds", "2", "--first-seed", "1", "--dry-run"]
    assert cli.main(sweep_command(undisturbed, *options)) == 0
    seeds = [line.rpartition("=")[2] for line in capsys.readouterr().out.splitlines()]
    assert seeds == ["1", "1", "2", "2"]


def test_backgrounds_can_be_pictures_of_your_own(tmp_path, capsys):
    command = ["sweep", "background-swap", "--scale", "debug", "--dry-run", "--runs", str(tmp_path)]
    given = ["--images", str(tmp_path), "--clips", "boat", "bmx-bumps"]
    assert cli.main(command) == 0
    assert "env.images" not in capsys.readouterr().out
    assert cli.main([*command, *given]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(f"-env.images=-{'-'.join(tmp_path.parts[1:])[:9]}" in line for line in lines)
    assert all("-env.clips=-boat-bmx-bumps-" in line for line in lines)


def test_only_some_methods_are_run_and_all_complete_runs_shown(
    undisturbed, tmp_path, sweep_command, results
):
    subprocess.run(["cp", "-r", str(undisturbed / "runs"), str(tmp_path)], check=True)
    runs = tmp_path / "runs" / "debug"
    for name in NAMES[2:]:
        shutil.rmtree(runs / name)
    assert cli.main(sweep_command(tmp_path, "--only", "uniform")) == 0
    assert (runs / NAMES[2]).exists()
    assert not (runs / NAMES[3]).exists()
    (measure,) = results(tmp_path)["measures"]
    (whole,) = results(undisturbed)["measures"]
    assert measure["rows"][0] == whole["rows"][0]
    assert measure["rows"][1]["values"] == whole["rows"][1]["values"][:1]


def test_only_names_methods(sweep_command, tmp_path, capsys):
    assert cli.main(sweep_command(tmp_path, "--only", "uniform", "curios")) == 2
    said = capsys.readouterr().err
    assert "--only names methods of the experiment, ['curious', 'uniform'], got 'curios'" in said


def test_a_killed_sweep_goes_on_to_the_same_table(either, tmp_path, sweep_command, results):
    """SIGKILL to the sweep at random moments: its runs save themselves, or are resumed."""
    grid, undisturbed, origins = either
    runs, moments = tmp_path / "runs" / "debug", random.Random(5)
    for done in sorted(moments.sample(range(saves(undisturbed / "runs" / "debug")), 3)):
        with start(sweep_command(tmp_path, grid=grid), subprocess.DEVNULL) as sweep:
            wait_for(lambda done=done: saves(runs) >= done, sweep, PATIENCE)
            time.sleep(moments.uniform(0, 0.5))
            sweep.kill()
    assert cli.main(sweep_command(tmp_path, "--threads", "1", grid=grid)) == 0
    assert results(tmp_path) == results(undisturbed)
    assert trunks(runs) == origins


def start(command, stdout):
    return started(
        [sys.executable, "-m", "curious_replay.cli", *command],
        stdout=stdout,
        text=True,
        start_new_session=True,
    )


def test_a_stopped_sweep_saves_and_goes_on(undisturbed, tmp_path, sweep_command, results):
    runs = tmp_path / "runs" / "debug"
    with start(sweep_command(tmp_path), subprocess.PIPE) as sweep:
        wait_for(lambda: saved_on_the_way(runs), sweep)
        os.killpg(sweep.pid, signal.SIGINT)  # Ctrl-C reaches the whole group
        said, _ = sweep.communicate(timeout=PATIENCE)
    assert sweep.returncode == 128 + signal.SIGINT
    assert "the same command goes on" in said
    assert not (tmp_path / "out").exists()
    assert any(stopped_in_order(log) for log in runs.glob("*.log"))
    assert cli.main(sweep_command(tmp_path)) == 0
    assert results(tmp_path) == results(undisturbed)


def test_broken_folders_are_set_aside_and_run_again(undisturbed, tmp_path, sweep_command, results):
    copy = tmp_path / "runs" / "debug"
    subprocess.run(["cp", "-r", str(undisturbed / "runs"), str(tmp_path)], check=True)
    (copy / NAMES[0] / "config.json").write_text("{")  # cannot be read
    for name in NAMES[1:3]:
        last = max((copy / name / "checkpoints").iterdir())
        last.rename(last.with_name("gone"))  # not complete: the checkpoint before is
    (copy / NAMES[1] / "metrics.jsonl").write_text("")  # and counts on lines that are gone,
    (left,) = (copy / NAMES[2] / "checkpoints").glob("*-step-*")
    (left / "manifest.json").write_text("{")  # or is damaged as well
    assert cli.main(sweep_command(tmp_path)) == 0
    assert results(tmp_path) == results(undisturbed)
    assert sorted(p.name for p in copy.glob("*.broken-*")) == sorted(
        f"{name}.broken-1" for name in NAMES[:3]
    )


def test_a_folder_with_other_settings_is_refused(undisturbed, tmp_path, capsys, sweep_command):
    copy = tmp_path / "runs" / "debug"
    subprocess.run(["cp", "-r", str(undisturbed / "runs"), str(tmp_path)], check=True)
    path = copy / NAMES[2] / "config.json"
    config = json.loads(path.read_text())
    config["train"]["batch_size"] += 1
    path.write_text(json.dumps(config))
    assert cli.main(sweep_command(tmp_path)) == 2
    assert "--train.batch-size is 3, where 2 is wanted" in capsys.readouterr().err


def test_a_run_of_another_version_is_refused_and_left_alone(
    undisturbed, tmp_path, capsys, sweep_command
):
    copy = tmp_path / "runs" / "debug"
    subprocess.run(["cp", "-r", str(undisturbed / "runs"), str(tmp_path)], check=True)
    path = copy / NAMES[2] / "config.json"
    config = json.loads(path.read_text())
    del config["record"]["snapshot_steps"]
    path.write_text(json.dumps(config))
    assert cli.main(sweep_command(tmp_path)) == 2
    assert "holds a run of another version" in capsys.readouterr().err
    assert not [*copy.glob("*.broken-*")]


def test_a_failed_run_is_tried_again_then_reported(tmp_path, capsys):
    grid = tmp_path / "failing.py"
    text = Path(GRID).read_text().replace('"toy/count"', '"failing_env:Failing"')
    grid.write_text(text)
    (tmp_path / "failing_env.py").write_text(
        "from curious_replay.envs.toys.toy import CountingWorld\n"
        "class Failing(CountingWorld):\n"
        "    def step(self, action):\n"
        "        raise RuntimeError('the floor gave way')\n"
    )
    os_path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{os_path}"
    try:
        done = subprocess.run(
            [
                sys.executable, "-m", "curious_replay.cli", "sweep", str(grid), "--scale", "debug",
                "--seeds", "1", "--retries", "1", "--runs", str(tmp_path / "runs"),
                "--out", str(tmp_path / "out"),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        os.environ["PYTHONPATH"] = os_path
    assert done.returncode == 1
    assert done.stdout.count("failed 2 times: failing_env-Failing-dreamerv3") == 2
    assert "the floor gave way" in done.stdout
    assert "2 of 2 runs are not complete" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["objekt-interaction"],
            "unknown experiment 'objekt-interaction'; did you mean object-int",
        ),
        (["no/such/file.py"], "there is no file no/such/file.py"),
        ([GRID, "--seeds", "0"], "--seeds must be at least 1, got 0"),
        ([GRID, "--first-seed", "-1"], "--first-seed must be at least 0, got -1"),
        ([GRID, "--at-once", "-1"], "--at-once must be at least 0, got -1"),
        ([GRID, "--threads", "0"], "--threads must be at least 1, got 0"),
        ([GRID, "--retries", "-1"], "--retries must be at least 0, got -1"),
        ([GRID, "--slurm.minutes", "0"], "--slurm.minutes must be at least 1, got 0"),
        ([GRID, "--ray.gpus", "-1"], "--ray.gpus must be at least 0, got -1"),
        ([GRID, "--slurm.gpus", "-1"], "--slurm.gpus must be at least 0, got -1"),
        ([GRID, "--slurm.at-once", "0"], "--slurm.at-once must be at least 1, got 0"),
        ([GRID, "--images", "."], "no task of small has backgrounds"),
        (["background-swap", "--clips", "boat"], "--clips names subfolders of --images"),
        (["background-swap", "--images", "no/such"], "must be a folder of pictures, got no/such"),
    ],
)
def test_bad_values_are_refused_before_anything_runs(options, message, tmp_path, capsys):
    with suppress(SystemExit):
        assert cli.main(["sweep", *options, "--runs", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_a_page_that_cannot_be_written_is_refused_before_anything_runs(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    place = str(tmp_path / "file" / "page")
    assert cli.main(["sweep", GRID, "--runs", str(tmp_path / "runs"), "--out", place]) == 2
    said = capsys.readouterr().err
    assert f"--out: nothing can be written to {place}: Not a directory" in " ".join(said.split())
    assert not (tmp_path / "runs").exists()


def test_a_file_without_an_experiment_is_refused(tmp_path, capsys):
    (tmp_path / "empty.py").write_text("")
    assert cli.main(["sweep", str(tmp_path / "empty.py")]) == 2
    assert "must define EXPERIMENT" in capsys.readouterr().err


class Scripted:
    """A launcher whose tasks end as told: {name: [codes]}; it never makes a folder."""

    def __init__(self, codes):
        self.codes, self.given = codes, []

    def submit(self, tasks):
        self.given += [task.name for task in tasks]
        self.waiting = [task.name for task in tasks]

    def running(self):
        return set()

    def ended(self):
        return [Ended(name, self.codes[name].pop(0), "told so") for name in self.waiting]

    def stop(self):
        self.waiting = []


def test_what_a_process_says_counts_less_than_its_folder(tmp_path):
    """An exit code of 0 without a complete folder is a failure like any other."""
    task = Task("a", {"train": {"steps": 10}}, tmp_path / "a")
    assert inspect_folder(task).state == "missing"
    launcher = Scripted({"a": [0, 1]})
    sweep = Sweep.of([task])
    sweep.run(launcher, retries=1)
    assert launcher.given == ["a", "a"]
    assert sweep.entries["a"].status == "failed"
    assert sweep.entries["a"].attempts == 2
    assert sweep.entries["a"].reason == "told so"
