"""Every table and figure of the paper from the command line to its page, at debug scale."""

import json
import math
from dataclasses import replace

import pytest

from curious_replay import cli
from curious_replay.commands import experiments as command
from curious_replay.experiments import hours
from curious_replay.experiments.catalogue import experiments
from curious_replay.experiments.experiment import Trunk
from curious_replay.experiments.jobs import jobs, with_trunks


@pytest.mark.slow
def test_every_experiment_runs_and_makes_its_report(stop_forkserver, tmp_path, capsys):
    """One after the other, as they share runs."""
    stop_forkserver()
    runs = tmp_path / "runs"
    for name, experiment in experiments().items():
        out = tmp_path / name
        code = cli.main(["sweep", name, "--scale", "debug", "--runs", str(runs), "--out", str(out)])
        said = capsys.readouterr().out
        assert code == 0, said
        found = json.loads((out / "results.json").read_text())
        assert found["verdict"] in " ".join(said.split())
        (made,) = found["made"]
        assert made["runs"] == made["wanted"] == len(jobs(experiment, "debug"))
        page = (out / "report.html").read_text()
        assert experiment.where in page
        for measure in experiment.measures:
            assert measure.name in page
    names = {path.name for path in (runs / "debug").iterdir() if path.is_dir()}
    wanted = [job for each in experiments().values() for job in jobs(each, "debug")]
    assert names == {job.name for job in with_trunks(wanted)}


def test_experiments_are_listed_with_their_cost(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["experiments", "--scale", "debug", "--seeds", "3", "--no-hours"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, experiment in experiments().items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        found = with_trunks(jobs(experiment, "debug", 3))
        assert "…" not in line
        assert line.split()[-2] == str(len(found))
        updates = float(line.split()[-1].replace("K", "e3"))
        assert updates == pytest.approx(sum(job.updates for job in found), rel=5e-3)
    wanted = [job for each in experiments().values() for job in jobs(each, "debug", 3)]
    assert f"All at debug scale: {len(with_trunks(wanted)):,} runs" in " ".join(lines)


def test_trunks_count_once_and_scales_that_there_are_not_have_a_dash(capsys, monkeypatch):
    plain = experiments()["toy-mirror"]
    forked = replace(plain, name="forked", trunk=Trunk(until=2000), scales=("mini",))
    monkeypatch.setattr(command, "experiments", lambda: {"forked": forked})
    monkeypatch.setattr(hours, "_measure", lambda config: 3600.0)  # seconds of an update
    assert cli.main(["experiments", "--seeds", "2"]) == 0
    *_, runs, _, told = capsys.readouterr().out.splitlines()[1].split()
    assert runs == "6"  # two trunks among them
    updates = sum(job.updates for job in with_trunks(jobs(forked, "mini", 2)))
    assert told == f"{updates:,}"
    assert cli.main(["experiments", "--scale", "debug"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-3:] == ["–", "–", "–"]


def test_each_kind_of_update_is_measured_once(monkeypatch):
    measured = []

    def measure(config):
        measured.append(config)
        return 36.0

    monkeypatch.setattr(hours, "_measure", measure)
    wanted = [job for name in ("toy-mirror", "mini-mirror") for job in
              jobs(experiments()[name], "mini", 2)]  # fmt: skip
    assert hours.Hours()(wanted) == pytest.approx(sum(job.updates for job in wanted) / 100)
    assert [config.env.image_size for config in measured] == [32, 16]
    assert [hours.short(value) for value in (0.42, 12.3, 3456.7, math.nan)] == [
        "0.4", "12", "3,457", "–"
    ]  # fmt: skip


def test_unknown_scale_is_refused(capsys):
    with pytest.raises(SystemExit):
        cli.main(["experiments", "--scale", "huge"])
    assert "huge" in capsys.readouterr().err
