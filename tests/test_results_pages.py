"""The pages on results say what the results are."""

import importlib.util
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from curious_replay.experiments import catalogue
from curious_replay.experiments.experiment import Claim, Trunk

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


def results(seeds, uniform, curious, commit="abc"):
    rows = [
        {"task": "toy/mirror", "method": method, "seeds": seeds, "values": values, "paper": paper}
        for method, values, paper in (
            ("DreamerV3", uniform, "7 ± 1"), ("DreamerV3 CR", curious, "")
        )
    ]  # fmt: skip
    measure = {"name": "steps to solve it again", "lower_is_better": True, "rows": rows}
    return {
        "experiment": "toy-mirror", "where": "Table 0", "title": "A made-up table",
        "scale": "mini", "word": "held", "verdict": "It held.", "measures": [measure],
        "made": [{"command": f"curious sweep {commit}", "commits": [commit], "hours": 1.25,
                  "cores": ["2"], "runs": 4, "wanted": 4}],
    }  # fmt: skip


def leave_a_sweep(folder, found):
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(found))
    for name in ("t-return.svg", "1-t-profile.svg", "t-return.pdf"):
        (folder / "figures" / name).write_text(name)
    return folder


ROW = "| toy/mirror, DreamerV3 | 2 | 1 | 1.5 | 1.5 (1.5 to 1.5) | – |"
FIRST = results([0, 1], [1.5, None], [3.0, 4.0])


def test_the_pages_are_those_of_the_results(publish, capsys):
    assert publish("--check") == 0, capsys.readouterr().err


def test_a_sweep_is_taken_over(publish, tmp_path):
    assert publish(leave_a_sweep(tmp_path / "out" / "made-up-mini", FIRST)) == 0
    kept = tmp_path / "results" / "made-up-mini"
    assert {p.name for p in kept.iterdir()} == {
        "README.md", "results.json", "t-return.svg", "toy-mirror-bars.svg"
    }  # fmt: skip
    page = (kept / "README.md").read_text()
    assert "It held." not in page  # judged anew, in today's words
    assert "**Not shown.** Curious Replay solves it again sooner than uniform replay" in page
    assert ROW in page
    assert "- toy/mirror, DreamerV3: 0: 1.5, 1: –" in page
    assert "    curious sweep abc\n" in page
    assert "Each run has 4,500 steps, images of 32 x 32 pixels" in page
    assert "- DreamerV3 CR: `Curious(" in page
    assert "1.2 hours" in page
    readme = (tmp_path / "README.md").read_text()
    assert "moves are mirrored](results/made-up-mini/README.md)" in readme
    assert ROW in readme
    assert "## Citation" in readme  # what stands around it stays
    assert publish("--check") == 0


def test_a_sweep_with_a_trunk_tells_every_comparison(publish, tmp_path, monkeypatch):
    find = catalogue.find
    plain = find("toy-mirror")
    claim = Claim("It ends as soon", plain.claim.pairs, kind="similar", margin=0.1)
    forked = replace(plain, trunk=Trunk(until=2000), also=(claim,))
    monkeypatch.setattr(catalogue, "find", lambda x: forked if x == plain.name else find(x))
    times = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    found = results([*range(7)], [*(2 * time for time in times[:6]), None], times)
    assert publish(leave_a_sweep(tmp_path / "out" / "made-up-mini", found)) == 0
    page = (tmp_path / "results" / "made-up-mini" / "README.md").read_text()
    assert "**Held.** Curious Replay solves it again sooner than uniform replay: held" in page
    assert "**Contradicted.** It ends as soon: contradicted at mini scale" in page
    assert (
        "All methods go on from the same run of each seed, which has uniform replay until" in page
    )
    assert (
        "| steps to solve it again: toy/mirror, DreamerV3 CR against DreamerV3 | 7 | 7 | 0 "
        "| 0.5 (0 to 0.5) | 0.01562 | 0.03125 | for |"
    ) in page
    assert "4,500 steps, the first 2,000 in the trunk, images of 32 x 32 pixels" in page
    assert "- trunk: `Uniform(" in page
    readme = (tmp_path / "README.md").read_text()
    assert "Claim: “It ends as soon.” Here: **contradicted**." in readme


def test_seeds_of_another_sweep_are_added(publish, tmp_path):
    out = tmp_path / "out" / "made-up-mini"
    publish(leave_a_sweep(out, FIRST))
    drawn = (tmp_path / "results" / "made-up-mini" / "toy-mirror-bars.svg").read_text()
    assert publish(leave_a_sweep(out, results([1, 2], [2.5, 3.5], [5, 6], "def")), "--add") == 0
    page = (tmp_path / "results" / "made-up-mini" / "README.md").read_text()
    assert "- toy/mirror, DreamerV3: 0: 1.5, 1: 2.5, 2: 3.5" in page
    assert "- toy/mirror, DreamerV3 CR: 0: 3, 1: 5, 2: 6" in page
    assert "DreamerV3 CR 4.667 against DreamerV3 2.5" in page  # judged anew
    assert "    curious sweep abc\n" in page
    assert "    curious sweep def\n" in page
    kept = {path.name for path in (tmp_path / "results" / "made-up-mini").iterdir()}
    assert "t-return.svg" not in kept  # of a part of the runs only
    assert drawn != (tmp_path / "results" / "made-up-mini" / "toy-mirror-bars.svg").read_text()
    assert publish("--check") == 0


def test_runs_that_another_experiment_here_shares_are_added(publish, tmp_path):
    name = "object-interaction-ablations"
    values = {"seeds": [0, 1, 2], "values": [5.0, 6.0, 7.0], "paper": ""}
    row = {"task": "object-interaction", "method": "Plan2Explore count", **values}
    measure = {"name": "frames to contact 5", "lower_is_better": True, "rows": [row]}
    found = {**FIRST, "experiment": name, "measures": [measure]}
    assert publish(leave_a_sweep(tmp_path / "out" / f"{name}-mini", found), "--add") == 0
    page = (tmp_path / "results" / f"{name}-mini" / "README.md").read_text()
    assert "- object-interaction, Plan2Explore count: 0: 5, 1: 6, 2: 7" in page
    kept = (tmp_path / "results" / "object-interaction-mini" / "README.md").read_text()
    for method in ("Plan2Explore", "Plan2Explore CR"):
        (line,) = [x for x in kept.split("contact 50,")[0].splitlines() if f", {method}: 0:" in x]
        assert line in page
    assert "Plan2Explore TD" not in page


@pytest.mark.parametrize("page", ["README.md", "results/made-up-mini/README.md"])
def test_a_number_changed_by_hand_is_found(page, publish, tmp_path, capsys):
    publish(leave_a_sweep(tmp_path / "out" / "made-up-mini", FIRST))
    path = tmp_path / page
    path.write_text(path.read_text().replace("| 1.5 |", "| 2.5 |"))
    assert publish("--check") == 1
    assert f"out of date: {page}" in capsys.readouterr().err
    assert publish() == 0
    assert publish("--check") == 0


def judged(adversarial, ladder_held=True):
    """Results of the rooms in miniature, with ten seeds of two methods."""
    seeds = [*range(2000, 2010)]
    rows = [
        {"task": "toy/two-rooms", "method": method, "seeds": seeds, "values": values, "paper": ""}
        for method, values in (
            ("uniform", [None] * 10), ("adversarial", adversarial), ("count", [1500.0] * 10),
            ("curious, no repeats", [1500.0] * 10),
        )
    ]  # fmt: skip
    measure = {"name": "frames to contact 5", "lower_is_better": True, "rows": rows}
    rung = {"name": "a rung", "bound": "at most 2", "values": [1.0, None], "median": 1.5,
            "held": ladder_held}  # fmt: skip
    return {**FIRST, "experiment": "mini-appears-parts", "measures": [measure], "ladder": [rung]}


def test_a_miniature_answers_its_question(publish, tmp_path):
    sweep = tmp_path / "out" / "mini-appears-parts-mini"
    assert publish(leave_a_sweep(sweep, judged([1000.0 + seed for seed in range(10)]))) == 0
    page = (tmp_path / "results" / "mini-appears-parts-mini" / "README.md").read_text()
    assert "| a rung | at most 2 | 1.5 | 1, – | yes |" in page
    claim = (
        "Replayed more often, the explorer comes to the fifth contact sooner with loss or count "
        "alone than with uniform replay"
    )
    ahead = "uniform never; ahead on 10 of 10, p = 0.002"
    found = f"adversarial 1004, {ahead}<br>count 1500, {ahead}"
    link = f"[{claim}](results/mini-appears-parts-mini/README.md)"
    asked = "**Q3** What do loss and count contribute?"
    readme = (tmp_path / "README.md").read_text()
    assert f"| {asked} | {link} | held | {found} |" in readme
    assert "so it does with batches without repeats |" not in readme  # which does not lead
    assert readme.count("mini-appears-parts-mini") == 1  # its table is on its own page
    answers = (tmp_path / "results" / "miniatures" / "README.md").read_text()
    assert (
        f"{claim} | held | adversarial against uniform | 0 (0 to 0) | 10 of 10 | 0.002 |" in answers
    )
    assert "(../mini-appears-parts-mini/README.md): the ladder holds" in answers
    assert "(`mini-appears-television`): not run yet" in answers


def test_a_rung_that_fails_is_named_beside_the_answers(publish, tmp_path):
    sweep = tmp_path / "out" / "mini-appears-parts-mini"
    assert publish(leave_a_sweep(sweep, judged([1000.0] * 10, ladder_held=False))) == 0
    page = (tmp_path / "results" / "mini-appears-parts-mini" / "README.md").read_text()
    assert "| a rung | at most 2 | 1.5 | 1, – | **no** |" in page
    answers = (tmp_path / "results" / "miniatures" / "README.md").read_text()
    assert "the ladder fails at: a rung" in answers


def test_seeds_that_are_missing_leave_a_registered_claim_open(publish, tmp_path):
    kept = tmp_path / "results" / "mini-mirror-mini" / "results.json"
    found = json.loads(kept.read_text())
    for measure in found["measures"]:
        for row in measure["rows"]:
            row["seeds"], row["values"] = row["seeds"][:9], row["values"][:9]
    assert publish(leave_a_sweep(tmp_path / "out" / "mini-mirror-mini", found)) == 0
    readme = (tmp_path / "README.md").read_text()
    claim = "Curious Replay reaches more goals in the new world than uniform replay"
    assert f"[{claim}](results/mini-mirror-mini/README.md) | not tested | – |" in readme
