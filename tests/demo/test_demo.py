"""The demo gives both models the same start and data, measures the ball, and says who won."""

import json

import numpy as np
import pytest
from helpers.browser import Browser, find
from PIL import Image

from curious_replay import cli
from curious_replay.analysis import load, stored
from curious_replay.analysis.chart import COLORS
from curious_replay.commands import demo
from curious_replay.demo import stream, trials, verdict, video
from curious_replay.demo.branches import Branch, Trial, ball_error, run_trial
from curious_replay.demo.page import make_page
from curious_replay.demo.plan import QUICK, Plan

BALL = (255, 0, 255)


def nothing():
    pass


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    return tmp_path_factory.mktemp("replay")


@pytest.fixture(scope="module")
def trial(replay):
    return run_trial(3, QUICK, replay, nothing)


def test_the_ball_appears_for_all_arenas_at_once():
    steps = stream.explore((0, 0), arenas=2, before=12, after=60)
    assert steps["image"].shape == (72, 2, 32, 32, 3)
    assert steps["is_first"].sum() == 2
    there = steps["log_magenta_position"][..., 1] < 5  # else it waits behind the far wall, at 7 m
    assert not there[:12].any()
    assert there[12:].all()
    again = stream.explore((0, 0), arenas=2, before=12, after=60)
    assert all(np.array_equal(steps[name], again[name]) for name in steps)
    other = stream.explore((0, 1), arenas=2, before=12, after=60)
    assert not np.array_equal(steps["action"], other["action"])
    assert not np.array_equal(steps["action"][:, 0], steps["action"][:, 1])


def test_windows_show_the_ball_where_it_is_to_be_predicted():
    pixels = np.zeros((12, 2), int)
    pixels[3:8, 0] = stream.FEWEST_PIXELS  # windows of 2 + 3 steps may begin at 2, 3
    pixels[5:9, 1] = (6, 59, 60, 61)  # and at 4
    steps = {
        "time": np.arange(12)[:, None] + [0, 100],
        "log_magenta_pixels": pixels,
        "is_first": np.zeros((12, 2), bool),
    }
    windows = stream.ball_windows(steps, seen=2, ahead=3, most=9)
    begins = [104, 2, 3]  # the clearest ball first
    assert windows["time"].tolist() == [[begin + i for i in range(5)] for begin in begins]
    assert windows["is_first"].tolist() == [[True, *[False] * 4]] * 3
    assert len(stream.ball_windows(steps, seen=2, ahead=3, most=2)["time"]) == 2
    with pytest.raises(ValueError, match="nowhere to be seen for 6 steps"):
        stream.ball_windows(steps, seen=2, ahead=5, most=9)


def test_the_error_is_that_of_predicted_balls():
    truth = np.zeros((1, 3, 4, 4, 3), np.uint8)
    truth[0, 1, 0, :2] = BALL
    truth[0, 2, 3, 3] = BALL
    truth[0, 0, 1, 1] = BALL  # was seen, so it does not count
    dream = np.zeros_like(truth)
    dream[0, 1, 0, 0] = BALL
    dream[:, :, 2] = 200  # wrong, but not where the ball is
    # Half of the first ball and all of the second are missed; of three channels two are wrong.
    assert ball_error(truth, dream, seen=1) == pytest.approx((0.5 + 1) / 2 * 2 / 3)
    assert ball_error(truth, truth, seen=1) == 0


def test_both_branches_begin_alike_and_differ_in_replay_only(trial, replay):
    uniform, curious = trial.branches["uniform"], trial.branches["curious"]
    assert uniform.errors[0] == curious.errors[0]
    assert uniform.errors[1:] != curious.errors[1:]
    assert len(uniform.errors) == len(uniform.pictures) == 1 + 2
    assert len(uniform.shares) == QUICK.updates
    assert np.mean(curious.shares) > np.mean(uniform.shares)
    held = {name: stored.newest(load.load_run(replay / name)) for name in trial.branches}
    for name in ("image", "action"):
        assert np.array_equal(*(steps.field(name) for steps in held.values()))
    for steps in held.values():
        assert len(steps) == QUICK.arenas * (QUICK.before + QUICK.after)
        assert (
            steps.frame >= 120
        ).sum() == QUICK.arenas * QUICK.after  # 2 arenas, 30 steps, 2 frames
        shared = QUICK.shared_updates * QUICK.windows * QUICK.length
        every = shared + QUICK.updates * QUICK.windows * QUICK.length
        assert 0.5 * shared < steps.visits.sum() <= every
    assert "beta" in held["curious"].buffer.rule
    assert "beta" not in held["uniform"].buffer.rule


def test_same_seed_same_trial(trial, tmp_path):
    again = run_trial(3, QUICK, tmp_path, nothing)
    for name, branch in trial.branches.items():
        assert again.branches[name].errors == branch.errors
        assert np.array_equal(again.branches[name].dream, branch.dream)


def made_up(seed, uniform, curious):
    """A trial whose tests, 20 updates apart, had these errors."""
    branches = {
        name: Branch(np.zeros((1, 2, 4, 4, 3), np.uint8), errors, [], [share])
        for name, errors, share in (("uniform", uniform, 0.125), ("curious", curious, 0.75))
    }
    return Trial(seed, np.zeros((1, 2, 4, 4, 3), np.uint8), branches)


PLAN = Plan(updates=80, test_every=20)
WON = made_up(0, [0.4, 0.4, 0.3, 0.25, 0.2], [0.4, 0.3, 0.2, 0.3, 0.1])
LOST = made_up(1, [0.4, 0.1, 0.1, 0.1, 0.1], [0.4, 0.4, 0.4, 0.4, 0.4])
TIED = made_up(2, [0.4, 0.3, 0.2, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1, 0.1])
NEITHER = made_up(3, [0.4] * 5, [0.4] * 5)


def test_the_table_says_when_half_of_the_error_was_left():
    table = verdict.table([WON, LOST, TIED, NEITHER], PLAN)
    assert [list(row) for row in table.rows] == [
        ["seed 0", "80", "40", 0.5, 0.25, "12 %", "75 %", "curious"],
        ["seed 1", "20", "more than 80", 0.25, 1.0, "12 %", "75 %", "uniform"],
        ["seed 2", "40", "40", 0.25, 0.25, "12 %", "75 %", "neither"],
        ["seed 3", "more than 80", "more than 80", 1.0, 1.0, "12 %", "75 %", "neither"],
    ]


def test_a_seed_that_is_not_won_is_named():
    said = verdict.sentences([WON, LOST, TIED, NEITHER], PLAN)
    assert said == [
        "Curious replay modelled the ball sooner on 1 of 4 seeds "
        "(median: more than 60 updates, uniform replay 60).",
        "On seed 1 curious replay did not win: uniform replay needed 20 updates, "
        "curious more than 80.",
        "On seed 2 curious replay did not win: both needed 40 updates.",
        "On seed 3 curious replay did not win: neither model knew the ball after 80 updates.",
    ]
    assert verdict.sentences([LOST], PLAN)[0].endswith(
        "(median: more than 80 updates, uniform replay 20)."
    )


def test_the_page_says_what_was_lost_and_left_out(trial, replay):
    html = make_page([trial], QUICK, replay, seeds_wanted=4, seconds=90)
    assert "Curious replay modelled the ball sooner on 0 of 1 seeds" in html
    assert "On seed 3 curious replay did not win" in html
    assert "Time was up after 1 of 4 seeds." in html
    assert "1.5 minutes" in html
    assert verdict.table([trial], QUICK).html() in html
    assert "Time was up" not in make_page([trial], QUICK, replay, seeds_wanted=1, seconds=90)


def test_seeds_without_time_are_left_out(monkeypatch, tmp_path):
    begun, now = [], [0.0]

    def slow(seed, plan, folder, tick):
        begun.append((seed, folder))
        now[0] += 100
        tick()
        return made_up(seed, [1.0], [1.0])

    monkeypatch.setattr(trials, "run_trial", slow)
    monkeypatch.setattr(trials.time, "monotonic", lambda: now[0])
    shown = []
    for seconds, expected in ((250, [5, 6]), (299, [5, 6]), (300, [5, 6, 7]), (1, [5])):
        begun.clear()
        shown.clear()
        found = trials.run_trials(
            [5, 6, 7], QUICK, tmp_path, shown.append, processes=1, seconds=seconds
        )
        assert [trial.seed for trial in found] == [seed for seed, _ in begun] == expected
        assert [folder for _, folder in begun] == [tmp_path, None, None][: len(begun)]
        assert shown == list(range(1, len(begun) + 1))


def coloured(picture, ink):
    """How many pixels of a picture have a colour, and the rightmost column with one."""
    red, green, blue = (int(ink[i : i + 2], 16) for i in (1, 3, 5))
    at = np.abs(picture.astype(int) - (red, green, blue)).max(-1) < 8
    return at.sum(), np.flatnonzero(at.any(0)).max(initial=0)


def test_the_video_shows_predictions_and_errors_as_they_come():
    shade = np.linspace(0, 255, 5).astype(np.uint8)
    pictures = {
        name: [np.full((4, 4, 3), (0, s, 255), np.uint8) for s in order]
        for name, order in (("uniform", shade), ("curious", shade[::-1]))
    }
    plan = Plan(updates=80, test_every=20, seen=0)
    seeds = [made_up(0, [0.4] * 5, [0.4, 0.3, 0.2, 0.1, 0.1]) for _ in range(2)]
    for trial in seeds:
        for name, branch in trial.branches.items():
            branch.pictures += pictures[name]
    shown = video.video(seeds, plan)
    assert shown.shape[0] == 5 + video.HOLD - 1
    assert (shown[4:] == shown[4]).all()
    right = shown[0].shape[1] // 2
    for test in range(5):
        for name in pictures:
            differs = shown[test][:, right:].astype(int) - pictures[name][test][0, 0]
            there = np.abs(differs).max(-1) < 32  # half a shade: colours are few
            assert there.sum() > 2 * 50 * 50  # both seeds
    curve = [coloured(each[:240, 60:right], COLORS["curious"]) for each in shown[:5]]
    assert [end for _, end in curve] == sorted({end for _, end in curve})
    assert curve[-1][0] > 2 * curve[1][0]


@pytest.mark.slow
def test_processes_find_what_one_finds(trial, tmp_path):
    shown = []
    found = trials.run_trials([3, 4], QUICK, tmp_path, shown.append, processes=2)
    assert [each.seed for each in found] == [3, 4]
    assert shown[-1] == 2 * QUICK.all_updates
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curious", "uniform"]
    for name, branch in trial.branches.items():
        assert found[0].branches[name].errors == pytest.approx(branch.errors, abs=1e-3)


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    opened = []
    monkeypatch.setattr(demo.webbrowser, "open", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    page = tmp_path / "a" / "page.html"
    command = ["demo", "--quick", "--seeds", "1", "--seed", "3", "--out", str(page)]
    gif = tmp_path / "b" / "video.gif"
    assert cli.main([*command, "--no-open", "--film", str(gif)]) == 0  # the name of before
    said, noted = capsys.readouterr()
    assert noted == "curious: --film is now --video\n"
    assert f"video: {gif}" in said
    with Image.open(gif) as moving:
        assert moving.n_frames == 1 + QUICK.updates // QUICK.test_every
    assert f"page: {page}" in said
    assert "seed 3" in said
    assert f"{QUICK.all_updates} of {QUICK.all_updates} updates" in said
    assert page.read_text().startswith("<!doctype html>")
    assert opened == []
    assert cli.main(command) == 0
    assert opened == [page.as_uri()]
    opened.clear()
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert cli.main(command) == 0
    assert opened == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["--seed", "-1"], "--seed must be at least 0, got -1"),
        (["--video", "a.mp4"], "--video is written as .gif, got 'a.mp4'"),
    ],
)
def test_what_cannot_be_is_refused(wrong, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["demo", "--quick", *wrong])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.skipif(find() is None, reason="no Chromium here; set CHROMIUM to where it is")
@pytest.mark.parametrize("width", [360, 1440])
def test_in_a_browser(trial, replay, tmp_path, width):
    page = tmp_path / "demo.html"
    page.write_text(make_page([trial], QUICK, replay, 1, 90))
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page, width=width)
        assert browser.complaints() == []
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.querySelectorAll('.explorer').length") == 2
        shown = "document.querySelector('.explorer dl').textContent"
        assert "ball" in browser.run(shown)
        browser.run("document.querySelector('.explorer .line').focus()")
        browser.key("Home")
        assert "empty" in browser.run(shown)
        ids = json.loads(
            browser.run("JSON.stringify([...document.querySelectorAll('[id]')].map(e => e.id))")
        )
        assert len(ids) == len(set(ids))
    finally:
        browser.close()
