"""Torch at both ends: batches as tensors, and tensors as signals, ids and steps."""

import subprocess
import sys

import numpy as np
import pytest
from helpers.streams import fill, step

from curious_replay.replay import Adversarial, ReplayBuffer
from curious_replay.replay.access import tensors

torch = pytest.importorskip("torch")


def filled(**options):
    buffer = ReplayBuffer(100, 4, num_envs=2, seed=2, **options)
    for t in range(30):
        buffer.add(step(t, 2) | {"view": {"image": np.full((2, 3, 3), t, np.uint8)}})
    return buffer


def test_tensors_have_the_memory_of_the_arrays():
    batch = filled().sample(3)
    for made in (batch.torch(), batch.torch("cpu"), batch.torch().torch()):
        assert made["view"]["image"].dtype == torch.uint8
        assert made["view"]["image"].data_ptr() == batch["view"]["image"].ctypes.data
        assert made["is_first"].dtype == torch.bool
        assert {*made} == {*batch}
        assert made.ids is batch.ids
        assert made.distinct == batch.distinct
    other = batch.torch("meta")
    assert other["view"]["image"].device.type == "meta"
    assert other["reward"].shape == (3, 4)


def test_what_torch_has_no_tensors_of_is_named():
    buffer = ReplayBuffer(100, 4)
    for t in range(9):
        buffer.add(step(t) | {"when": {"it": np.full(1, t, "m8[s]")}})
    with pytest.raises(TypeError, match=r"'when/it': torch has no tensors of timedelta64\[s\]"):
        buffer.sample(2).torch()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
def test_memory_is_page_locked_only_with_a_graphics_card():
    buffer = filled()
    for attempt in (lambda: buffer.sample(2, pin=True), lambda: buffer.sample(2).torch(pin=True)):
        with pytest.raises(ValueError, match=r"pin: .*only where torch finds a graphics card"):
            attempt()


def test_a_pinned_batch_is_gathered_where_it_stays(monkeypatch):
    """Page-locked memory by the name of it: what torch is asked for, and that nothing is copied."""
    asked, empty = [], torch.empty

    def fake(*args, pin_memory=False, **options):
        asked.append(pin_memory)
        return empty(*args, **options)

    monkeypatch.setattr(torch, "empty", fake)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: True)
    plain, pinned = filled().sample(3), filled().sample(3, pin=True)
    assert asked == [True] * len(asked)
    assert len(asked) == len(pinned) - 1 + len(pinned["view"])
    assert (pinned["view"]["image"] == plain["view"]["image"]).all()
    assert pinned["reward"].dtype == np.float32
    made = pinned.torch(pin=True)
    assert made["reward"].data_ptr() == pinned["reward"].ctypes.data
    assert tensors.pinned_empty((0, 2), np.dtype(np.float32)).shape == (0, 2)
    assert next(filled().prefetch(3, pin=True))["reward"].tolist() == plain["reward"].tolist()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("gradients", [False, True])
def test_signals_may_be_tensors(dtype, gradients):
    buffer, same = filled(rule=Adversarial()), filled(rule=Adversarial())
    batch = buffer.sample(3)
    loss = torch.rand((3, 4), generator=torch.Generator().manual_seed(0)).to(dtype)
    buffer.update(torch.from_numpy(batch.ids), {"model": loss.requires_grad_(gradients) * 1})
    same.update(batch.ids, {"model": loss.detach().double().numpy()})
    assert (buffer.priorities(batch.ids) == same.priorities(batch.ids)).all()
    assert (buffer.visits(torch.from_numpy(batch.ids)) == 1).all()


def test_steps_may_be_tensors():
    buffer = ReplayBuffer(100, 2, num_envs=2)
    for t in range(3):
        arrays = {name: torch.from_numpy(value) for name, value in step(t, 2).items()}
        state = torch.ones(2, 3, dtype=torch.bfloat16, requires_grad=True)
        buffer.add(arrays | {"state": state, "other": 2 * state.float()})
    batch = buffer.sample(4)
    assert batch["state"].dtype == np.float32
    assert (batch["other"] == 2).all()


def test_weights():
    buffer = ReplayBuffer(60, 3, rule=Adversarial(alpha=1.0, eps=0.0), seed=3)
    fill(buffer, 60)
    buffer.update(np.arange(60), {"model": np.arange(60) + 1.0})
    batch = buffer.sample(20)
    for exponent in (0.0, 0.4, 1.0):
        weights = batch.weights(exponent)
        assert weights.dtype == np.float32
        expected = (1 / (58 * batch.probabilities)) ** exponent
        np.testing.assert_allclose(weights, expected / expected.max(), rtol=1e-6)
    made = batch.torch().weights(0.4)
    assert made.dtype == torch.float32
    assert (made.numpy() == batch.weights(0.4)).all()


def test_reprs_say_what_is_held():
    buffer = ReplayBuffer(100, 4, num_envs=2)
    assert "0 of 100 steps from 2 environments, in windows of 4, by Curious(" in repr(buffer)
    assert repr(buffer).endswith(": no fields yet)")
    buffer = filled()
    assert repr(buffer).startswith("ReplayBuffer(60 of 100 steps from 2 environments")
    assert "view/image uint8 [3, 3]" in repr(buffer)
    fill_again = [buffer.add(step(t, 2) | {"view": {"image": np.zeros((2, 3, 3), np.uint8)}})
                  for t in range(30, 90)]  # fmt: skip
    assert len(fill_again) == 60
    assert repr(buffer).startswith("ReplayBuffer(100 of 100 steps")
    batch = buffer.sample(3)
    assert repr(batch).startswith("Batch(3 windows of 4 steps: number int64 [3, 4], ")
    assert "view/image uint8 [3, 4, 3, 3]" in repr(batch)
    assert "view/image torch.uint8 [3, 4, 3, 3]" in repr(batch.torch())


def test_torch_is_imported_only_when_tensors_are_asked_for():
    code = """
import sys
import numpy as np
from curious_replay.replay import ReplayBuffer
buffer = ReplayBuffer(8, 2)
flags = dict.fromkeys(("is_first", "is_last", "is_terminal"), np.zeros(1, bool))
ids = [int(buffer.add({"x": np.zeros(1), **flags})[0]) for _ in range(4)]
buffer.write(ids, {"x": np.ones(4)})
batch = next(buffer.prefetch(2))
buffer.update(batch.ids, {"model": batch["x"]})
repr(batch), batch.weights()
assert "torch" not in sys.modules
batch.torch()
assert "torch" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
