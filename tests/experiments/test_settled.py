"""Whether a world model knew its world before it changed."""

from types import SimpleNamespace

import numpy as np
import pytest

from curious_replay.experiments.ladder import Footing, climb
from curious_replay.experiments.miniatures.shared.settled import SETTLED


def ratio(losses, first_change):
    """The rung of one run with a line every 10 frames."""
    frames = 10 * np.arange(1, 1 + len(losses))
    metrics = {"frame": frames, "model/loss": np.array(losses, float)}
    known = {"frames_done": int(frames[-1]), "first_change": first_change}
    run = SimpleNamespace(seed=0, metrics=metrics, **known)
    [result] = climb([SETTLED], Footing(None, [run]))
    return result.median, result.held


def test_a_loss_that_has_levelled_off_holds():
    assert ratio([9, 6, 4, 2, 2, 2, 2, 2], first_change=0) == (1, True)


def test_one_that_still_falls_does_not():
    assert ratio([9, 8, 7, 6, 6, 6, 3, 3], first_change=0) == (0.5, False)


def test_what_comes_after_the_change_does_not_count():
    losses = [9, 6, 4, 2, 2, 2, 2, 2, 8, 8, 8, 8]
    assert ratio(losses, first_change=80) == (1, True)
    assert ratio(losses, first_change=0)[0] == pytest.approx(8 / 4)


def test_too_few_lines_are_no_answer():
    assert ratio([2], first_change=0) == (None, False)
