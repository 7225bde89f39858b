"""Forks with another rule: warm priorities, and all else the same up to the first sample."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.fake_agent import FakeAgent
from helpers.runs import config, lines, run

from curious_replay.replay import ReplayBuffer
from curious_replay.run import fork, load_config
from curious_replay.run.loop.learner import Learner
from curious_replay.run.record import checkpoint_files
from curious_replay.run.record.checkpoint import Checkpoints
from curious_replay.run.record.files import read_lines
from curious_replay.run.settings.replay_config import REPLAYS

OLD = Path(__file__).parent / "saves"


def settings(rule, **train):
    return config(
        "own_envs:Turns", rule, train={"steps": 120, "save_every": 40, **train},
        record={"keep_at": (45,)},
    )  # fmt: skip


def saved(folder, step=None):
    return checkpoint_files.read(Checkpoints(folder / "checkpoints").at(step))


def replay_of(folder, step=None, **kwargs):
    path = Checkpoints(folder / "checkpoints").at(step)
    return ReplayBuffer.load(path / "replay", **kwargs)


@pytest.fixture(scope="module")
def parents(tmp_path_factory):
    place = tmp_path_factory.mktemp("rules")
    for rule in ("uniform", "td+adversarial"):
        run(settings(rule), place / rule)
    return place


@pytest.mark.parametrize("parent", ["uniform", "td+adversarial"])
@pytest.mark.parametrize("replay", REPLAYS)
def test_priorities_are_warm(replay, parent, parents, tmp_path):
    made = fork(parents / parent, logdir=tmp_path / "fork", replay=replay, at=45)
    begun, before = replay_of(tmp_path / "fork"), replay_of(parents / parent, 45)
    ids = before.ids()
    assert begun.rule == made.replay.rule()
    assert np.array_equal(begun.ids(), ids)
    assert np.array_equal(begun.visits(ids), before.visits(ids))
    assert begun.rng.bit_generator.state == before.rng.bit_generator.state
    for name in ("vector", "action", "reward", "is_first"):
        assert np.array_equal(begun.read(ids, name), before.read(ids, name))
    before.rule = made.replay.rule()
    for part in range(len(before.sampler.parts)):
        assert np.array_equal(begun.priorities(ids, part), before.priorities(ids, part))
    if replay not in ("uniform", parent):
        assert len(np.unique(begun.priorities(ids))) > 5
    assert run(made, tmp_path / "fork", resume=True).finished
    assert saved(tmp_path / "fork").step == 120


def test_nothing_differs_before_the_first_sample(parents, tmp_path):
    made = fork(parents / "uniform", logdir=tmp_path / "fork", replay="curious", at=45)
    run(made, tmp_path / "fork", resume=True)
    for name in ("metrics.jsonl", "episodes.jsonl"):
        one = (parents / "uniform" / name).read_text().splitlines()
        other = (tmp_path / "fork" / name).read_text().splitlines()
        until = sum(line["step"] <= 45 for line in read_lines(parents / "uniform" / name))
        assert one[:until] == other[:until]
        assert 0 < until < len(one)
    assert lines(tmp_path / "fork") != lines(parents / "uniform")
    first = replay_of(parents / "uniform", 45).windows.next_ids[0]
    one, other = replay_of(parents / "uniform"), replay_of(tmp_path / "fork")
    both = [each.read(np.arange(first - 5, first + 20), "action") for each in (one, other)]
    same = np.all(both[0] == both[1], axis=-1)
    assert same[:6].all()  # also of the first step, which was chosen before anything was learned
    assert not same[7:].all()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that ended between two updates of a step: the next one is of what is stored."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    real, calls = Learner.update, iter(range(10**6))

    def update(self):
        real(self)
        if next(calls) == 98:
            os.kill(os.getpid(), 15)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Learner, "update", update)
        run(settings("uniform", ratio=40.0), folder)
    assert saved(folder).state["owed"] > 0
    return folder


CHANGES = {
    "nothing": {},
    "storage": {"replay.storage": "disk"},
    "the ratio": {"train.ratio": 8.0},
    "repeats": {"replay.repeats": False},
}


@pytest.mark.parametrize("replay", ["uniform", "curious", "balanced"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_first_batch_is_drawn_by_the_rule_of_the_fork(
    change, replay, stopped, tmp_path, monkeypatch
):
    """Of the old rule, it was drawn ahead: it is kept only where nothing else draws."""
    more = CHANGES[change]
    made = fork(stopped, logdir=tmp_path / "fork", replay=replay, settings=more)
    ahead, begun = saved(stopped).state["learner"]["next"], saved(tmp_path / "fork").state
    kept = replay == "uniform" and change != "repeats"
    assert (begun["learner"]["next"] is not None) == kept
    expected = replay_of(stopped, rule=made.replay.rule())
    expected.repeats = made.replay.repeats
    wanted = ahead["ids"] if kept else expected.sample(2, 4).ids
    real, seen = FakeAgent.update, []

    def update(self, batch, unread):
        seen.append(batch.ids)
        return real(self, batch)

    monkeypatch.setattr(FakeAgent, "update", update)
    run(made, tmp_path / "fork", resume=True)
    assert np.array_equal(seen[0], wanted)
    assert replay_of(tmp_path / "fork").repeats == made.replay.repeats


def test_other_settings_of_a_rule_are_another_rule(parents, tmp_path):
    fork(parents / "uniform", logdir=tmp_path / "one", replay="curious", at=45)
    run(load_config(tmp_path / "one"), tmp_path / "one", resume=True)
    more = {"replay.beta": 0.3, "train.steps": 130}
    made = fork(tmp_path / "one", logdir=tmp_path / "two", settings=more)
    assert (
        replay_of(tmp_path / "two").rule == made.replay.rule() != replay_of(tmp_path / "one").rule
    )
    assert saved(tmp_path / "two").state["learner"]["next"] is None
    assert run(made, tmp_path / "two", resume=True).finished


def test_a_rule_and_back_again_is_warm_too(parents, tmp_path):
    """What was judged by another rule meanwhile is not lost: visits and signals are kept."""
    fork(parents / "td+adversarial", logdir=tmp_path / "away", replay="uniform", at=45)
    back = fork(tmp_path / "away", logdir=tmp_path / "back", replay="td+adversarial")
    one, other = replay_of(parents / "td+adversarial", 45), replay_of(tmp_path / "back")
    for part in (0, 1):
        assert np.array_equal(one.priorities(one.ids(), part), other.priorities(one.ids(), part))
    assert run(back, tmp_path / "back", resume=True).finished


class TestRunsOfTheFirstVersion:
    """Without kept checkpoints, kept signals and what settings came later."""

    @pytest.fixture
    def old(self, tmp_path):
        shutil.copytree(OLD / "first", tmp_path / "old")
        return tmp_path / "old"

    def test_they_are_resumed(self, old):
        before = (old / "metrics.jsonl").read_bytes()
        made = load_config(old)
        assert made.replay.repeats and made.record.keep_at == ()
        more = config("own_envs:Saves", train={"steps": 80, "save_every": 30},
                      replay={"capacity": 100}, record={"snapshot_every": 20})  # fmt: skip
        assert run(more, old, resume=True).finished
        assert (old / "metrics.jsonl").read_bytes().startswith(before)

    def test_they_are_forked_with_cold_priorities(self, old, tmp_path):
        with pytest.warns(UserWarning, match="kept no signals: .*p_max until they are trained on"):
            made = fork(old, logdir=tmp_path / "td", replay="td", settings={"train.steps": 80})
        begun = replay_of(tmp_path / "td")
        drawable = begun.priorities(begun.ids())
        assert {*drawable[drawable > 0]} == {begun.rule.p_max}
        assert begun.visits(begun.ids()).any()
        assert run(made, tmp_path / "td", resume=True).finished
        made = fork(old, logdir=tmp_path / "count", replay="count", settings={"train.steps": 80})
        begun = replay_of(tmp_path / "count")
        assert len(np.unique(begun.priorities(begun.ids()))) > 4  # visits were kept
        made = fork(old, logdir=tmp_path / "same", settings={"train.steps": 80})
        assert run(made, tmp_path / "same", resume=True).finished
