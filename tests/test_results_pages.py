"""The pages on results say what the results are."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """The script, on a copy of the results and the README."""
    shutil.copytree(ROOT / "results", tmp_path / "results")
    shutil.copy(ROOT / "README.md", tmp_path)
    spec = importlib.util.spec_from_file_location("publish", ROOT / "results" / "publish.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "HERE", tmp_path / "results")
    monkeypatch.setattr(module, "README", tmp_path / "README.md")

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["publish.py", *map(str, arguments)])
        return module.main()

    return run


RESULTS = {
    "experiment": "made-up", "where": "Table 0", "title": "A made-up table", "scale": "mini",
    "word": "held", "verdict": "It held.", "measures": [
        {"name": "score", "lower_is_better": False, "rows": [
            {"task": "t", "method": "m", "seeds": [0, 1], "values": [1.5, None], "paper": "7 ± 1"},
            {"task": "t", "method": "n", "seeds": [0, 1], "values": [3.0], "paper": ""},
        ]},
    ],
    "made": {"command": "curious sweep made-up", "commits": ["abc"], "hours": 1.25, "cores": ["2"],
             "runs": 2, "wanted": 2},
}  # fmt: skip


def leave_a_sweep(folder):
    (folder / "figures").mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(RESULTS))
    for name in ("t-bars.svg", "1-t-profile.svg", "t-bars.pdf"):
        (folder / "figures" / name).write_text(name)
    return folder


def test_the_pages_are_those_of_the_results(publish, capsys):
    assert publish("--check") == 0, capsys.readouterr().err


def test_a_sweep_is_taken_over(publish, tmp_path):
    assert publish(leave_a_sweep(tmp_path / "out" / "made-up-mini")) == 0
    kept = tmp_path / "results" / "made-up-mini"
    assert {p.name for p in kept.iterdir()} == {"README.md", "results.json", "t-bars.svg"}
    page = (kept / "README.md").read_text()
    assert "**Held.** It held." in page
    assert "| t, m | 2 | 1 | 1.5 | 1.5 (1.5 to 1.5) | 7 ± 1 |" in page
    assert "- t, m: 0: 1.5, 1: –" in page
    assert "- t, n: all together 3" in page
    assert "    curious sweep made-up\n" in page
    assert "1.2 hours" in page
    readme = (tmp_path / "README.md").read_text()
    assert "[A made-up table](results/made-up-mini/README.md)" in readme
    assert "| t, m | 2 | 1 | 1.5 | 1.5 (1.5 to 1.5) | 7 ± 1 |" in readme
    assert "## Citation" in readme  # what stands around it stays
    assert publish("--check") == 0


@pytest.mark.parametrize("page", ["README.md", "results/made-up-mini/README.md"])
def test_a_number_changed_by_hand_is_found(page, publish, tmp_path, capsys):
    publish(leave_a_sweep(tmp_path / "out" / "made-up-mini"))
    path = tmp_path / page
    path.write_text(path.read_text().replace("| 1.5 |", "| 2.5 |"))
    assert publish("--check") == 1
    assert f"out of date: {page}" in capsys.readouterr().err
    assert publish() == 0
    assert publish("--check") == 0
