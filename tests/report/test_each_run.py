"""Every run shows its curves, also where nothing can be compared."""

import numpy as np
import pytest
from helpers.browser import browsing
from helpers.folders import counters, write_checkpoint, write_run

from curious_replay import cli
from curious_replay.analysis import chart, load
from curious_replay.report import explorer
from curious_replay.report.page import report


def small(page):
    """Charts of every run by their titles."""
    (part,) = page.sections
    return {each.chart.figure.axes[0].get_title("left"): each for each in part.small}


def lone(folder, rows=4):
    """One run, no return but 0, no measure."""
    metrics = [
        {**counters(10 * i), "model/loss": 100.0 / i, "model/kl": 1.0, "actor/loss": -0.1,
         "log/steps_in_room": i, "replay/steps": i}
        for i in range(1, rows + 1)
    ]  # fmt: skip
    episodes = [{**counters(10 * i), "mode": "train", "return": 0.0} for i in (1, 2, 3)]
    episodes.append({**counters(40), "mode": "eval", "return": 2.0})
    return write_run(folder, metrics=metrics, episodes=episodes)


def test_one_run_without_a_measure_has_curves(tmp_path):
    lone(tmp_path / "a")
    page = report(load.load_runs([tmp_path]))
    assert page.sections[0].measures == []
    charts = small(page)
    assert [*charts] == [
        "return", "return in evaluation", "model/loss", "actor/loss", "log/steps_in_room"
    ]  # fmt: skip
    (line,) = charts["model/loss"].chart.figure.axes[0].lines
    assert line.get_xdata().tolist() == [10, 20, 30, 40]
    assert line.get_ydata().tolist() == [100, 50, pytest.approx(100 / 3), 25]
    (line,) = charts["return"].chart.figure.axes[0].lines
    assert line.get_ydata().tolist() == [0, 0, 0]
    assert page.html.count("every run, by frame") >= 5
    made = {path.name for path in page.save(tmp_path / "r.html", tmp_path / "files")}
    assert "1-toy-two-rooms-dreamerv3-mini-runs-model-loss.svg" in made
    assert "1-toy-two-rooms-dreamerv3-mini-runs-log-steps_in_room.pdf" in made


def test_many_rows_are_means_of_few_points(tmp_path):
    lone(tmp_path / "a", rows=5000)
    (line,) = (
        small(report(load.load_runs([tmp_path])))["log/steps_in_room"].chart.figure.axes[0].lines
    )
    assert len(line.get_xdata()) == 120
    assert np.allclose(line.get_xdata(), 10 * line.get_ydata())
    assert line.get_ydata().mean() == pytest.approx(2500.5)


def test_a_run_that_has_not_begun_is_no_line(tmp_path):
    lone(tmp_path / "a")
    write_run(tmp_path / "b", replay="uniform")
    assert len(small(report(load.load_runs([tmp_path])))["return"].chart.figure.axes[0].lines) == 1


def test_a_method_has_one_colour_on_the_whole_page(tmp_path):
    for replay, alpha in (("curious", 0.5), ("curious", 0.7), ("count", 0.5), ("uniform", None)):
        settings = {} if alpha is None else {"alpha": alpha}
        for seed in range(2):
            episodes = [
                {**counters(10 * i), "mode": "train", "return": 1.0 + i + seed} for i in range(1, 9)
            ]
            folder = tmp_path / f"{replay}-{alpha}-{seed}"
            write_run(folder, replay=replay, episodes=episodes, replay_settings=settings, seed=seed)
            write_checkpoint(folder, {"x": np.zeros((40, 1))})
    page = report(load.load_runs([tmp_path]), by=("replay", "replay.alpha"))
    (part,) = page.sections
    found = {method: set() for method in part.methods}
    for figure in part.figures:
        for axes in figure.chart.figure.axes:
            for line in axes.lines:
                name = line.get_label().partition(" (")[0]
                found.get(name, set()).add(line.get_color())
    colours = [*map(tuple, found.values())]
    assert [len(each) for each in colours] == [1] * 4
    assert len(set(colours)) == 4
    for method, (colour,) in zip(found, colours, strict=True):
        assert f'<i style="background:{colour}"></i>{method}</span>' in page.html
    assert not {*explorer.PHASES} & {*chart.COLORS.values(), *chart.OTHERS}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    yield from browsing(tmp_path_factory.mktemp("browser"))


def test_at_390_pixels_charts_fit_or_scroll_visibly(browser, tmp_path):
    lone(tmp_path / "a")
    write_checkpoint(tmp_path / "a", {"x": np.zeros((40, 1))})
    out = tmp_path / "r.html"
    assert cli.main(["report", str(tmp_path / "a"), "--out", str(out)]) == 0
    browser.open(out, 390)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    boxes = browser.run(
        "[...document.querySelectorAll('.chart, .scroll')].map(box => ({"
        "small: box.closest('.grid') !== null, over: box.scrollWidth - box.clientWidth,"
        "shadow: getComputedStyle(box).backgroundAttachment,"
        "bar: getComputedStyle(box, '::-webkit-scrollbar').height}))"
    )
    assert any(box["over"] > 0 for box in boxes)
    for box in boxes:
        if box["small"]:
            assert box["over"] <= 0
        elif box["over"] > 0:
            assert box["shadow"] == "local, local, scroll, scroll"
            assert box["bar"] == "8px"
    assert browser.complaints() == []
