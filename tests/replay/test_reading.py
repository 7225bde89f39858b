"""A save can be looked into without loading it, and says the same as the loaded buffer."""

import numpy as np
import pytest
from helpers.streams import step

from curious_replay.replay import Curious, LoadError, ReplayBuffer, SavedBuffer


def trained(folder, rounds=137, capacity=120, num_envs=3):
    """A buffer that went round its ring, saved twice so that chunks were shared."""
    buffer = ReplayBuffer(capacity, 8, num_envs=num_envs, rule=Curious(), seed=3)
    rng = np.random.default_rng(0)
    for t in range(rounds):
        buffer.add(step(t, num_envs, size=(20,)))
        if buffer.ready:
            batch = buffer.sample(4)
            buffer.update(batch.ids, {"model": rng.exponential(9, batch.ids.shape)})
        if t == rounds // 2:
            buffer.save(folder)
    buffer.save(folder)
    return buffer


@pytest.mark.parametrize("rounds", [20, 137])
def test_a_save_says_what_the_buffer_says(tmp_path, rounds):
    buffer = trained(tmp_path / "save", rounds)
    saved = SavedBuffer(tmp_path / "save")
    ids = buffer.ids()
    assert saved.ids.tolist() == ids.tolist()
    assert saved.visits.tolist() == buffer.visits(ids).tolist()
    leaves = np.where(saved.drawable, saved.priorities, 0.0)
    assert leaves.tolist() == buffer.priorities(ids).tolist()
    assert (saved.time * 3 + saved.env).tolist() == ids.tolist()
    for name in ("number", "reward", "is_last"):
        assert (saved.field(name) == buffer.read(ids, name)).all()
    some = [5, 0, len(ids) - 1, 5]
    assert (saved.rows("number", some) == buffer.read(ids[some], "number")).all()
    assert "number" in saved.fields


def test_an_empty_buffer_has_no_steps(tmp_path):
    ReplayBuffer(100, 8).save(tmp_path)
    saved = SavedBuffer(tmp_path)
    assert len(saved) == 0
    assert saved.fields == ()
    with pytest.raises(KeyError, match="empty"):
        saved.field("reward")


def test_damage_is_refused(tmp_path):
    trained(tmp_path)
    saved = SavedBuffer(tmp_path)
    with pytest.raises(KeyError, match="no field 'absent'"):
        saved.field("absent")
    with pytest.raises(IndexError):
        saved.rows("reward", [len(saved)])
    path = sorted(tmp_path.glob("save-*/chunk-0001-*.bin"))[-1]
    content = bytearray(path.read_bytes())
    path.write_bytes(bytes(len(content)))
    with pytest.raises(LoadError, match="have changed"):
        saved.field("number")
    path.write_bytes(content[:-1])
    with pytest.raises(LoadError, match="damaged"):
        saved.field("number")
    path.unlink()
    with pytest.raises(LoadError, match="missing"):
        saved.field("number")
    with pytest.raises(LoadError):
        SavedBuffer(tmp_path / "nothing")
