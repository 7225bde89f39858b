"""Progress is right, stays in place, and costs nothing when called often."""

import io
import re

import pytest
from rich.console import Console

from curious_replay.run.record.progress import Progress, duration, number

VALUES = {"episode/return": 3.1, "loss/image": 98.234, "loss/kl": 1.5, "replay/steps": 120_345}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def make(terminal, width=100, height=40, **settings):
    file, clock = io.StringIO(), Clock()
    console = Console(
        file=file, force_terminal=terminal, width=width, height=height, color_system=None
    )
    return Progress(console, 1000, clock=clock, **settings), file, clock


def counters(step):
    return {"frame": 4 * step, "step": step, "update": step // 2}


def test_lines_come_every_so_many_seconds_where_there_is_no_terminal():
    progress, file, clock = make(terminal=False, width=40, every_seconds=10)
    with progress:
        for second in range(41):
            clock.now = second
            progress.show(counters(2 * second), VALUES)
    lines = file.getvalue().splitlines()
    assert len(lines) == 6, "at 0, 10, 20, 30, 40 seconds, and at the end"
    assert re.sub(" +", " ", lines[1]) == (
        " 2.0% frame 80 step 20 update 10 8.0 frames/s 0:08:10 left "
        "episode/return 3.100 loss/image 98.23 loss/kl 1.500 replay/steps 120,345"
    )
    assert "\x1b" not in file.getvalue()


def test_time_left_follows_recent_speed():
    progress, file, clock = make(terminal=False, every_seconds=1)
    with progress:
        step = 0
        for second in range(200):
            clock.now = second
            step += 4 if second < 100 else 1
            progress.show(counters(step), {})
    left = (1000 - step) / 1
    assert f"4.0 frames/s  {duration(left)} left" in file.getvalue().splitlines()[-1]


def test_a_resumed_run_does_not_count_what_was_done_before():
    progress, file, clock = make(terminal=False, every_seconds=1)
    with progress:
        for second in range(11):
            clock.now = second
            progress.show(counters(500 + second), {})
    assert "– frames/s  –:–– left" in file.getvalue().splitlines()[0]
    assert "0:08:10 left" in file.getvalue().splitlines()[-1]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_the_display_fits_and_keeps_its_layout(width):
    progress, _, clock = make(terminal=True, width=width, title="toy · dreamerv3 · curious")
    paper = Console(force_terminal=True, width=width, color_system="truecolor")

    def draw():
        with paper.capture() as capture:
            paper.print(progress._display())
        return re.sub("\x1b\\[[0-9;]*m", "", capture.get()).splitlines()

    with progress:
        progress.show(counters(1), VALUES)
        before = draw()
        for second in range(1, 30):
            clock.now = second
            progress.show(counters(30 * second), {"loss/kl": -1234.5e-9, "loss/image": 1e5})
        after = draw()
    assert all(len(line) == width for line in (*before, *after))
    for name in ("return", "image", "kl", "replay", "elapsed", "left"):
        places = [
            [(row, line.index(name)) for row, line in enumerate(drawn) if name in line]
            for drawn in (before, after)
        ]
        assert places[0] == places[1] != []
    assert before[1].rindex("━") == after[1].rindex("━"), "the bar keeps its length"
    assert "toy · dreamerv3 · curious" in after[0]
    assert any("-1.23e-06" in line for line in after)
    assert any("3.100" in line for line in after), "what is not told again stays"


def test_the_display_is_drawn_at_most_once_a_second_and_at_the_end():
    progress, file, clock = make(terminal=True)
    with progress:
        for hundredth in range(301):
            clock.now = hundredth / 100
            progress.show(counters(hundredth), VALUES)
        drawn = file.getvalue().count("elapsed")
        assert drawn == 4, "at 0, 1, 2 and 3 seconds"
    assert "step 300" in file.getvalue()[-3000:]


@pytest.mark.parametrize("terminal", [True, False])
def test_notes_are_printed_as_they_are(terminal):
    progress, file, _ = make(terminal, width=60)
    text = "saved [bold] to /a/folder/with/a/long/name/that/is/longer/than/the/terminal/is/wide"
    with progress:
        progress.show(counters(1), VALUES)
        progress.note(text)
    assert text in file.getvalue()


def test_nothing_is_drawn_before_there_is_something_to_show():
    progress, file, _ = make(terminal=False)
    with progress:
        pass
    assert not file.getvalue()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.0, "0"), (-3.0, "-3"), (1234567, "1,234,567"), (0.12345, "0.123"),
        (12.345, "12.35"), (123.456, "123.5"), (1234.5, "1,234.5"), (12345.6, "12,346"),
        (1.5e12, "1.50e+12"), (-2.5e-5, "-2.50e-05"), (float("nan"), "nan"),
        (float("inf"), "inf"), ("ball", "ball"),
    ],
)  # fmt: skip
def test_numbers_are_short(value, text):
    assert number(value) == text
    assert len(text) <= 11


def test_durations():
    assert [duration(s) for s in (0, 59.6, 3661, 90061, None)] == [
        "0:00:00", "0:01:00", "1:01:01", "1d 1:01:01", "–:––"
    ]  # fmt: skip
