"""Saves are complete, atomic, incremental, and refused when damaged."""

import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from helpers.processes import started
from helpers.streams import fill, step

from curious_replay.replay import (
    Adversarial,
    Curious,
    LoadError,
    Mixture,
    ReplayBuffer,
    Rule,
    TemporalDifference,
)

TESTS = Path(__file__).parents[1]


def train(buffer, rounds, seed, start):
    """Add, sample and update; returns all that was sampled."""
    rng = np.random.default_rng(seed)
    seen = []
    for t in range(start, start + rounds):
        buffer.add(step(t, buffer.num_envs, size=(20,)))
        batch = buffer.sample(4)
        signals = {name: rng.exponential(9, batch.ids.shape) for name in ("model", "td")}
        buffer.update(batch.ids, signals)
        seen.append([batch.ids, batch["number"][..., 0], batch["reward"]])
    return seen


RULES = [Curious(dialect="dv2"), Mixture(Adversarial(dialect="dv2"), TemporalDifference(), 0.4)]


@pytest.mark.parametrize("rule", RULES, ids=["curious", "mixture"])
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("window", ["last", "first"])
def test_a_loaded_buffer_goes_on_as_if_nothing_had_happened(rule, mapped, window, tmp_path):
    buffer = ReplayBuffer(
        900, 8, num_envs=3, rule=rule, window=window, cross_episodes=window == "last", seed=5,
        directory=tmp_path / "frames" if mapped else None,
    )  # fmt: skip
    fill(buffer, 100, size=(20,))
    train(buffer, 400, seed=1, start=100)  # round the ring, which holds 300
    buffer.save(tmp_path / "save")
    saved_stats = buffer.stats()
    expected = train(buffer, 1000, seed=2, start=500)  # writes over everything that was saved
    for directory in ("as saved", None, tmp_path / "elsewhere"):
        loaded = ReplayBuffer.load(tmp_path / "save", directory=directory)
        assert loaded.rule == rule
        assert {**loaded.stats(), "bytes": 0} == {**saved_stats, "bytes": 0}
        if directory != "as saved":
            wanted = None if directory is None else Path(directory)
            assert loaded.directory == wanted
        for one, two in zip(train(loaded, 1000, seed=2, start=500), expected, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
        assert loaded.stats() == buffer.stats() or directory != "as saved"


@pytest.mark.parametrize("mapped", [False, True])
def test_an_empty_or_cleared_buffer_can_be_saved(mapped, tmp_path):
    buffer = ReplayBuffer(100, 4, directory=tmp_path / "frames" if mapped else None)
    buffer.save(tmp_path / "save")
    assert len(ReplayBuffer.load(tmp_path / "save")) == 0
    fill(buffer, 30)
    buffer.clear()
    buffer.save(tmp_path / "save")
    loaded = ReplayBuffer.load(tmp_path / "save")
    assert len(loaded) == 0
    assert loaded.add(step(0)).tolist() == [30]


def test_two_saves_of_different_age_both_stay_loadable(tmp_path):
    """The newer buffer goes on in files that the older save shares."""
    buffer = ReplayBuffer(200, 4, directory=tmp_path / "frames")
    fill(buffer, 30)
    buffer.save(tmp_path / "old")
    fill(buffer, 20, start=30)
    buffer.save(tmp_path / "new")
    branch = ReplayBuffer.load(tmp_path / "old")
    fill(branch, 100, start=1000)
    old, new = (ReplayBuffer.load(tmp_path / name) for name in ("old", "new"))
    assert old.read(old.ids(), "number").tolist() == list(range(30))
    assert new.read(new.ids(), "number").tolist() == list(range(50))
    assert branch.read(branch.ids(), "number").tolist() == [*range(30), *range(1000, 1100)]


def test_a_branch_may_save_over_the_save_it_did_not_come_from(tmp_path):
    buffer = ReplayBuffer(200, 4)
    fill(buffer, 30)
    buffer.save(tmp_path / "old")
    buffer.save(tmp_path / "new")
    fill(buffer, 20, start=30)
    buffer.save(tmp_path / "new")
    branch = ReplayBuffer.load(tmp_path / "old")
    fill(branch, 10, start=1000)
    branch.save(tmp_path / "new")
    loaded = ReplayBuffer.load(tmp_path / "new")
    assert loaded.read(loaded.ids(), "number").tolist() == [*range(30), *range(1000, 1010)]


def inodes(folder):
    return {p.name: p.stat().st_ino for p in folder.rglob("chunk-*.bin")}


def test_a_mapped_buffer_is_saved_without_copying_frames(tmp_path):
    buffer = ReplayBuffer(1000, 4, directory=tmp_path / "frames")
    fill(buffer, 300)
    buffer.save(tmp_path / "save")
    assert inodes(tmp_path / "save") == inodes(tmp_path / "frames")


def test_saving_again_writes_only_what_is_new(tmp_path):
    buffer = ReplayBuffer(1000, 4)
    fill(buffer, 200)
    buffer.save(tmp_path / "save")
    first = inodes(tmp_path / "save")
    fill(buffer, 200, start=200)
    buffer.save(tmp_path / "save")
    second = inodes(tmp_path / "save")
    assert {name: second[name] for name in first} == first
    assert len(second) > len(first)
    assert len(list((tmp_path / "save").glob("save-*"))) == 1  # the one before is removed
    loaded = ReplayBuffer.load(tmp_path / "save")
    assert loaded.read(loaded.ids(), "number").tolist() == list(range(400))


@pytest.mark.parametrize("mapped", [False, True])
def test_saves_where_links_do_not_work(mapped, tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    buffer = ReplayBuffer(1000, 4, directory=tmp_path / "frames" if mapped else None)
    for start in (0, 200):
        fill(buffer, 200, start=start)
        buffer.save(tmp_path / "save")
    loaded = ReplayBuffer.load(tmp_path / "save")
    assert loaded.read(loaded.ids(), "number").tolist() == list(range(400))


def test_saves_on_another_file_system_also_write_only_what_is_new(tmp_path, monkeypatch):
    link = os.link

    def refuse_scratch(source, target):
        if "frames" in str(source):
            raise OSError(18, "Invalid cross-device link")
        link(source, target)

    monkeypatch.setattr(os, "link", refuse_scratch)
    buffer = ReplayBuffer(1000, 4, directory=tmp_path / "frames")
    fill(buffer, 200)
    buffer.save(tmp_path / "save")
    first = inodes(tmp_path / "save")
    fill(buffer, 30, start=200)
    buffer.save(tmp_path / "save")
    assert inodes(tmp_path / "save").items() >= first.items()
    loaded = ReplayBuffer.load(tmp_path / "save", directory=None)
    assert loaded.read(loaded.ids(), "number").tolist() == list(range(230))


def test_what_else_is_in_the_folder_is_left_alone(tmp_path):
    buffer = ReplayBuffer(100, 4)
    fill(buffer, 10)
    buffer.save(tmp_path / "save-best")
    (tmp_path / "save-notes.txt").write_text("mine")
    for _ in range(2):
        buffer.save(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["replay.json", "save-000002", "save-best", "save-notes.txt"]
    assert len(ReplayBuffer.load(tmp_path / "save-best")) == 10


def test_numpy_numbers_as_settings_are_saved(tmp_path):
    rule = Mixture(Curious(c=np.float32(100)), TemporalDifference(), np.float32(0.25))
    buffer = ReplayBuffer(np.int64(100), np.int32(4), rule=rule, cross_episodes=np.False_)
    buffer.save(tmp_path)
    loaded = ReplayBuffer.load(tmp_path)
    assert (loaded.capacity, loaded.length, loaded.cross_episodes) == (100, 4, False)
    assert loaded.rule == rule


def test_the_files_of_a_buffer_go_with_it(tmp_path):
    buffer = ReplayBuffer(100, 4, directory=tmp_path)
    fill(buffer, 50)
    assert list(tmp_path.iterdir())
    del buffer
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_many_environments_in_a_folder_need_not_many_open_files(tmp_path):
    """With a limit that may be raised as far as a system usually allows."""
    code = f"""
import resource, sys
sys.path.insert(0, {str(TESTS)!r})
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 1024))
from helpers.streams import fill
from curious_replay.replay import ReplayBuffer
buffer = ReplayBuffer(128 * 200, 4, num_envs=128, directory={str(tmp_path / "a")!r})
fill(buffer, 500)
buffer.save({str(tmp_path / "save")!r})
loaded = ReplayBuffer.load({str(tmp_path / "save")!r}, directory={str(tmp_path / "b")!r})
assert len(loaded) == 128 * 200
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_a_dead_process_left_is_removed_and_what_lives_is_not(tmp_path):
    living = ReplayBuffer(100, 4, directory=tmp_path)
    fill(living, 50)
    code = f"""
import os, sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.streams import fill
from curious_replay.replay import ReplayBuffer
buffer = ReplayBuffer(100, 4, directory={str(tmp_path)!r})
fill(buffer, 50)
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(tmp_path.glob("buffer-*"))) == 2
    new = ReplayBuffer(100, 4, directory=tmp_path)
    assert len(list(tmp_path.glob("buffer-*"))) == 2
    fill(new, 10)
    assert living.read(living.ids(), "number").tolist() == list(range(50))


def test_what_a_process_left_that_died_while_it_began_or_ended_is_removed(tmp_path):
    names = {"buffer-begun": [], "buffer-half-removed": ["lock"], "buffer-foreign": ["mine"]}
    for name, files in names.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
    buffer = ReplayBuffer(100, 4, directory=tmp_path)
    fill(buffer, 10)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"buffer-foreign", buffer._scratch.path.name}


def test_the_lock_of_a_buffer_is_the_last_of_it_to_go(tmp_path, monkeypatch):
    buffer = ReplayBuffer(100, 4, directory=tmp_path)
    fill(buffer, 10)
    removed = []
    real = Path.unlink

    def unlink(self, missing_ok=False):
        removed.append(self.name)
        real(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    buffer._scratch._end()
    assert len(removed) > 1 and removed[-1] == "lock"
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True, kw_only=True)
class Doubled(Rule):
    """A rule of one's own."""

    signal: str = "model"
    factor: float = 2.0

    def __call__(self, visits, signals):
        return self.factor * signals["model"]


def test_a_rule_of_ones_own_is_passed_again(tmp_path):
    buffer = ReplayBuffer(10, 1, rule=Doubled(factor=3.0))
    ids = fill(buffer, 3).ravel()
    buffer.update(ids, {"model": [1.0, 2.0, 3.0]})
    assert buffer.priorities(ids).tolist() == [3.0, 6.0, 9.0]
    buffer.save(tmp_path)
    with pytest.raises(ValueError, match=r"Doubled' is not one of this package: .*load\(rule="):
        ReplayBuffer.load(tmp_path)
    loaded = ReplayBuffer.load(tmp_path, rule=Doubled(factor=3.0))
    assert loaded.priorities(ids).tolist() == [3.0, 6.0, 9.0]
    other = ReplayBuffer.load(tmp_path, rule=Doubled(factor=2.0))
    assert other.priorities(ids).tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(ValueError, match="reads the signal 'td', which this buffer was never told"):
        ReplayBuffer.load(tmp_path, rule=RULES[1])


def test_a_rule_that_only_has_the_name_of_ours_is_not_taken_for_it(tmp_path):
    other = type("Curious", (Curious,), {"__call__": lambda self, visits, signals: visits + 1.0})
    ReplayBuffer(10, 1, rule=other()).save(tmp_path)
    with pytest.raises(ValueError, match="Curious' is not one of this package"):
        ReplayBuffer.load(tmp_path)


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x10
    path.write_bytes(content)


DAMAGE = [
    ("replay.json", Path.unlink, "no replay.json"),
    ("replay.json", cut, "is damaged or no JSON"),
    ("replay.json", lambda p: p.write_text('{"a": 1}'), "damaged or not a saved replay buffer"),
    ("save-*/state.npz", Path.unlink, "state.npz is missing"),
    ("save-*/state.npz", cut, "state.npz is damaged"),
    ("save-*/state.npz", flip, "state.npz is damaged"),
    ("save-*/chunk-0000-00000000.bin", Path.unlink, "chunk-0000-00000000.bin is missing"),
    ("save-*/chunk-0000-00000000.bin", cut, "bytes instead of"),
    ("save-*/chunk-0000-00000000.bin", flip, "rows of 'number' have changed"),
]


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGE)
@pytest.mark.parametrize("directory", [False, True])
def test_a_damaged_save_is_refused(name, damage, message, directory, tmp_path):
    buffer = ReplayBuffer(200, 4)
    fill(buffer, 64, size=(9,))
    buffer.save(tmp_path / "save")
    (path,) = (tmp_path / "save").glob(name)
    damage(path)
    with pytest.raises(LoadError, match=message):
        ReplayBuffer.load(tmp_path / "save", directory=tmp_path / "f" if directory else None)
    if damage is not flip:  # which is not looked for in rows that are already saved
        buffer.save(tmp_path / "save")  # a damaged save does not stand in the way of a new one
        assert len(ReplayBuffer.load(tmp_path / "save")) == 64


def test_changed_or_newer_manifests_are_refused(tmp_path):
    buffer = ReplayBuffer(200, 4)
    buffer.save(tmp_path)
    path = tmp_path / "replay.json"
    whole = json.loads(path.read_text())
    whole["content"]["settings"]["length"] = 5
    path.write_text(json.dumps(whole))
    with pytest.raises(LoadError, match="checksum does not match"):
        ReplayBuffer.load(tmp_path)
    whole["content"]["format"] = "curious-replay buffer 99"
    path.write_text(json.dumps(whole))
    for use in (lambda: ReplayBuffer.load(tmp_path), lambda: buffer.save(tmp_path)):
        with pytest.raises(LoadError, match="has the format 'curious-replay buffer 99'; this ver"):
            use()
    assert (tmp_path / "save-000001").exists()


# Starts a process that does little but save for each line it reads. What takes longest, to import
# and to load compiled code, is done once.
SAVER = """
import os, sys
sys.path.insert(0, sys.argv[3])
import numpy as np
from helpers.streams import fill
from curious_replay.replay import ReplayBuffer
folder, place = sys.argv[1], sys.argv[2] or None

def say(word, number):  # in one write, which a kill cannot cut where Python does not buffer
    sys.stdout.write(f"{word} {number}\\n")
    sys.stdout.flush()

def fill_and_update(buffer, time):
    ids = fill(buffer, 40, start=time, size=(500,))
    buffer.update(ids, {"model": ids.astype(float)})

def save_for_ever():
    try:
        buffer = ReplayBuffer.load(folder)
    except ValueError:
        buffer = ReplayBuffer(3000, 4, num_envs=2, directory=place)
    time = int(buffer.windows.head[0])
    while True:
        fill_and_update(buffer, time)
        time += 40
        buffer.save(folder)
        say("saved", time)

fill_and_update(ReplayBuffer(100, 4, num_envs=2), 0)
for _ in sys.stdin:
    process = os.fork()
    if process == 0:
        save_for_ever()
    say("started", process)
    _, status = os.waitpid(process, 0)
    say("ended", os.waitstatus_to_exitcode(status))
"""


def check_whole(save, saved):
    """What is loaded is all of a save, of time `saved` or later."""
    loaded = ReplayBuffer.load(save, directory=None)
    head = int(loaded.windows.head[0])
    assert head >= saved
    assert head % 40 == 0  # all of a save or nothing of it
    ids = loaded.ids()
    assert len(ids) == 2 * min(head, 1500)
    numbers = loaded.read(ids, "number")
    assert (numbers == (ids // 2)[:, None]).all()
    assert (loaded.visits(ids) == 1).all()
    expected = 1e4 + (ids + 0.01) ** 0.7
    drawable = loaded.priorities(ids) > 0
    np.testing.assert_allclose(loaded.priorities(ids)[drawable], expected[drawable])
    assert drawable.sum() == len(ids) - 2 * 3


@pytest.mark.slow
@pytest.mark.parametrize("mapped", [False, True])
def test_kills_during_save_leave_a_whole_buffer(mapped, tmp_path):
    """Two times twenty-five kills at random moments of a process that does little but save."""
    chance = random.Random(int(mapped))
    save, frames = tmp_path / "save", tmp_path / "frames"
    arguments = [str(save), str(frames) if mapped else "", str(TESTS)]
    killed_inside = 0
    with started(
        [sys.executable, "-c", SAVER, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        said = (line.split() for line in server.stdout)
        for _ in range(25):
            print("start", file=server.stdin, flush=True)
            words = {}
            while words.keys() != {"started", "saved"}:  # in any order; it may be saved twice
                words.update([next(said)])
            # One more save is there, and now comes a kill at any moment.
            time.sleep(chance.uniform(0.0, 0.15))
            os.kill(int(words["started"]), signal.SIGKILL)
            while "ended" not in words:
                words.update([next(said)])
            assert int(words["ended"]) == -signal.SIGKILL
            left = (save / ".part-replay.json").exists()
            killed_inside += left or len(list(save.glob("save-*"))) > 1
            check_whole(save, int(words["saved"]))
    assert killed_inside >= 5
    shutil.rmtree(tmp_path)
