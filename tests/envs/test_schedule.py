import json

import pytest

from curious_replay.envs.schedule import PhaseClock, Schedule

ASSAY = Schedule(((0, "empty"), (500_000, "ball"), (1_500_000, "empty")))


@pytest.mark.parametrize(
    ("frame", "phase"),
    [
        (0, "empty"),
        (499_999, "empty"),
        (500_000, "ball"),
        (1_499_999, "ball"),
        (1_500_000, "empty"),
        (10**9, "empty"),
    ],
)
def test_a_phase_begins_exactly_at_its_frame(frame, phase):
    assert ASSAY.at(frame) == phase


def test_phases_are_listed_once_in_order():
    assert ASSAY.phases == ("empty", "ball")


def test_a_schedule_can_be_read_from_a_configuration():
    assert Schedule.of(json.loads('[[0, "empty"], [500000, "ball"], [1500000, "empty"]]')) == ASSAY
    assert Schedule.of(ASSAY) is ASSAY


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((), "begins with frame 0"),
        (((5, "a"),), "begins with frame 0"),
        (((0, "a"), (10, "b"), (10, "a")), "must increase"),
        (((0, "a"), (10, "b"), (3, "a")), "must increase"),
    ],
)
def test_a_malformed_schedule_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Schedule(changes)


def test_frames_count_over_all_parallel_environments():
    clock = PhaseClock(Schedule(((0, "a"), (8, "b"))), known=("a", "b"), parallel=4)
    seen = []
    for _ in range(3):
        seen.append(clock.phase)
        clock.advance()
    assert seen == ["a", "a", "b"]
    assert clock.frame == 12


def test_a_driver_may_set_the_total_number_of_frames():
    clock = PhaseClock(ASSAY, known=("empty", "ball"))
    clock.set_frame(500_000)
    assert clock.phase == "ball"
    with pytest.raises(ValueError, match="count from 0"):
        clock.set_frame(-1)


def test_a_forced_phase_wins_until_it_is_lifted():
    clock = PhaseClock(ASSAY, known=("empty", "ball"), phase="ball")
    assert clock.phase == "ball"
    clock.force(None)
    assert clock.phase == "empty"


def test_an_unknown_phase_is_refused_and_the_known_ones_are_named():
    with pytest.raises(ValueError, match=r"unknown phase 'bal', .*\['empty', 'ball'\]"):
        PhaseClock(ASSAY, known=("empty", "ball")).force("bal")
    with pytest.raises(ValueError, match="unknown phase 'ball'"):
        PhaseClock(ASSAY, known=("empty",))
    with pytest.raises(ValueError, match="at least 1"):
        PhaseClock(ASSAY, known=("empty", "ball"), parallel=0)


def test_the_saved_clock_goes_on_where_it_stood():
    clock = PhaseClock(ASSAY, known=("empty", "ball"))
    clock.set_frame(499_999)
    clock.force("ball")
    state = json.loads(json.dumps(clock.get_state()))
    other = PhaseClock(ASSAY, known=("empty", "ball"))
    other.set_state(state)
    assert (other.frame, other.phase) == (499_999, "ball")
    other.force(None)
    other.advance()
    assert other.phase == "ball"
    assert other.frame == 500_000
