"""What forks share: found from what they say of themselves, wherever their folders are."""

import pytest
from helpers.folders import counters, write_run

from curious_replay.analysis import forks, load


class Family:
    """Run folders by name, each perhaps a fork of another at a step; frames are two for a step."""

    def __init__(self, place):
        self.place, self.metas = place, {}

    def add(self, name, parent=None, at=0, steps=100, seed=0, replay="uniform", known=True):
        self.metas[name] = {"seed": seed, "resumes": []}
        if known:  # runs of earlier versions have no id
            self.metas[name]["id"] = f"id-{name}"
        if parent is not None:
            self.metas[name]["parent"] = {
                "id": self.metas[parent].get("id"), "folder": str(self.place / parent), "step": at,
                "frame": 2 * at, "checkpoint": f"000003-step-{at}", "checksum": "0123abcd",
                "parent": self.metas[parent].get("parent"),
            }  # fmt: skip
        lines = [{**counters(step, 2), "return": 1.0} for step in range(10, steps + 1, 10)]
        write_run(self.place / name, metrics=lines, episodes=lines, seed=seed, replay=replay,
                  meta=self.metas[name])  # fmt: skip
        return self

    def load(self, *names):
        return [load.load_run(self.place / name) for name in names or self.metas]


def parts(found):
    return {part.run.name: part.begin for part in found}


@pytest.fixture
def family(tmp_path):
    made = Family(tmp_path)
    made.add("trunk", steps=40).add("a", "trunk", 40).add("b", "trunk", 40)
    made.add("c", "b", 70, replay="curious").add("alone").add("early", "trunk", 20)
    return made


def test_runs_are_one_up_to_their_fork(family):
    trunk, a, b, c, alone, early = family.load()
    pairs = [
        (a, b, 80), (trunk, a, 80), (b, c, 140), (a, c, 80), (trunk, c, 80), (early, c, 40),
        (early, a, 40), (trunk, early, 40), (alone, a, 0), (alone, trunk, 0),
    ]  # fmt: skip
    for first, second, frame in pairs:
        assert forks.shared(first, second) == frame
        assert forks.shared(second, first) == frame


def test_each_trunk_is_there_once(family):
    assert parts(forks.parts(family.load("a", "b"))) == {"a": 80, "b": 80}
    assert list(parts(forks.trunks(family.load("a", "b"))).values()) == [80]
    assert parts(forks.parts(family.load("b", "c"))) == {"b": 140, "c": 140}
    assert list(parts(forks.trunks(family.load("b", "c"))).values()) == [140]
    assert parts(forks.parts(family.load("a", "c", "early"))) == {"a": 80, "c": 140, "early": 40}
    assert parts(forks.trunks(family.load("a", "c", "early"))) == {"c": 140}
    assert parts(forks.trunks(family.load("alone"))) == {}
    assert parts(forks.parts(family.load("alone", "a"))) == {"alone": 0, "a": 80}


def test_a_trunk_alone_tells_nothing_of_its_own(family):
    names = [run.name for run in forks.only_trunks(family.load())]
    assert names == ["trunk"]
    assert forks.only_trunks(family.load("trunk", "alone")) == []
    assert forks.only_trunks(family.load("b", "c")) == []  # b went on after c was forked


def test_seeds_are_independent_and_forks_of_one_are_not(tmp_path):
    made = Family(tmp_path)
    for seed in range(3):
        made.add(f"trunk-{seed}", steps=40, seed=seed)
        made.add(f"fork-{seed}", f"trunk-{seed}", 40, seed=seed)
    assert forks.not_independent(made.load("fork-0", "fork-1", "fork-2")) == []
    assert len(forks.trunks(made.load("fork-0", "fork-1", "fork-2"))) == 3
    made.add("again", "trunk-1", 40, seed=1)
    (found,) = forks.not_independent(made.load("fork-0", "fork-1", "fork-2", "again"))
    assert [run.name for run in found] == ["fork-1", "again"]


def test_folders_may_be_moved_and_parents_gone(family, tmp_path):
    (tmp_path / "a").rename(tmp_path / "moved")
    (tmp_path / "trunk").rename(tmp_path / "old trunk")
    moved, trunk, b = family.load("moved", "old trunk", "b")
    assert forks.shared(moved, b) == forks.shared(moved, trunk) == 80


def test_parents_of_earlier_versions_are_known_by_their_folder(tmp_path):
    made = Family(tmp_path).add("old", known=False).add("a", "old", 40).add("b", "old", 50)
    old, a, b = made.load()
    assert (forks.shared(old, a), forks.shared(old, b), forks.shared(a, b)) == (80, 100, 80)


def test_the_origin_in_words(family):
    trunk, c = family.load("trunk", "c")
    assert forks.origin(trunk) == ""
    assert forks.origin(c) == "b at step 70 (checkpoint 000003-step-70, checksum 0123abcd)"
    assert (trunk.forked_at, c.forked_at) == (0, 140)


@pytest.mark.parametrize(
    ("name", "value"),
    [("frame", "x"), ("frame", -1), ("step", 2**70), ("folder", 3), ("checksum", None), ("id", 5)],
)
def test_a_damaged_origin_is_named(name, value, tmp_path):
    made = Family(tmp_path).add("trunk").add("fork", "trunk", 40)
    meta = {**made.metas["fork"], "parent": {**made.metas["fork"]["parent"], name: value}}
    write_run(tmp_path / "bad", meta=meta)
    with pytest.raises(ValueError, match=f"meta.json, parent, {name}"):
        load.load_run(tmp_path / "bad")
    write_run(tmp_path / "worse", meta={"parent": "trunk"})
    with pytest.raises(ValueError, match=r"meta.json, parent must be"):
        load.load_run(tmp_path / "worse")


def test_the_hours_of_a_trunk_are_counted_once(tmp_path):
    made = Family(tmp_path).add("trunk", steps=40).add("fork", "trunk", 40)
    speed = '{{"frame": {0}, "step": {0}, "update": 0, "session": {1}, "steps_per_second": 0.01}}\n'
    (tmp_path / "trunk" / "speed.jsonl").write_text(speed.format(36, 1))
    (tmp_path / "fork" / "speed.jsonl").write_text(speed.format(76, 2) + speed.format(112, 2))
    trunk, fork = made.load()
    assert trunk.hours == pytest.approx(1.0)
    assert fork.hours == pytest.approx(2.0)
