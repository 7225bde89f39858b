"""What `curious report` refuses, and how it says so."""

import sys
from pathlib import Path

from curious_replay import cli

sys.path.append(str(Path(__file__).parents[1] / "analysis"))
from folders import write_run


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
