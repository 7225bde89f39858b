"""The page tells what the folders hold, escapes their text, and works in a browser."""

import csv
import html
import io
import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from helpers.browser import browsing
from helpers.folders import counters, write_checkpoint, write_run

from curious_replay import cli
from curious_replay.analysis import load
from curious_replay.report import measures
from curious_replay.report.page import report
from curious_replay.report.tables import Table, number

EVIL = "<script>alert(1)</script>\"&'{{body}} $x^{$"


def assay(folder, replay, seed, first, name=None):
    """A run whose first of six contacts, one every 10 steps, comes `first` steps after the ball."""
    at = [100 + first + 10 * i for i in range(6)]
    metrics = [
        {**counters(t, 2), "log/contacts": sum(t - 10 < c <= t for c in at), "log/interactions": 0,
         "log/magenta_pixels": 2, "replay/share_after_change": 0.5 if t > 100 else "NaN"}
        for t in range(10, 310, 10)
    ]  # fmt: skip
    episodes = [
        {**counters(t, 2), "mode": "train", "return": float(t > 100 + first), "length": 20,
         "phase": "empty" if t <= 100 else "ball"}
        for t in range(20, 310, 20)
    ]  # fmt: skip
    probes = [
        {**counters(t, 2), "scene": scene, "ahead": 1, "mse": 0.1, "mse_object": first / t}
        for t in (50, 150, 250)
        for scene in (1, 2)
    ]
    settings = {"action_repeat": 2, "schedule": [[0, "empty"], [200, "ball"]]}
    write_run(folder / (name or f"{replay}-{seed}"), metrics=metrics, episodes=episodes,
              probes=probes, replay=replay, seed=seed, steps=300, env="object-interaction",
              env_settings=settings)  # fmt: skip
    images = np.zeros((300, 1, 32, 32, 3), np.uint8)
    images[:, 0, :, :, 0] = (np.arange(300) % 256)[:, None, None]
    contacts = np.isin(np.arange(300), at)[:, None].astype(int)
    fields = {
        "image": images,
        "log_contacts": contacts,
        "log_agent_position": np.random.default_rng(seed).normal(size=(300, 1, 3)),
        "log_magenta_position": np.zeros((300, 1, 3)),
        "log_magenta_pixels": contacts,
    }
    write_checkpoint(folder / (name or f"{replay}-{seed}"), fields, updates=30, repeat=2)


def crafter(folder, replay, seed, rate):
    episodes = [
        {**counters(100 * i), "mode": "train", "length": 100, "return": 1.0,
         "achievement/wake_up": int(i % rate == 0), "achievement/collect_wood": 1}
        for i in range(1, 41)
    ]  # fmt: skip
    write_run(folder / f"crafter-{replay}-{seed}", episodes=episodes, replay=replay, seed=seed,
              env="crafter", steps=9000)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two methods with three seeds on the assay, Crafter, a broken folder and one with no lines."""
    place = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        assay(place, "uniform", seed, 60 + seed)
        assay(place, "curious", seed, 5 + seed)
        crafter(place, "uniform", seed, 4)
        crafter(place, "curious", seed, 2)
    write_run(place / "empty", replay="count", env="object-interaction", seed=9)
    (place / "broken").mkdir()
    (place / "broken" / "config.json").write_text("{")
    return place


@pytest.fixture(scope="module")
def page(folder):
    with pytest.warns(UserWarning, match="broken"):
        found = load.load_runs([folder])
    return report(found)


def rows_of(table):
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_the_measures_are_those_worked_by_hand(page):
    # Contacts come 5, 15, 25, ... steps of two frames after the ball: the fifth after 2 (5 + 40).
    _, crafter_part, assay_part = page.sections  # the first is across both
    table = rows_of(assay_part.tables[0])
    curious, uniform = (table[f"frames to contact 5: {m}"] for m in ("curious", "uniform"))
    assert curious["mean"] == 2 * (6 + 40)
    assert uniform["mean"] == 2 * (61 + 40)
    assert (curious["n"], curious["runs"]) == (3, 3)
    assert curious["s.d."] == pytest.approx(2)
    assert curious["P(better)"] == 1
    assert curious["p"] < 0.001
    assert np.isnan(uniform["p"])
    assert table["frames to contact 5: count"]["n"] == 0
    assert "frames to contact 50: curious" not in table
    assert "curious does better than uniform" in assay_part.verdicts[0]
    assert "1 of 1 runs of count have no result" in assay_part.verdicts[0]
    assert table["frames to contact 5: count"]["P(better)"] == 0  # never is later than any time
    # One achievement always, one in half of the episodes: exp((ln 101 + ln 51) / 22) - 1.
    score = rows_of(crafter_part.tables[0])["Crafter score (%): curious"]["mean"]
    assert score == pytest.approx(np.exp((np.log(101) + np.log(51)) / 22) - 1)
    assert "not comparable" in crafter_part.tables[0].caption


def lines_of(page, ending):
    """What a chart shows: x and y of its first line."""
    figure = next(f for part in page.sections for f in part.figures if f.name.endswith(ending))
    line = figure.chart.figure.axes[0].lines[0]
    return line.get_xdata(), line.get_ydata()


def test_curves_over_the_frames_of_training(page):
    # Of uniform, which is first: contacts of three seeds at 60 + seed, 70 + seed, ... steps.
    frames, contacts = lines_of(page, "-contacts")
    assert contacts[-1] == 6
    at = dict(zip(frames.tolist(), contacts.tolist(), strict=True))
    assert [at[frame] for frame in (115, 120, 140)] == pytest.approx([0, 1 / 3, 4 / 3])
    frames, pixels = lines_of(page, "-pixels")
    assert (frames[-1], pixels[-1]) == (600, 60)
    frames, share = lines_of(page, "-share-after-change")
    assert set(share) == {0.5}
    assert frames[0] >= 200
    frames, error = lines_of(page, "-model-error")
    assert frames.tolist() == [100, 300, 500]
    assert error.tolist() == pytest.approx([61 / 50, 61 / 150, 61 / 250])


def test_without_a_change_time_counts_from_the_start():
    assert measures.first_change({}) == 0
    assert measures.measures({"curious": []}) == []


def test_a_method_that_does_not_win_is_said_not_to(tmp_path):
    for seed in range(3):
        assay(tmp_path, "uniform", seed, 5 + seed)
        assay(tmp_path, "curious", seed, 60 + seed)
    assert "curious does worse" in report(load.load_runs([tmp_path])).sections[0].verdicts[0]


def test_runs_are_never_dropped(page):
    assert "broken" in page.html
    assert "cannot be read" in page.html
    assert "not begun" in page.html
    assert "unfinished" in page.html
    assert "Runs: 13, finished: 6, folders that cannot be read: 1" in page.html
    states = [row[8] for row in page.tables[0].rows]
    assert sum(state == "finished" for state in states) == 6
    assert sum(state == "unfinished" for state in states) == 6
    assert sum(state == "not begun" for state in states) == 1


class Reader(HTMLParser):
    """Collects what a browser would run or fetch, and repeated names."""

    def __init__(self):
        super().__init__()
        self.scripts, self.outside, self.ids = 0, [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.scripts += tag == "script" and values.get("type") != "application/json"
        for name in ("src", "href", "xlink:href"):
            if not (values.get(name) or "#").startswith(("#", "data:")):
                self.outside.append(values[name])
        assert not [name for name in values if name.startswith("on")]
        if "id" in values:
            self.ids.append(values["id"])


def test_nothing_is_fetched_and_names_are_unique(page):
    reader = Reader()
    reader.feed(page.html)
    assert reader.outside == []
    assert reader.scripts == 1
    assert len(reader.ids) == len(set(reader.ids))


def test_text_of_a_run_is_never_markup(tmp_path):
    name = EVIL.replace("/", "")
    config = {"choice": {"env": EVIL, "agent": EVIL, "replay": EVIL, "scale": EVIL}, "seed": 0}
    assay(tmp_path, "curious", 0, 5, name=name)
    settings = json.loads((tmp_path / name / "config.json").read_text())
    settings["env"]["schedule"] = [[0, EVIL], [200, EVIL]]
    (tmp_path / name / "config.json").write_text(json.dumps({**settings, **config}))
    (tmp_path / name / "meta.json").write_text(json.dumps({"commit": EVIL}))
    made = report(load.load_runs([tmp_path]))
    assert "<script>alert" not in made.html
    assert "{{body}}" in html.unescape(made.html)  # shown as it is, not filled in
    reader = Reader()
    reader.feed(made.html)
    assert reader.scripts == 1
    made.save(tmp_path / "page.html", tmp_path / "files")
    text = "".join(p.read_text() for p in (tmp_path / "files").glob("*.svg"))
    assert "<script>" not in text


def test_files_say_what_the_page_says(page, tmp_path):
    made = page.save(tmp_path / "a" / "report.html", tmp_path / "files")
    assert made[0].read_text() == page.html
    assert {path.suffix for path in made[1:]} == {".svg", ".pdf", ".csv", ".tex"}
    for table in page.tables:
        with (tmp_path / "files" / f"{table.name}.csv").open() as file:
            found = list(csv.reader(file))
        assert found[0] == list(table.columns)
        for row, cells in zip(found[1:], table.rows, strict=True):
            for text, cell in zip(row, cells, strict=True):
                shown = cell if isinstance(cell, str) else number(cell)
                assert text.lstrip("'") == ("" if shown == "–" else shown)
        assert table.html() in page.html


def test_tables_in_three_languages():
    rows = [["=1+1", 0.5], ["a_b <i>", float("nan")], [None, float("inf")], ["b", None]]
    table = Table("t", "A & B", ("name", "x"), rows)
    assert table.csv() == "name,x\n'=1+1,0.5\na_b <i>,\n,\nb,\n"
    assert table.html().count('<td class="number">–</td>') == 4
    assert "<th scope=row>a_b &lt;i&gt;</th>" in table.html()
    assert r"a\_b \textless{}i\textgreater{} & -- \\" in table.latex()
    assert r"\caption{A \& B}" in table.latex()
    shown = [number(value) for value in (12345.678, 0.12345, 3.0, 0.000123, float("inf"), 7)]
    assert shown == ["12346", "0.1235", "3", "1.23e-04", "–", "7"]


def test_runs_csv_has_a_row_for_every_run_and_measure(page, folder, tmp_path):
    page.save(tmp_path / "report.html", tmp_path / "files")
    with (tmp_path / "files/runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    by = {(Path(row["run"]).name, row["measure"]): row for row in rows}
    assert len(by) == len(rows)
    assert {name for name, _ in by} == {path.name for path in folder.iterdir()} - {"broken"}
    row = by["curious-1", "frames to contact 5"]
    assert row == {
        "run": str(folder / "curious-1"), "env": "object-interaction", "agent": "dreamerv3",
        "replay": "curious", "scale": "mini", "seed": "1", "method": "curious",
        "measure": "frames to contact 5", "value": "92.0",
    }  # fmt: skip
    assert by["empty", "frames to contact 5"]["value"] == ""  # it never got there
    assert (by["empty", "steps"]["value"], by["empty", "steps"]["method"]) == ("0", "count")
    assert by["uniform-0", "hours"]["value"] == "0.0"
    assert len(by["crafter-curious-0", "Crafter score (%)"]["value"]) > 10  # all digits


def test_cells_of_files_are_numbers_or_empty(page):
    (folders,) = (table for table in page.tables if table.name == "folders")
    rows = {row["folder"]: row for row in csv.DictReader(io.StringIO(folders.csv()))}
    assert [rows["broken"][each] for each in ("env", "seed", "steps", "of")] == [""] * 4
    for table in page.tables:
        assert "–" not in table.csv()


def test_the_command(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "r.html"
    assert cli.main(["report", str(folder), "--out", str(out), "--baseline", "count"]) == 0
    said = capsys.readouterr().out
    assert str(out) in said
    assert "broken" in said
    assert "curious does" not in out.read_text()
    assert cli.main(["report", str(tmp_path / "nothing")]) == 1
    assert "no run could be read" in capsys.readouterr().out
    assert cli.main(["report"]) == 2
    assert "name run folders" in capsys.readouterr().err


def plain(rows):
    """Cells without the mark that keeps text from being a formula, nor that for nothing."""
    return [[cell.lstrip("'").strip("–") for cell in row] for row in rows]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    yield from browsing(tmp_path_factory.mktemp("browser"))


@pytest.mark.parametrize("width", [360, 1440])
def test_in_a_browser(browser, page, tmp_path, width):
    path = page.save(tmp_path / "report.html")[0]
    browser.open(path, width, dark=width == 360)
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    first = "document.querySelector('.explorer')"
    frame = f"{first}.querySelector('dd').textContent"
    line = f"{first}.querySelector('.line')"
    assert browser.run(frame) == "598"  # the newest step
    browser.run(f"{line}.focus()")
    browser.key("Home")
    assert browser.run(frame) == "0"
    browser.key("ArrowRight")
    assert browser.run(f"{line}.getAttribute('aria-valuenow')") == "2"
    browser.run(f"{line}.scrollIntoView({{block: 'center'}})")
    place = browser.run(f"JSON.parse(JSON.stringify({line}.getBoundingClientRect()))")
    browser.point(place["x"] + place["width"] / 2, place["y"] + 20)
    assert abs(int(browser.run(frame)) - 300) < 8
    shown = browser.run(
        "[...document.querySelectorAll('table')].map(t => "
        "[...t.rows].map(r => [...r.cells].map(c => c.textContent)))"
    )
    written = [list(csv.reader(io.StringIO(table.csv()))) for table in page.tables]
    assert sorted(map(plain, shown)) == sorted(map(plain, written))
    assert browser.run(f"{first}.querySelector('.thumb').style.backgroundPosition") != ""
    assert browser.complaints() == []
