"""Fields of stored steps that are written again, and what saves have of them."""

import numpy as np
import pytest
from helpers.streams import fill, step

from curious_replay.replay import ReplayBuffer


def filled(count=90, **options):
    buffer = ReplayBuffer(160, 4, num_envs=2, **options)
    for t in range(count):
        state = {"deter": np.zeros((2, 3), np.float32), "stoch": np.zeros((2, 2), np.float16)}
        buffer.add(step(t, 2) | {"state": state})
    return buffer


def test_batches_have_what_was_written():
    buffer = filled()
    batch = buffer.sample(8)
    deter = np.random.default_rng(0).random((8, 4, 3), np.float32)
    before = buffer.read(buffer.ids(), "number")
    buffer.write(batch.ids, {"state": {"deter": deter, "stoch": deter[..., :2].astype(float)}})
    found = buffer.read(batch.ids[-1], "state/deter")
    assert (found == deter[-1]).all()
    assert buffer.read(batch.ids, "state/stoch").dtype == np.float16
    assert (buffer.read(buffer.ids(), "number") == before).all()
    again = {int(i): d for i, d in zip(batch.ids.ravel(), deter.reshape(-1, 3), strict=True)}
    for ids, states in ((b.ids, b["state"]["deter"]) for b in [buffer.sample(8) for _ in range(9)]):
        for step_id, state in zip(ids.ravel().tolist(), states.reshape(-1, 3), strict=True):
            assert (state == again.get(step_id, np.zeros(3))).all()
    assert buffer.stats()["written"] == 32
    assert buffer.stats()["unwritten"] == 0


def test_steps_that_are_gone_are_counted_and_not_written():
    buffer = filled()
    old = buffer.ids()[:3]
    fill_more = [buffer.add({**step(t, 2), "state": zeros()}) for t in range(90, 170)]
    assert not buffer.stored(old).any()
    ids = np.concatenate([old, fill_more[-1]])
    buffer.write(ids, {"state": {"deter": np.ones((5, 3), np.float32)}})
    assert buffer.stats()["unwritten"] == 3
    assert buffer.stats()["written"] == 2
    assert buffer.read(buffer.ids(), "state/deter").sum() == 2 * 3


def zeros():
    return {"deter": np.zeros((2, 3), np.float32), "stoch": np.zeros((2, 2), np.float16)}


def test_tensors_are_written():
    buffer = filled(10)
    torch = pytest.importorskip("torch")
    ids = torch.tensor([4, 6])
    values = torch.ones(2, 3, dtype=torch.bfloat16, requires_grad=True)
    buffer.write(ids, {"state": {"deter": values * 2}})
    assert (buffer.read([4, 6], "state/deter") == 2).all()


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"is_last": np.ones(2, bool)}, ValueError, "'is_last' says what a window is"),
        ({"state": {"deter": np.ones((2, 4))}}, ValueError, r"'state/deter': expected.*\[2, 3\]"),
        ({"number": np.ones(2)}, ValueError, "'number': expected int64, got float64"),
        ({"deter": np.ones((2, 3))}, KeyError, "no field 'deter'"),
    ],
)
def test_what_does_not_fit_is_refused(fields, error, message):
    buffer = filled(10)
    before = [buffer.read(buffer.ids(), name) for name in ("is_last", "number", "state/deter")]
    with pytest.raises(error, match=message):
        buffer.write([4, 6], {"reward": np.ones(2, np.float32), **fields})
    after = [buffer.read(buffer.ids(), name) for name in ("is_last", "number", "state/deter")]
    assert all((a == b).all() for a, b in zip(before, after, strict=True))
    assert buffer.read([4], "reward") == 1.0  # what it was: nothing is written of all this
    with pytest.raises(ValueError, match="no step was added yet"):
        ReplayBuffer(10, 2).write([], {"x": []})


@pytest.mark.parametrize("mapped", [False, True])
def test_saves_stay_as_they_were_and_new_ones_have_what_was_written(mapped, tmp_path):
    buffer = filled(directory=tmp_path / "frames" if mapped else None)
    buffer.save(tmp_path / "old")
    ids, ones = buffer.ids()[10:20], np.ones((10, 3), np.float32)
    buffer.write(ids, {"state": {"deter": ones}})
    buffer.save(tmp_path / "new")
    buffer.save(tmp_path / "new")  # shares its files with the one before
    buffer.write(ids, {"state": {"deter": 2 * ones}})
    for folder, expected in (("old", 0), ("new", 1)):
        for directory in ("as saved", None):
            loaded = ReplayBuffer.load(tmp_path / folder, directory)
            assert (loaded.read(ids, "state/deter") == expected).all()
            loaded.write(ids, {"state": {"deter": 3 * ones}})  # a full chunk is linked, not copied
            assert (loaded.read(ids, "state/deter") == 3).all()
        assert (ReplayBuffer.load(tmp_path / folder).read(ids, "state/deter") == expected).all()
    assert (buffer.read(ids, "state/deter") == 2).all()
    buffer.save(tmp_path / "new")
    assert (ReplayBuffer.load(tmp_path / "new").read(ids, "state/deter") == 2).all()
    assert ReplayBuffer.load(tmp_path / "new").stats()["written"] == 20


def test_a_full_disk_leaves_the_buffer_and_its_saves_as_they_were(tmp_path, monkeypatch):
    buffer = filled(directory=tmp_path / "frames")
    buffer.save(tmp_path / "save")
    ids, ones = buffer.ids()[10:20], {"state": {"deter": np.ones((10, 3), np.float32)}}

    def full(source, target):
        target.write_bytes(b"half")
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("curious_replay.replay.storage.shutil.copyfile", full)
        with pytest.raises(OSError, match="No space left"):
            buffer.write(ids, ones)
    assert not [*tmp_path.rglob("*.new")]
    assert not buffer.read(ids, "state/deter").any()
    buffer.write(ids, ones)  # there is room again
    assert buffer.read(ids, "state/deter").all()
    assert not ReplayBuffer.load(tmp_path / "save").read(ids, "state/deter").any()


def test_a_save_writes_only_what_changed(tmp_path):
    buffer = ReplayBuffer(4000, 4)  # chunks of 64 steps
    fill(buffer, 1000)
    buffer.save(tmp_path)
    files = {p.name: p.stat().st_ino for p in tmp_path.glob("save-*/chunk*")}
    buffer.write([70, 71], {"reward": np.zeros(2, np.float32)})
    buffer.save(tmp_path)
    again = {p.name: p.stat().st_ino for p in tmp_path.glob("save-*/chunk*")}
    assert {name for name in files if files[name] != again[name]} == {"chunk-0000-00000001.bin"}
