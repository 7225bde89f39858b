"""What `curious report` refuses, and how it says so."""

from helpers.folders import write_run

from curious_replay import cli


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


def test_a_place_that_cannot_be_written_is_named(tmp_path, capsys):
    write_run(tmp_path / "a")
    (tmp_path / "file").touch()
    for options, said in (
        (["--out", "{}"], "{} cannot be written (Is a directory); choose another --out"),
        (["--out", "{}/file/r.html"], "{}/file cannot be written (File exists); choose another -"),
        (["--out", "{}/r.html", "--files", "{}/file"], "choose another --out or --files"),
    ):
        given = [option.format(tmp_path) for option in options]
        assert cli.main(["report", str(tmp_path / "a"), *given]) == 2
        assert said.format(tmp_path) in capsys.readouterr().err
