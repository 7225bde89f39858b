"""What `curious report` refuses, and how it says so."""

from helpers.folders import write_run

from curious_replay import cli
from curious_replay.analysis.load import load_runs
from curious_replay.report.page import Report, compared


def test_methods_cannot_differ_in_what_no_run_has(tmp_path, capsys):
    write_run(tmp_path / "a", replay_settings={"alpha": 0.5})
    write_run(tmp_path / "b", replay="uniform")
    command = ["report", str(tmp_path), "--out", str(tmp_path / "r.html"), "--by"]
    assert cli.main([*command, "replay", "nope"]) == 2
    said = capsys.readouterr().err
    assert "--by must be settings" in said
    assert "such as replay.alpha" in said
    assert "no run has 'nope'" in said
    assert not (tmp_path / "r.html").exists()
    assert cli.main([*command, "replay", "replay.alpha"]) == 0  # one run has it


def test_a_method_without_the_option_has_its_name_alone(tmp_path):
    for name, alpha in (("a", 0.5), ("b", 0.7)):
        write_run(tmp_path / name, replay_settings={"alpha": alpha})
    write_run(tmp_path / "c", replay="uniform", replay_settings={"clear_at_change": 1})
    write_run(tmp_path / "d", replay="uniform", env_settings={"schedule": None})
    runs = load_runs([tmp_path]).runs

    def names(*by):
        return [*compared(runs, by).popitem()[1]]

    cleared = "uniform, cleared at change 1"
    assert names("replay", "replay.alpha") == ["curious 0.5", "curious 0.7", "uniform", cleared]
    assert names("replay.alpha") == ["0.5", "0.7", "uniform", cleared]
    assert names("env.schedule")[0] == "None"  # a value that somebody set


def test_an_unknown_baseline_is_told_what_there_is(tmp_path, capsys):
    write_run(tmp_path / "a", replay_settings={"alpha": 0.5})
    write_run(tmp_path / "b", replay="count")
    write_run(tmp_path / "c", replay="td", env="toy/mirror")
    out = tmp_path / "r.html"
    command = ["report", str(tmp_path), "--out", str(out)]
    assert cli.main([*command, "--baseline", "unifrom"]) == 2
    said = capsys.readouterr().err
    assert "--baseline must be one of the methods 'td', 'count', 'curious', got 'unifrom'" in said
    by = ["--by", "replay", "replay.alpha"]
    assert cli.main([*command, *by, "--baseline", "curious"]) == 2
    assert "'curious 0.5'" in capsys.readouterr().err
    assert not out.exists()
    assert cli.main(command) == 0  # nobody asked for the default
    assert cli.main([*command, "--baseline", "count"]) == 0  # which one of two worlds has


def test_a_place_that_cannot_be_written_is_named(tmp_path, capsys):
    write_run(tmp_path / "a")
    (tmp_path / "file").touch()
    for options, said in (
        (["--out", "{}"], "--out must be a file, got the folder {}"),
        (["--out", "{}/file/r.html"], "--out: nothing can be written to {}/file/r.html: Not a dir"),
        (["--out", "{}/r.html", "--files", "{}/file"], "--files: nothing can be written to {}/fi"),
    ):
        given = [option.format(tmp_path) for option in options]
        assert cli.main(["report", str(tmp_path / "a"), *given]) == 2
        assert said.format(tmp_path) in capsys.readouterr().err


def test_a_disk_that_fills_up_meanwhile_is_told(tmp_path, monkeypatch, capsys):
    write_run(tmp_path / "a")

    def full(self, out, files):
        raise OSError(28, "No space left on device", str(out))

    monkeypatch.setattr(Report, "save", full)
    page = tmp_path / "r.html"
    assert cli.main(["report", str(tmp_path / "a"), "--out", str(page)]) == 2
    said = f"{page} cannot be written (No space left on device); choose another --out"
    assert said in capsys.readouterr().err
