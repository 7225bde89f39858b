"""What the page adds where runs hold more: snapshots, a removed object, a suite, several agents."""

import numpy as np
import pytest
from helpers.folders import counters, write_run, write_snapshot

from curious_replay.analysis import crafter, load
from curious_replay.report.page import report


def made(folder):
    return report(load.load_runs([folder]))


def table(page, ending):
    """Rows of a table by their first cell, each by its columns (the first of equal names)."""
    found = next(each for each in page.tables if each.name.endswith(ending))
    return {
        row[0]: dict(zip(reversed(found.columns), reversed(row), strict=True)) for row in found.rows
    }


def names(page):
    tables = {each.name.partition("-")[2] for each in page.tables}
    return tables | {each.name for part in page.sections for each in part.figures}


def removal(folder, name, seed, errors, clear=0):
    """The ball is there from frame 100 to 200; errors before it goes, later, and at the end."""
    probes = [
        {**counters(t), "scene": 1, "ahead": 1, "mse": 0.5, "mse_object": error}
        for t, error in zip((195, 250, 395), errors, strict=True)
    ]
    metrics = [
        {**counters(t), "log/contacts": 1, "log/ball_pixels": 10} for t in range(50, 401, 50)
    ]
    schedule = [[0, "empty"], [100, "ball"], [200, "empty"]]
    write_run(folder / f"{name}-{seed}", replay=name.partition("-")[0], seed=seed, probes=probes,
              metrics=metrics, meta={"schedule": schedule}, env="object-interaction-removal",
              replay_settings={"clear_at_change": clear, "capacity": 1000})  # fmt: skip


def test_forgetting_is_measured_against_a_cleared_buffer(tmp_path):
    for seed in range(2):
        removal(tmp_path, "curious", seed, (0.1, 0.3, 0.2))
        removal(tmp_path, "uniform", seed, (0.2, 0.1, 0.1))
        removal(tmp_path, "uniform-cleared", seed, (0.2, 0.5, 0.6), clear=2)
    page = made(tmp_path)
    found = table(page, "-forgetting")
    assert set(found) == {"curious", "uniform", "uniform, cleared at change 2"}
    curious, control = found["curious"], found["uniform, cleared at change 2"]
    assert (curious["n"], curious["before"], curious["worst"]) == (2, pytest.approx(0.1), 0.3)
    assert curious["at the end"] == pytest.approx(0.2)
    assert curious["ratio"] == pytest.approx(2)
    assert curious["share of control"] == pytest.approx(0.1 / 0.4)
    assert control["share of control"] == pytest.approx(1)
    assert found["uniform"]["share of control"] == pytest.approx(-0.25)
    rows = table(page, "-measures")
    assert rows["forgetting: model error at the end divided by that before the object is removed: "
                "curious"]["mean"] == pytest.approx(2)  # fmt: skip


def test_pixels_in_a_buffer_that_was_cleared(tmp_path):
    removal(tmp_path, "uniform-cleared", 0, (0.2, 0.5, 0.6), clear=2)
    (part,) = made(tmp_path).sections
    chart = next(each.chart for each in part.figures if each.name.endswith("-pixels"))
    line = chart.figure.axes[0].lines[0]
    held = dict(zip(line.get_xdata().tolist(), line.get_ydata().tolist(), strict=True))
    assert (held[200], held[250], held[400]) == (40, 10, 40)


def test_without_a_cleared_buffer_there_is_no_control(tmp_path):
    removal(tmp_path, "curious", 0, (0.1, 0.3, 0.2))
    assert np.isnan(table(made(tmp_path), "-forgetting")["curious"]["share of control"])


def episodes(returns):
    return [{**counters(10 * i), "mode": "train", "return": r} for i, r in enumerate(returns, 1)]


def test_what_a_change_leaves_once_it_is_undone(tmp_path):
    schedule = [[0, "A"], [100, "B"], [200, "A"]]
    returns = [1.0] * 9 + [8.0] + [2.0] * 10 + [6.0] + [3.0] * 9
    write_run(tmp_path / "a", episodes=episodes(returns), meta={"schedule": schedule})
    rows = table(made(tmp_path), "-measures")
    # Windows are a twentieth of 300 frames: the episodes that end at 90 and 100, then that at 210.
    assert rows["return before the change at frame 100: curious"]["mean"] == 4.5
    assert rows["return just after it is undone at frame 200: curious"]["mean"] == 6
    assert rows["mean return after the change to B (frame 100): curious"]["mean"] == 2


def suite(folder):
    """Two tasks for one agent, one of them for another as well; two seeds."""
    scores = {("walker_walk", "uniform"): 100, ("walker_walk", "curious"): 300,
              ("cup_catch", "uniform"): 900, ("cup_catch", "curious"): 500}  # fmt: skip
    for (task, replay), score in scores.items():
        for seed in range(2):
            write_run(folder / f"{task}-{replay}-{seed}", env=f"control/{task}", replay=replay,
                      seed=seed, episodes=episodes([score + 10.0 * seed] * 20))  # fmt: skip
    write_run(folder / "other", env="control/cup_catch", agent="dreamerv2", seed=0,
              episodes=episodes([40.0] * 20))  # fmt: skip


def test_tables_over_tasks_and_across_agents(tmp_path):
    suite(tmp_path)
    page = made(tmp_path)
    tasks = table(page, "suite-control-dreamerv3-mini")
    assert tasks["control/walker_walk"]["curious"] == 305
    assert (tasks["mean"]["uniform"], tasks["median"]["curious"]) == (505, 405)
    summary = table(page, "-summary")
    assert summary["curious"]["n"] == 4
    assert summary["curious"]["P(better)"] == 0.5  # always on one task, never on the other
    assert summary["curious"]["IQM"] == pytest.approx((310 + 500) / 2)
    assert summary["curious"]["from"] <= summary["curious"]["IQM"] <= summary["curious"]["to"]
    overview = next(each for each in page.tables if each.name == "overview")
    agents = [row[0] for row in overview.rows]
    assert agents == [
        "control/cup_catch, dreamerv2, mini",
        *["control/cup_catch, dreamerv3, mini"] * 2,
        *["control/walker_walk, dreamerv3, mini"] * 2,
    ]
    assert "suite-control-dreamerv3-mini-profile" in names(page)
    assert page.sections[0].title in page.html
    profile = next(f for f in page.sections[0].figures if f.name.endswith("-profile"))
    line = profile.chart.figure.axes[0].lines[0]  # of uniform: half of its runs are above 900
    above = dict(zip(line.get_xdata().round().tolist(), line.get_ydata().tolist(), strict=True))
    assert (above[0], above[1000]) == (1, 0)
    assert np.interp(500, line.get_xdata(), line.get_ydata()) == 0.5


def test_one_section_has_nothing_across(tmp_path):
    write_run(tmp_path / "a", episodes=episodes([1.0] * 20))
    page = made(tmp_path)
    assert [part.key for part in page.sections] == [("toy/two-rooms", "dreamerv3", "mini")]


def test_seeds_that_are_not_there_are_named(tmp_path):
    for replay, seed in (("uniform", 0), ("uniform", 1), ("curious", 1)):
        write_run(tmp_path / f"{replay}-{seed}", replay=replay, seed=seed,
                  episodes=episodes([1.0 + seed] * 20))  # fmt: skip
    (part,) = made(tmp_path).sections
    assert "curious: no run with seed 0" in part.verdicts


def test_replay_by_phase_and_age_from_snapshots(tmp_path):
    folder = write_run(tmp_path / "a", meta={"schedule": [[0, "x"], [4, "y"]]})
    write_snapshot(folder, 4, ids=range(8), visits=[4, 4, 4, 0, 2, 2, 2, 2],
                   priorities=[[1.0, 1, 1, 0, 2, 2, 4, 3]], phase=[0, 0, 0, 0, 1, 1, 1, 1],
                   phases=["x", "y"])  # fmt: skip
    page = made(tmp_path)
    rows = table(page, "-by-phase")
    x, y = rows["curious: x"], rows["curious: y"]
    assert (x["% of buffer"], x["runs"]) == (50, 1)
    assert (x["% of draws"], y["% of draws"]) == (pytest.approx(300 / 14), pytest.approx(1100 / 14))
    assert (x["% of visits"], y["% of visits"]) == (60, 40)
    assert (x["chance"], x["visits"]) == (pytest.approx(3 / 4 / 2), 3)  # mean priority 2, not 0 one
    age = next(f for f in page.sections[0].figures if f.name.endswith("-replay-age"))
    line = age.chart.figure.axes[1].lines[0]
    assert line.get_ydata().tolist() == [2, 2, 2, 2, 0, 4, 4, 4]


def test_crafter_tables_by_resource(tmp_path):
    lines = [
        {**counters(100 * i), "length": 100, "return": 1.0, "achievement/wake_up": 0,
         "achievement/collect_wood": int(i > 2)}
        for i in range(1, 11)
    ]  # fmt: skip
    inventory = np.zeros((4, 16), np.uint8)
    inventory[2:, crafter.ITEMS.index("wood")] = 1
    for seed in range(2):
        folder = write_run(tmp_path / str(seed), env="crafter", episodes=lines, seed=seed,
                           steps=1000)  # fmt: skip
        write_snapshot(folder, 600, ids=range(4), visits=[1, 1, 4, 6],
                       priorities=[[0.0, 1, 3, 2 + seed]], log_inventory=inventory)  # fmt: skip
    page = made(tmp_path)
    steps = table(page, "-steps-to-success")
    assert steps["collect wood"]["curious"] == 500
    assert np.isnan(steps["collect iron"]["curious"])
    sampled = table(page, "-sampling-by-resource")["wood"]
    assert sampled["curious"] == pytest.approx((1.25 + 9 / 7) / 2)
    assert (sampled["runs"], sampled["at step"]) == (2, 600)
    assert table(page, "-training-by-resource")["wood"]["runs"] == 2
    assert table(page, "-training-by-resource")["iron"]["runs"] == 0


def test_without_snapshots_crafter_has_one_of_the_three_tables(tmp_path):
    line = {**counters(100), "length": 100, "return": 1.0, "achievement/wake_up": 1}
    write_run(tmp_path / "a", env="crafter", episodes=[line])
    endings = {name.rpartition("mini-")[2] for name in names(made(tmp_path))}
    assert "steps-to-success" in endings
    assert "sampling-by-resource" not in endings
