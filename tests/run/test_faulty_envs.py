"""Environments that go wrong in the middle of a run: it is told, and the run goes on if it can."""

import json
import re
from dataclasses import replace

import pytest
from helpers.runs import config, lines, run

from curious_replay import cli
from curious_replay.envs.vectors.pool import Restarts, WorkerError
from curious_replay.run.record.files import read_lines
from curious_replay.run.worlds import environments

QUICK = Restarts(step_timeout=5.0, limit=2, first_pause=0.01)

# How it breaks, and what is said about it.
IN_PLACE = {
    "raise": "RuntimeError: lost its way",
    "nan": r"2 of 3 numbers are NaN or infinite; right would be finite",
    "shape": r"observation of shape \(2,\); right would be \(3,\)",
    "dtype": r"observation of dtype <U1; right would be float64",
    "reward": r"returned the reward nan; right would be a finite number",
    "four": r"returned 4 values; right would be observation, reward, terminated, truncated, info",
}
PICTURES = {
    "size": r"observation 'view' of shape \(16, 16, 3\); right would be \(32, 32, 3\)",
    "float": r"observation 'view' of dtype float64; right would be uint8",
    "name": r"observation of \['sight'\]; right would be a dict of \['view'\]",
}
IN_PROCESSES = {"crash": "exit code 7", "hang": "gave no answer for 5 seconds"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(environments, "DEFAULT_RESTARTS", QUICK)


def settings(how, until="", kind="Breaks", processes=False):
    arguments = json.dumps({"how": how, "until": str(until)})
    env = {"arguments_json": arguments, "processes": processes}
    return config(f"own_envs:{kind}", env=env, train={"steps": 60, "save_every": 2})


def went_on(folder, caplog, message):
    """One episode was cut short, which was said; nothing that is not finite was recorded."""
    restarted = [
        line for line in read_lines(folder / "episodes.jsonl") if "worker_restarted" in line
    ]
    assert [line["length"] for line in restarted] == [5]
    assert caplog.text.count("environment 0 failed and is restarted") == 1
    assert re.search(message, caplog.text)
    assert "NaN" not in "".join(content.decode() for content in _texts(folder))


def _texts(folder):
    return [content for name, content in lines(folder).items() if name.endswith("jsonl")]


@pytest.mark.parametrize(("how", "message"), IN_PLACE.items())
def test_an_accident_costs_one_episode(how, message, tmp_path, caplog):
    assert run(settings(how, tmp_path / "mended"), tmp_path / "run").finished
    went_on(tmp_path / "run", caplog, message)


@pytest.mark.parametrize(("how", "message"), PICTURES.items())
def test_a_picture_that_stays_wrong_ends_the_run(how, message, tmp_path):
    with pytest.raises(WorkerError, match=message):
        run(settings(how, kind="BreaksImage"), tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize(("how", "message"), IN_PROCESSES.items())
def test_a_process_that_crashes_or_hangs_costs_one_episode(how, message, tmp_path, caplog):
    assert run(settings(how, tmp_path / "mended", processes=True), tmp_path / "run").finished
    went_on(tmp_path / "run", caplog, message)


def test_what_stays_wrong_ends_the_run_with_the_reason_and_the_way_on(tmp_path, capsys):
    options = [
        "train", "--env", "own_envs:Breaks", "--agent", "fake", "--scale", "debug",
        "--env.no-processes", "--env.arguments-json", '{"how": "nan"}', "--logdir",
        str(tmp_path / "run"), "--train.save-every", "2",
    ]  # fmt: skip
    assert cli.main(options) == 1
    said = capsys.readouterr().err
    assert "environment 0 failed 3 times in a row, the last time:" in said
    assert "2 of 3 numbers are NaN or infinite" in said
    assert "saved last at step 14: `curious train --logdir" in said


def broken(tmp_path, *more):
    return [
        "train", "--env", "own_envs:Breaks", "--agent", "fake", "--scale", "debug",
        "--env.no-processes", "--env.num-envs", "2", "--logdir", str(tmp_path / "run"), *more,
    ]  # fmt: skip


def test_restarts_are_counted_at_the_end(tmp_path, capsys):
    once = json.dumps({"how": "nan", "until": str(tmp_path / "mended")})
    assert cli.main(broken(tmp_path, "--env.arguments-json", once)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "environments were restarted 1 times, number 0 1 of them: `worker_restarted`" in said
    assert cli.main(broken(tmp_path, "--logdir", str(tmp_path / "good"))) == 0
    assert "restarted" not in capsys.readouterr().out


def test_a_limit_of_restarts_ends_the_run_and_may_change(tmp_path, capsys, monkeypatch, caplog):
    monkeypatch.setattr(environments, "DEFAULT_RESTARTS", replace(QUICK, limit=99))
    nan = ["--env.arguments-json", '{"how": "nan"}', "--env.max-restarts"]
    assert cli.main(broken(tmp_path, *nan, "3")) == 1
    assert caplog.text.count("failed and is restarted") == 3
    said = " ".join(capsys.readouterr().err.split())
    assert "failed, and --env.max-restarts allows 3 restarts in all, which were made" in said
    assert "2 of 3 numbers are NaN or infinite" in said
    resume = ["train", "--logdir", str(tmp_path / "run"), "--resume", "--env.max-restarts"]
    assert cli.main([*resume, "0"]) == 1  # it may change; restarts count from the start on
    assert "--env.max-restarts allows 0 restarts" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main([*resume, "-1"])
    assert "--env.max-restarts must be at least 0, got -1" in capsys.readouterr().err


def test_a_log_that_changes_its_shape_is_said(tmp_path):
    with pytest.raises(ValueError, match=r"'log_x'\] is float64 of shape \(3,\).*right would be"):
        run(settings("log"), tmp_path / "run")


def test_a_log_of_whole_numbers_that_becomes_a_fraction_is_said(tmp_path):
    with pytest.raises(ValueError, match=r"'log_whole'\] is float64 .* right would be int64 of"):
        run(settings("fraction"), tmp_path / "run")


def test_a_world_that_counts_frames_need_not_know_how_to_go_to_one(tmp_path, caplog):
    arguments = json.dumps({"until": str(tmp_path / "once")})
    made = config("own_envs:Stumbles", env={"arguments_json": arguments}, train={"steps": 60})
    assert run(made, tmp_path / "run").finished
    assert caplog.text.count("environment 0 failed and is restarted") == 1
