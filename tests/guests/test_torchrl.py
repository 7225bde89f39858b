"""CuriousSampler in TorchRL's own buffers: which slices are drawn, by what, and what comes back."""

import copy
import pickle
from multiprocessing.context import set_spawning_popen

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl", reason="TorchRL is not installed: pip install '.[torchrl]'")

from tensordict import TensorDict  # noqa: E402
from torchrl.data import (  # noqa: E402
    LazyMemmapStorage,
    LazyTensorStorage,
    ListStorage,
    ReplayBuffer,
    SliceSampler,
    TensorDictMaxValueWriter,
    TensorDictReplayBuffer,
)

import curious_replay as cr  # noqa: E402
from curious_replay.torchrl import CuriousSampler  # noqa: E402

KEYS = {
    "ids of the collector": {},
    "ids": {"traj_key": "episode"},
    "flag": {"end_key": "over"},
    "flags": {"end_keys": ["nowhere", ("next", "done"), "other"]},
    "flag in next": {},
}


class World:
    """Steps that know their time and episode; episodes end by chance, each environment's apart."""

    def __init__(self, keys="ids", envs=None, seed=0):
        self.keys, self.envs, self.rng = keys, envs, np.random.default_rng(seed)
        self.time = 0
        self.episode = np.arange(envs or 1)

    def step(self):
        count = self.envs or 1
        over = self.rng.random(count) < 0.15
        fields = {
            "time": torch.full((count,), self.time),
            "truth": torch.from_numpy(self.episode.copy()),
            "is_init": torch.zeros(count, 1, dtype=torch.bool),
        }
        flag = torch.from_numpy(over)[:, None]
        if self.keys == "ids of the collector":
            fields["collector", "traj_ids"] = fields["truth"]
        elif self.keys == "ids":
            fields["episode"] = fields["truth"]
        elif self.keys == "flag":
            fields["over"] = flag
        elif self.keys == "flags":
            odd = torch.from_numpy(self.episode % 2 == 1)[:, None]
            fields["next", "done"], fields["other"] = flag & odd, flag & ~odd
        else:
            fields["next", "done"] = flag
        self.time += 1
        self.episode = np.where(over, self.episode.max() + 1 + np.arange(count), self.episode)
        step = TensorDict(fields, [count])
        return step if self.envs else step[0]

    def steps(self, count):
        """[count], or with environments [envs, count] as a collector gives them."""
        return torch.stack([self.step() for _ in range(count)], -1)


def make(
    world=None, capacity=30, sampler=None, storage=LazyTensorStorage, kind=TensorDictReplayBuffer,
    batch_size=8, seed=0, **options,
):  # fmt: skip
    ndim = 2 if world is not None and world.envs else 1
    options = {"priority_key": "loss", **options} if kind is TensorDictReplayBuffer else options
    return kind(
        storage=storage(capacity, ndim=ndim),
        sampler=sampler or CuriousSampler(slice_len=4),
        batch_size=batch_size,
        generator=torch.Generator().manual_seed(seed),
        **options,
    )


def slow_drawable(buffer, length, window, cross=False):
    """Which stored steps [rows, envs] can be drawn, looked up one by one."""
    stored = buffer.storage[:]
    times, truths = (stored[name].reshape(len(stored), -1).numpy() for name in ("time", "truth"))
    found = np.zeros(times.shape, bool)
    for env in range(times.shape[1]):
        episode = dict(zip(times[:, env].tolist(), truths[:, env].tolist(), strict=True))
        for row, time in enumerate(times[:, env].tolist()):
            starts = [time - length + 1] if window == "last" else [time - 1]
            if window == "first" and not cross:  # the last slice of an episode serves its tail
                ended = [t for t in range(time, time + length) if episode.get(t + 1) is not None
                         and episode.get(t) == episode[time] != episode[t + 1]]  # fmt: skip
                starts = [min(time - 1, ended[0] - length + 1)] if ended else starts
            for start in starts:
                inside = [episode.get(t) for t in range(start, start + length)]
                found[row, env] |= None not in inside and (cross or len({*inside}) == 1)
    return found


def everything(buffer):
    """The index of all stored steps, [N, dimensions]."""
    shape = buffer.storage[:].shape
    return torch.stack(torch.meshgrid(*map(torch.arange, shape), indexing="ij"), -1).flatten(0, -2)


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("envs", [None, 3])
def test_slices_are_whole_and_inside_one_trajectory(keys, envs):
    world, rng = World(keys, envs), np.random.default_rng(1)
    sampler = CuriousSampler(slice_len=4, **KEYS[keys])
    buffer = make(world, 30 * (envs or 1), sampler, batch_size=20)
    for _ in range(60):
        count = int(rng.integers(2, 12))
        if envs or rng.random() < 0.5:  # with environments, TorchRL cannot add a single step
            buffer.extend(world.steps(count))
        else:
            for _ in range(count):
                buffer.add(world.step())
        wanted = slow_drawable(buffer, 4, "last")
        if not wanted.any():
            continue
        assert buffer.can_sample()
        batch = buffer.sample()
        got = sampler.priorities(everything(buffer)) > 0
        assert got.tolist() == wanted.reshape(-1).tolist()
        slices = batch.reshape(5, 4)
        assert (slices["time"].diff(dim=1) == 1).all()
        assert (slices["truth"] == slices["truth"][:, :1]).all()
        index = tuple(batch["index"].unbind(-1))
        assert (buffer.storage[:]["time"][index] == batch["time"]).all()
        batch["loss"] = torch.rand(20, 1)
        buffer.update_tensordict_priority(batch)
    assert buffer.storage[:].shape[0] == 30  # it has gone round


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("window", ["last", "first"])
def test_both_windows_with_and_without_ends_inside(window, cross):
    world = World("flag")
    sampler = CuriousSampler(slice_len=5, end_key="over", window=window, cross_episodes=cross)
    buffer = make(world, 40, sampler, batch_size=50)
    buffer.extend(world.steps(30))
    for _ in range(30):
        buffer.extend(world.steps(7))
        batch = buffer.sample().reshape(10, 5)
        wanted = slow_drawable(buffer, 5, window, cross)
        got = sampler.priorities(everything(buffer)) > 0
        assert got[:, None].tolist() == wanted.tolist()
        assert (batch["time"].diff(dim=1) == 1).all()
        one = (batch["truth"] == batch["truth"][:, :1]).all()
        assert one or cross
    assert not cross or not one


RULES = [cr.Curious(), cr.Curious(dialect="dv2"), cr.Balanced(0.4), cr.Count(), cr.Adversarial(),
         cr.TemporalDifference(), cr.Uniform()]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("kind", [ReplayBuffer, TensorDictReplayBuffer])
def test_priorities_and_visits_are_those_of_our_own_buffer(rule, kind):
    world, rng = World("flag"), np.random.default_rng(2)
    sampler = CuriousSampler(rule, slice_len=4, end_key="over")
    buffer = make(world, 30, sampler, kind=kind)
    ours = cr.ReplayBuffer(30, 4, rule=rule, cross_episodes=False)
    name = rule.signals[0] if rule.signals else "model"
    for _ in range(50):
        steps = world.steps(int(rng.integers(1, 9)))
        buffer.extend(steps)
        for over in steps["over"].squeeze(-1).tolist():
            ours.add({"is_first": False, "is_last": over, "is_terminal": False}, env=0)
        if not ours.ready:
            continue
        loss = torch.from_numpy(rng.normal(size=8) * 5)
        batch, info = buffer.sample(return_info=True)
        if kind is ReplayBuffer:
            buffer.update_priority(info["index"], loss.requires_grad_())
        else:
            batch["loss"] = loss[:, None].float()
            buffer.update_tensordict_priority(batch)
            loss = batch["loss"][:, 0]
        ours.update(batch["time"].numpy(), {name: loss.detach().numpy()})
        ids = ours.ids()
        for part in range(len(ours.sampler.parts)):
            assert np.array_equal(sampler.priorities(ids % 30, part), ours.priorities(ids, part))
        assert np.array_equal(sampler.visits(ids % 30), ours.visits(ids))
    numbers, theirs = sampler.stats(), ours.stats()
    assert numbers["visits_max"] > 2
    for each in ("steps", "added", "updated", "drawable", "priority_mean", "visits_mean"):
        assert numbers[each] == theirs[each]


def test_draws_follow_priorities():
    buffer = make(capacity=64, sampler=CuriousSampler(cr.Adversarial(eps=0, alpha=1), slice_len=1),
                  batch_size=6400)  # fmt: skip
    buffer.extend(World().steps(64))
    index = torch.cat([buffer.sample()["index"], torch.arange(64)[:, None]])
    assert (index[:, 0].bincount() > 0).all()
    wanted = torch.arange(64.0) + 1
    buffer.update_priority(torch.arange(64), wanted)
    drawn = buffer.sample()["index"][:, 0].bincount(minlength=64)
    expected = 6400 * wanted / wanted.sum()
    assert ((drawn - expected) ** 2 / expected).sum() < 120  # 63 degrees of freedom


def test_a_step_is_new_until_it_was_drawn():
    """TorchRL sets priorities of new data itself, and takes those that come with it."""
    world, rule = World(), cr.Curious()
    buffer = make(world, 30, CuriousSampler(rule, slice_len=4))
    buffer.extend(world.steps(12))
    buffer.sample()
    new = [buffer.add(world.step()) for _ in range(5)]
    more = world.steps(5)
    more["loss"] = torch.zeros(5, 1)
    new += buffer.extend(more).tolist()
    buffer.sample()
    untouched = [i for i in new if buffer.sampler.priorities([i]) > 0]
    assert untouched
    assert (buffer.sampler.visits(new) == 0).all()
    assert (buffer.sampler.priorities(untouched) == rule.p_max).all()


def test_feedback_for_steps_that_are_gone_is_stale():
    world = World("flag", seed=4)
    buffer = make(world, 12, CuriousSampler(slice_len=2, end_key="over"))
    buffer.extend(world.steps(12))
    batch = buffer.sample()
    old = (batch["index"] < 6).sum().item()
    assert 0 < old < 8
    buffer.extend(world.steps(6))  # written, but not yet looked at
    batch["loss"] = torch.ones(8, 1)
    buffer.update_tensordict_priority(batch)
    assert buffer.sampler.stats()["stale"] == old
    buffer.sample()
    assert (buffer.sampler.visits(torch.arange(6)) == 0).all()
    assert buffer.sampler.visits(torch.arange(6, 12)).any()


def test_losses_that_are_not_there_are_missed():
    buffer = make(priority_key="los")
    buffer.extend(World().steps(25))
    batch = buffer.sample()
    batch["loss"] = torch.ones(8, 1)
    with pytest.raises(cr.UsageError, match=r"reads the signal 'model'.*priority_key"):
        buffer.update_tensordict_priority(batch)
    counting = make(sampler=CuriousSampler(cr.Count(), slice_len=4), priority_key="los")
    counting.extend(World().steps(25))
    batch = counting.sample()
    counting.update_tensordict_priority(batch)
    assert (counting.sampler.visits(batch["index"]) == 1).all()


def test_losses_that_are_not_finite_change_no_priority():
    buffer = make()
    buffer.extend(World().steps(25))
    batch = buffer.sample()
    before = buffer.sampler.priorities(batch["index"])
    buffer.update_priority(batch["index"], torch.full((8,), torch.nan))
    assert np.array_equal(buffer.sampler.priorities(batch["index"]), before)
    assert (buffer.sampler.visits(batch["index"]) == 1).all()
    assert buffer.sampler.stats()["refused"] == 8


def test_several_signals_are_told_by_name():
    rule = cr.Mixture(cr.TemporalDifference(), cr.Adversarial(), 0.5)
    buffer = make(sampler=CuriousSampler(rule, slice_len=4))
    buffer.extend(World().steps(25))
    batch = buffer.sample()
    with pytest.raises(cr.UsageError, match=r"reads the signals \['model', 'td'\]"):
        buffer.update_priority(batch["index"], torch.ones(8))
    with pytest.raises(cr.UsageError, match="reads the signal 'td'"):
        buffer.sampler.update(batch["index"], {"model": torch.ones(8)})
    buffer.sampler.update(batch["index"], {"model": torch.ones(8), "td": 2.0})
    drawable = buffer.sampler.priorities(batch["index"]) > 0
    for part, value in enumerate((2.01**0.7, 1.01**0.7)):
        got = buffer.sampler.priorities(batch["index"], part)[drawable]
        assert np.allclose(got, value)


def test_marks_are_those_of_torchrl():
    """The same fields, in the same shapes, as by its own sampler of slices."""
    ours, theirs = (
        make(World("flag in next"), 40, sampler, batch_size=40)
        for sampler in (CuriousSampler(slice_len=4), SliceSampler(slice_len=4))
    )
    steps = World("flag in next").steps(40)
    batches = []
    for buffer in (ours, theirs):
        buffer.extend(steps.clone())
        batches.append(buffer.sample())
    mine, other = batches
    keys = {*other.keys(include_nested=True, leaves_only=True), "priority_weight"}
    assert {*mine.keys(include_nested=True, leaves_only=True)} == keys
    for key in keys - {"priority_weight"}:
        assert mine[key].shape == other[key].shape
        assert mine[key].dtype == other[key].dtype
    slices = mine.reshape(10, 4)
    assert slices["next", "truncated"].squeeze(-1).sum(1).tolist() == [1] * 10
    assert slices["next", "truncated"][:, -1].all()
    stored = steps["next", "done"][mine["index"][:, 0]].reshape(10, 4, 1)
    assert stored.any()
    assert (slices["next", "done"] == (stored | slices["next", "truncated"])).all()
    assert slices["is_init"].squeeze(-1).sum(1).tolist() == [1] * 10
    assert slices["is_init"][:, 0].all()


def test_marks_can_be_left_out():
    sampler = CuriousSampler(slice_len=4, truncated_key=None, init_key=None)
    buffer = make(sampler=sampler)
    buffer.extend(World().steps(25))
    batch = buffer.sample()
    assert "next" not in batch
    assert not batch["is_init"].any()


def test_importance_weights():
    sampler = CuriousSampler(cr.Adversarial(eps=0, alpha=1), slice_len=1, weight_exponent=0.5)
    buffer = make(capacity=16, sampler=sampler, batch_size=100)
    buffer.extend(World().steps(16))
    assert (buffer.sample()["priority_weight"] == 1).all()
    buffer.update_priority(torch.arange(16), torch.arange(16.0) + 1)
    batch = buffer.sample()
    assert len(batch["index"].unique()) > 5
    expected = ((batch["index"][:, 0] + 1) / (batch["index"].min() + 1)) ** -0.5
    assert torch.allclose(batch["priority_weight"], expected)
    sampler.weight_exponent = 0.0
    assert (buffer.sample()["priority_weight"] == 1).all()


def test_no_repeats():
    for repeats in (True, False):
        buffer = make(capacity=100, sampler=CuriousSampler(
            slice_len=4, end_key="nothing", repeats=repeats), batch_size=40)  # fmt: skip
        steps = World().steps(100)
        steps["nothing"] = torch.zeros(100, 1, dtype=torch.bool)
        buffer.extend(steps)
        distinct = len(buffer.sample()["index"].unique())
        assert (distinct == 40) == (not repeats)


def test_the_number_of_slices_instead_of_their_length():
    buffer = make(capacity=60, sampler=CuriousSampler(num_slices=3, end_key="over"),
                  batch_size=None)  # fmt: skip
    buffer.extend(World("flag", seed=3).steps(60))
    for batch_size in (15, 9):  # shorter ones than at first, too
        batch = buffer.sample(batch_size).reshape(3, -1)
        assert (batch["time"].diff(dim=1) == 1).all()
        assert (batch["truth"] == batch["truth"][:, :1]).all()
    with pytest.raises(cr.UsageError, match=r"at most 5 steps.*got slices of 6"):
        buffer.sample(18)


def test_the_generator_decides():
    def draws(seed):
        buffer = make(seed=seed)
        buffer.extend(World().steps(25))
        return torch.cat([buffer.sample()["index"] for _ in range(3)]).tolist()

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)


def test_without_a_generator_the_seed_of_torch_decides():
    def draws():
        torch.manual_seed(5)
        buffer = TensorDictReplayBuffer(
            storage=LazyTensorStorage(30), sampler=CuriousSampler(slice_len=4), batch_size=8
        )
        buffer.extend(World().steps(25))
        return buffer.sample()["index"].tolist()

    assert draws() == draws()


@pytest.mark.parametrize("before", [20, 30, 47])
@pytest.mark.parametrize("known", [False, True])
def test_it_takes_over_a_storage_that_is_in_use(before, known):
    """Also one that has gone round, where the oldest step is in the middle."""
    world = World("flag")
    buffer = make(world, 30, SliceSampler(slice_len=4, end_key="over"))
    for _ in range(before):
        buffer.add(world.step())
    sampler = CuriousSampler(slice_len=4, end_key="over")
    if known:
        buffer.set_sampler(sampler)
    else:
        buffer = TensorDictReplayBuffer(
            storage=buffer.storage, writer=buffer.writer, sampler=sampler, batch_size=8
        )
    for _ in range(10):
        batch = buffer.sample()
        assert (batch.reshape(2, 4)["time"].diff(dim=1) == 1).all()
        got = sampler.priorities(everything(buffer)) > 0
        assert got[:, None].tolist() == slow_drawable(buffer, 4, "last").tolist()
        buffer.extend(world.steps(3))


def test_an_emptied_buffer_begins_anew():
    world = World("flag")
    buffer = make(world, 30, CuriousSampler(slice_len=4, end_key="over"))
    buffer.extend(world.steps(41))
    buffer.update_priority(buffer.sample()["index"], torch.ones(8))
    buffer.empty()
    assert not buffer.can_sample()
    with pytest.raises(cr.UsageError, match=r"nothing to sample yet.*0 steps are stored"):
        buffer.sample()
    buffer.extend(world.steps(20))
    assert buffer.sample()["time"].min() >= 41
    assert (buffer.sampler.visits(torch.arange(20)) == 0).all()


@pytest.mark.parametrize("room", [1, 50, 2**20])  # of changes that are noted at once
def test_more_at_once_than_fits(room, monkeypatch):
    monkeypatch.setattr("curious_replay.torchrl.steps._ROOM", room)
    world = World("flag")
    buffer = make(world, 30, CuriousSampler(slice_len=4, end_key="over"))
    buffer.extend(world.steps(20))
    buffer.sample()
    for _ in range(75):  # one by one, without a look in between
        buffer.add(world.step())
    buffer.sample()
    got = buffer.sampler.priorities(everything(buffer)) > 0
    assert got[:, None].tolist() == slow_drawable(buffer, 4, "last").tolist()


def test_memory_mapped_storage_prefetch_and_a_shared_storage():
    world = World("flag")
    buffer = make(world, 30, CuriousSampler(slice_len=4, end_key="over"), LazyMemmapStorage,
                  prefetch=2)  # fmt: skip
    other = TensorDictReplayBuffer(
        storage=buffer.storage, sampler=CuriousSampler(slice_len=3, end_key="over"), batch_size=6
    )
    for _ in range(20):
        buffer.extend(world.steps(5))
        if not other.can_sample() or not buffer.can_sample():
            continue
        assert (other.sample().reshape(2, 3)["time"].diff(dim=1) == 1).all()
        batch = buffer.sample()
        buffer.update_priority(batch["index"], torch.ones(8))


def test_copies_go_on_alone():
    world = World("flag")
    buffer = make(world, 30, CuriousSampler(slice_len=4, end_key="over"))
    buffer.extend(world.steps(25))
    batch = buffer.sample()
    for twin in (copy.deepcopy(buffer.sampler), pickle.loads(pickle.dumps(buffer.sampler))):
        twin.update_priority(batch["index"], torch.ones(8))
        assert (twin.visits(batch["index"]) == 1).all()
    assert (buffer.sampler.visits(batch["index"]) == 0).all()


def test_another_process_cannot_have_it():
    sampler = CuriousSampler(slice_len=4)
    set_spawning_popen(object())
    try:
        with pytest.raises(RuntimeError, match="cannot be shared between processes"):
            pickle.dumps(sampler)
    finally:
        set_spawning_popen(None)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "give slice_len or num_slices"),
        ({"slice_len": 4, "num_slices": 2}, "give slice_len or num_slices"),
        ({"slice_len": 0}, "slice_len must be at least 1, got 0"),
        ({"slice_len": 4, "window": "middle"}, 'window must be "last" or "first"'),
        ({"slice_len": 4, "rule": "curious"}, "rule must be a Rule or a Mixture"),
        ({"slice_len": 4, "end_key": "a", "end_keys": ["b"]}, "not both"),
    ],
)
def test_settings_that_cannot_be(options, complaint):
    with pytest.raises(cr.UsageError, match=complaint):
        CuriousSampler(**options)


def test_what_cannot_be_sampled_is_said():
    buffer = make(sampler=CuriousSampler(slice_len=4, traj_key="run"))
    with pytest.raises(cr.UsageError, match="nothing to sample yet"):
        buffer.sample()
    buffer.extend(World().steps(25))
    with pytest.raises(cr.UsageError, match=r"none of the keys \['run'\].*'episode'"):
        buffer.sample()
    buffer = make(batch_size=10)
    buffer.extend(World().steps(25))
    with pytest.raises(cr.UsageError, match="multiple of slice_len=4, got 10"):
        buffer.sample()
    buffer = make(sampler=CuriousSampler(slice_len=40), batch_size=40)
    buffer.extend(World().steps(25))
    with pytest.raises(cr.UsageError, match="slices must have 1 to 30 steps"):
        buffer.sample()
    buffer = make()
    buffer.extend(World().steps(25))
    with pytest.raises(cr.UsageError, match="sample first"):
        buffer.sampler.visits([0])
    index = buffer.sample()["index"]
    with pytest.raises(cr.UsageError, match=r"from 0 to 29, got \[30\]"):
        buffer.sampler.visits([30])
    with pytest.raises(cr.UsageError, match=r"one number for each of 8 steps, got shape \[3\]"):
        buffer.update_priority(index, torch.ones(3))


def test_buffers_that_do_not_go_round_are_refused():
    listed = ReplayBuffer(storage=ListStorage(30), sampler=CuriousSampler(slice_len=4),
                          batch_size=8)  # fmt: skip
    listed.extend([torch.zeros(1)] * 10)
    with pytest.raises(cr.UsageError, match="LazyTensorStorage"):
        listed.sample()
    writer = TensorDictMaxValueWriter(rank_key="time")
    best = make(writer=writer)
    steps = World().steps(30)
    steps["time"][5] = -1
    best.extend(steps)
    best.sample()
    with pytest.raises(cr.UsageError, match=r"row 0 was next, rows \[5\]"):
        best.add(World().step())
    one, other = make(), make()
    one.extend(World().steps(25))
    other.extend(World().steps(10))
    one.sample()
    with pytest.raises(cr.UsageError, match="one sampler for each buffer"):
        one.sampler.sample(other.storage, 8)
