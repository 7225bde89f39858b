from fractions import Fraction

import pytest

from curious_replay.run.loop.clock import Every, Ratio, Reached


def test_ratio_gives_the_published_numbers_of_updates():
    ratio = Ratio(512, 1024)
    assert [ratio(step) for step in range(100, 110)] == [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    ratio = Ratio(512, 1024)
    assert sum(ratio(step) for step in range(100, 1100)) == 500
    ratio = Ratio(512, 1024)
    assert [ratio(step) for step in range(100, 120, 4)] == [1, 2, 2, 2, 2]


@pytest.mark.parametrize("replayed", [512, 32, 0.1, 100, 7.3, 1e4])
def test_ratio_is_exact_after_any_number_of_steps(replayed):
    ratio = Ratio(replayed, 1024)
    done = 0
    for step in range(50, 200_000, 3):
        done += ratio(step)
        due = 1 + int((step - 50) * Fraction(str(replayed)) / 1024)
        assert done == due


def test_no_ratio_is_no_training():
    ratio = Ratio(0, 1024)
    assert [ratio(step) for step in range(5)] == [0] * 5


def test_ratio_goes_on_from_its_state():
    one, two = Ratio(3, 10), Ratio(3, 10)
    for step in range(17):
        one(step)
    two.set_state(one.get_state())
    assert [one(s) for s in range(17, 60)] == [two(s) for s in range(17, 60)]


def fires(every, steps):
    fired = []
    for step in steps:
        if every.due(step):
            every.done(step)
            fired.append(step)
    return fired


def test_every_fires_at_the_published_steps():
    assert fires(Every(5), range(1, 17)) == [1, 6, 11, 16]
    assert fires(Every(5, last=0), range(1, 17)) == [5, 10, 15]
    assert fires(Every(0, last=0), range(1, 17)) == []


def test_every_keeps_its_beat_when_steps_leap():
    assert fires(Every(10, last=0), range(0, 64, 4)) == [12, 20, 32, 40, 52, 60]
    assert fires(Every(10, last=0), [35, 39, 40]) == [35, 40]


def test_what_was_not_done_stays_due():
    every = Every(5, last=0)
    assert every.due(5)
    assert every.due(6)
    every.done(6)
    assert not every.due(9)
    assert every.due(10)


def test_first_updates_are_due_at_once_and_the_rest_as_ever():
    ratio, plain = Ratio(100, 500, first=100), Ratio(100, 500)
    assert (ratio(1000), plain(1000)) == (100, 1)
    steps = range(1001, 1100)
    assert [ratio(step) for step in steps] == [plain(step) for step in steps]
    again = Ratio(100, 500, first=100)
    again.set_state(ratio.get_state())
    assert [again(step) for step in (1100, 1105)] == [plain(step) for step in (1100, 1105)]


def test_a_step_is_reached_once():
    reached = Reached((50, 20, 21))
    assert [reached(step) for step in (4, 19, 23, 23, 49, 90)] == [
        (), (), (20, 21), (), (), (50,)
    ]  # fmt: skip
    assert reached.last == 90
    assert Reached((20, 50), last=20)(60) == (50,)
