"""Measures of explorers and of Crafter in miniature, on runs whose answers were worked by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from curious_replay.analysis import crafter as crafter_measures
from curious_replay.analysis import stored
from curious_replay.analysis.lines import Columns
from curious_replay.experiments.jobs import jobs
from curious_replay.experiments.ladder import Footing
from curious_replay.experiments.miniatures import crafter, rooms
from curious_replay.experiments.miniatures.shared import exploring
from curious_replay.experiments.miniatures.shared.policies import chooses, play


class Stored:
    """The steps of a run, one a frame: contacts at some of them, the object in view at some."""

    def __init__(self, steps, touched=(), seen=(), places=None):
        self.frame = np.arange(1, steps + 1)
        self._fields = {
            "log_contacts": np.isin(self.frame, touched).astype(int),
            "log_object_pixels": 9 * np.isin(self.frame, seen),
            "log_agent_position": np.zeros((steps, 2)) if places is None else np.array(places),
        }
        self.buffer = SimpleNamespace(fields=self._fields, time=self.frame - 1)

    def __len__(self):
        return len(self.frame)

    def has(self, name):
        return name in self._fields

    def field(self, name):
        return self._fields[name]


@pytest.fixture
def run(monkeypatch):
    """A function that makes a run of stored steps whose world changed at a frame."""

    def make(change=0, **steps):
        monkeypatch.setattr(stored, "newest", lambda run: Stored(**steps))
        return SimpleNamespace(first_change=change, seed=0)

    return make


def test_contacts_count_from_the_change_on(run):
    one = run(change=10, steps=20, touched=[4, 12, 13, 20])
    assert exploring.contacts().values([one]) == [3.0]


def test_the_object_is_in_view_for_a_share_of_the_steps_that_it_is_there(run):
    one = run(change=10, steps=20, seen=[2, 11, 12])
    assert exploring.in_view().values([one]) == [0.2]
    assert exploring.in_view(until=14).values([one]) == [0.5]


def test_who_stays_in_a_corner_is_found_out(run):
    ladder = {rung.name: rung for rung in rooms.APPEARS.ladder}
    roams = [(0, step % 10) for step in range(3000)]
    rests = [*roams[:800], *[(5, 5)] * 2200]
    (stays,) = (rung for name, rung in ladder.items() if name.startswith("fewest cells"))
    assert stays.values(Footing(None, [run(steps=3000, places=roams)])) == [1.0]
    assert stays.values(Footing(None, [run(steps=3000, places=rests)])) == [1 / 11]


def test_what_is_known_of_an_object_that_is_gone():
    def probes(errors):
        """A run whose probes have these errors, by frame."""
        rows = [(frame, ahead) for frame in errors for ahead in (3, 4)]
        values = {
            "frame": np.array([frame for frame, _ in rows]),
            "scene": np.ones(len(rows)),
            "ahead": np.array([ahead for _, ahead in rows]),
            "mse_object": np.array([errors[frame] + ahead - 3.5 for frame, ahead in rows]),
        }
        return SimpleNamespace(probes=Columns(values, len(rows)))

    told = probes({10_500: 9.0, 10_750: 1.0, 11_000: 3.0, 11_250: 8.0, 11_750: 4.0, 12_000: 6.0})
    assert rooms.ERROR_BEFORE.values([told]) == [2.0]
    assert rooms.ERROR_AT_END.values([told]) == [5.0]
    assert rooms.SOON_BEFORE.values([told]) == [1.5]
    assert rooms.SOON_AT_END.values([told]) == [4.5]


def test_crafter_is_learned_if_more_is_unlocked_than_by_chance():
    config = jobs(crafter.CRAFTER, "mini", 1)[0].config
    rows = play(config, chooses(17), None, 600, seed=3)
    chance = (rows["log_achievements"][rows["last"]] > 0).sum(1)
    assert len(chance) and chance.mean() > 0
    lengths = [100] * 8
    played = {
        name: np.zeros(8) for name in (f"achievement/{each}" for each in crafter_measures.SPECTRUM)
    }
    played["achievement/eat_cow"][-2:] = 1  # in the last quarter
    played["achievement/wake_up"][:] = 3
    episodes = Columns({"length": np.array(lengths), **played}, 8)
    run = SimpleNamespace(played=lambda: episodes, steps_done=600, seed=3)
    (rung,) = crafter.CRAFTER.ladder
    assert rung.values(Footing(config, [run])) == [pytest.approx(2 / chance.mean())]
    values = {m.name: m.values for m in crafter.CRAFTER.measures}
    assert values["achievements unlocked in an episode"]([run]) == [1.25]
    assert values["different achievements unlocked"]([run]) == [2.0]
