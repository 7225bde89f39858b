"""Charts hold what they were given; how they look was judged by eye."""

import numpy as np
import pytest
from matplotlib import colors as mpl_colors

from curious_replay.analysis import chart as charts
from curious_replay.analysis import plots, replay_probe, returns, stats

CHANGES = ((0, "empty"), (50, "ball"))


def texts(chart):
    """All words of a chart."""
    return [
        text.get_text()
        for axes in chart.figure.axes
        for text in (*axes.texts, *axes.get_xticklabels(), axes.xaxis.label, axes.yaxis.label)
    ] + [t.get_text() for a in chart.figure.axes if a.get_legend() for t in a.get_legend().texts]


def test_curves_show_means_runs_and_changes():
    grid = np.arange(0, 100, 10)
    bands = {
        "curious": returns.band(grid, [grid * 1.0, grid * 3.0]),
        "uniform": returns.band(grid, [np.where(grid < 50, 1.0, np.nan)]),
    }
    chart = plots.curves(bands, ylabel="return", changes=CHANGES)
    axes = chart.figure.axes[0]
    first, second = axes.lines[:2]
    assert first.get_ydata().tolist() == (2.0 * grid).tolist()
    assert first.get_color() == charts.COLORS["curious"]
    assert second.get_xdata().tolist() == [0, 10, 20, 30, 40]  # no line after a run's end
    assert {"curious (2 runs)", "uniform (1 run)", "ball"} <= set(texts(chart))
    assert "empty" not in texts(chart)


def test_bars_tell_how_many_runs_did_not_get_there():
    groups = {"uniform": [1.0, 3.0, np.nan], "curious": [1.0], "td": [np.nan]}
    found = [stats.Comparison("uniform", "curious", 1, 2, 0.01, 0.0004)]
    found.append(stats.Comparison("uniform", "td", 1, 2, np.nan, np.nan))
    chart = plots.bars(groups, ylabel="frames", comparisons=found)
    assert [bar.get_height() for bar in chart.figure.axes[0].patches] == [2, 1]
    labels = texts(chart)
    assert {"uniform\n1 of 3\nnot reached", "curious", "td\n1 of 1\nnot reached"} <= set(labels)
    assert [text for text in labels if text.startswith("p ")] == ["p < 0.001"]


def test_long_names_under_bars_are_broken_between_words():
    chart = plots.bars({"Plan2Explore adversarial": [1.0], "Plan2Explore CR": [2]}, ylabel="x")
    assert {"Plan2Explore\nadversarial", "Plan2Explore CR"} <= set(texts(chart))


def test_spectrum_has_a_bar_for_each_achievement_and_method():
    chart = plots.spectrum({"curious": np.ones((3, 22)), "uniform": np.zeros((2, 22))})
    heights = [bar.get_height() for bar in chart.figure.axes[0].patches[1:]]
    assert heights == [1] * 22 + [0.01] * 22
    assert "collect diamond" in texts(chart)
    assert chart.figure.axes[0].patches[0].get_x() == 8.5  # shaded from the tenth, wood pickaxe


EMPTY = {
    "curves": lambda: plots.curves({}, ylabel="return"),
    "bars": lambda: plots.bars({}, ylabel="frames"),
    "bars of nothing": lambda: plots.bars({"curious": []}, ylabel="frames"),
    "spectrum": lambda: plots.spectrum({}),
    "spectrum of nothing": lambda: plots.spectrum({"curious": np.full((1, 22), np.nan)}),
    "trajectories": lambda: plots.trajectories({}),
    "no places": lambda: plots.trajectories({"a": (np.zeros((0, 2)), None)}),
    "replay": lambda: plots.replay_view({}),
    "no steps": lambda: plots.replay_view({"curious": replay_probe.profile([], [], [])}),
    "profiles": lambda: plots.profiles([0, 1], {}),
}


@pytest.mark.parametrize("name", EMPTY)
def test_charts_of_nothing_can_be_drawn(name, tmp_path):
    assert EMPTY[name]().save(tmp_path / "chart", ["png"])[0].stat().st_size > 1000


def test_files_carry_the_caption_and_repeat(tmp_path):
    def chart():
        shares = {"own": stats.performance_profile(np.arange(6.0), [0, 3], seed=0)}
        return plots.profiles([0, 3], shares, caption="Who wins <&>.")

    png, svg, pdf = chart().save(tmp_path / "a.b", ["png", "svg", "pdf"])
    assert (png.name, svg.name, pdf.name) == ("a.b.png", "a.b.svg", "a.b.pdf")
    assert b"Who wins" in png.read_bytes()
    assert "Who wins &lt;&amp;&gt;." in svg.read_text()
    again = chart().save(tmp_path / "again", ["svg"])[0]
    assert again.read_bytes() == svg.read_bytes()


def test_large_trajectories_stay_small_files(tmp_path):
    many = np.random.default_rng(0).normal(size=(20_000, 2))
    chart = plots.trajectories({"a": (many, many)})
    assert chart.save(tmp_path / "t", ["svg"])[0].stat().st_size < 500_000


def test_every_method_has_a_colour():
    assert charts.color("TD + adversarial") == charts.COLORS["td+adversarial"]
    assert len(set(charts.COLORS.values())) == len(charts.COLORS)
    assert charts.color("my own") == charts.color("my own")
    assert charts.line_style("TD") == charts.line_style("td") != "-"


def test_no_two_methods_of_a_page_have_one_colour():
    kinds = {f"curious {i / 10}": "curious" for i in range(30)}
    kinds |= {"uniform": "uniform", "uniform, cleared": "uniform", "Plan2Explore TD": "td"}
    with charts.colors_of(kinds):
        found = {method: charts.color(method) for method in kinds}
        drawn = plots.bars({method: [1.0] for method in kinds}, ylabel="x").figure.axes[0]
        with charts.colors_of({"curious 2.9": "curious", "new": "td"}):
            assert charts.color("curious 2.9") == found["curious 2.9"]
    assert len(set(found.values())) == len(kinds)
    assert found["uniform"] == charts.COLORS["uniform"]
    assert found["Plan2Explore TD"] == charts.COLORS["td"]  # as its kind of replay is
    assert charts.COLORS["curious"] in found.values()
    bars = [mpl_colors.to_hex(bar.get_facecolor()) for bar in drawn.patches]
    assert bars == list(found.values())
    with charts.colors_of(dict(reversed(kinds.items()))):
        assert {method: charts.color(method) for method in kinds} == found
    assert charts.color("curious 2.9") in charts.OTHERS  # nothing is left of it


def test_changes_that_are_still_to_come_take_no_room():
    band = returns.Band(np.arange(5), np.arange(5.0), np.zeros(5), np.ones(5, int))
    axes = plots.curves({"a": band}, ylabel="y", changes=[(0, "x"), (3, "y"), (900, "z")]).figure
    assert axes.axes[0].get_xlim()[1] < 5
    assert [text.get_text() for text in axes.axes[0].texts] == ["y"]


def test_every_run_is_a_line():
    lines = [("a", np.arange(3), np.ones(3)), ("a", np.arange(2), np.ones(2)), ("b", [4], [2.0])]
    (axes,) = plots.runs(lines, title="loss", logarithmic=True).figure.axes
    assert [len(line.get_xdata()) for line in axes.lines] == [3, 2, 1]
    assert axes.lines[2].get_marker() == "."  # a line of one point would not be seen
    assert axes.get_yscale() == "log"
