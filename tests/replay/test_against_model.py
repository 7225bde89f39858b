"""The buffer does what the slow model does, whatever happens to it."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from helpers.slow_model import Both, SlowBuffer
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from curious_replay.replay import (
    Adversarial,
    Balanced,
    Count,
    Curious,
    Mixture,
    ReplayBuffer,
    TemporalDifference,
    Uniform,
)
from curious_replay.replay.sampler import Sampler

IN_MEMORY = Path("/dev/shm")  # thousands of saves, which need not wear out a disk
DIALECTS = ("paper", "dv2", "dv3")
RULES = [
    Uniform(),
    *(kind(dialect=d) for kind in (Curious, Count, Adversarial) for d in DIALECTS),
    Curious(c=10.0, beta=0.9, alpha=0.5, eps=0.1, p_max=50.0),
    TemporalDifference(),
    Mixture(Adversarial(), TemporalDifference(), 0.4),
    Mixture(Uniform(), Curious(dialect="dv2"), 0.3),
    Both(),
    Balanced(0.4),
]


class Comparison(RuleBasedStateMachine):
    """Adds, samples, updates, writes, clears, saves and loads in any order."""

    directory_mode = False

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None)

    def teardown(self):
        self.folder.cleanup()

    @initialize(
        num_envs=st.integers(1, 3),
        stripe=st.integers(5, 150),
        extra=st.integers(0, 2),
        length=st.integers(1, 9),
        replay_rule=st.sampled_from(RULES),
        window=st.sampled_from(["last", "first"]),
        cross=st.booleans(),
        online=st.booleans(),
        seed=st.integers(0, 2**32 - 1),
    )
    def make(self, num_envs, stripe, extra, length, replay_rule, window, cross, online, seed):
        length = max(2, length) if window == "first" else length
        stripe = max(stripe, length)
        capacity = stripe * num_envs + min(extra, num_envs - 1)  # not always a multiple
        options = {"num_envs": num_envs, "rule": replay_rule, "window": window}
        options |= {"cross_episodes": cross}
        place = f"{self.folder.name}/frames" if self.directory_mode else None
        self.online = online
        self.real = ReplayBuffer(
            capacity, length, seed=seed, directory=place, online=online, **options
        )
        self.slow = SlowBuffer(capacity, length, **options)
        self.random = np.random.default_rng(seed)
        self.ended = np.ones(num_envs, bool)  # the next step must begin an episode
        self.batch_ids = None
        self.stale = self.refused = self.unwritten = 0

    def step(self, last, broken):
        """One step for every environment; the observation is its own time and environment."""
        num_envs = self.slow.num_envs
        chance = self.random.random((2, num_envs))
        is_last = chance[0] < last
        is_first = self.ended | (chance[1] < broken)
        return {
            "observation": {
                "time": np.array(self.slow.added),
                "env": np.arange(num_envs, dtype=np.uint8),
            },
            "is_first": is_first,
            "is_last": is_last,
            "is_terminal": is_last & (chance[0] < last / 2),
            "memo": np.zeros((num_envs, 2), np.float32),
            "log_square": np.array(self.slow.added, np.float32) ** 2,
        }

    @rule(
        count=st.integers(1, 60),
        last=st.sampled_from([0.0, 0.05, 0.3]),
        broken=st.sampled_from([0.0, 0.05]),
    )
    def add_to_all(self, count, last, broken):
        for _ in range(count):
            step = self.step(last, broken)
            times = list(self.slow.added)
            ids = self.real.add(step)
            assert ids.tolist() == [t * len(times) + env for env, t in enumerate(times)]
            for env in range(len(times)):
                self.slow.add(env, step["is_first"][env], step["is_last"][env])
            self.ended = step["is_last"]

    @rule(data=st.data(), last=st.sampled_from([0.0, 0.3]), count=st.integers(1, 20))
    def add_to_one(self, data, last, count):
        env = data.draw(st.integers(0, self.slow.num_envs - 1))
        for _ in range(count):
            step = self.step(last, 0.0)
            one = {k: v[env] for k, v in step.items() if k != "observation"}
            one["observation"] = {k: v[env] for k, v in step["observation"].items()}
            self.real.add(one, env=env)
            self.slow.add(env, one["is_first"], one["is_last"])
            self.ended = self.ended.copy()
            self.ended[env] = one["is_last"]

    @precondition(lambda self: self.real.ready)
    @rule(size=st.integers(1, 8))
    def sample(self, size):
        new = self.slow.online(size, self.slow.length) if self.online else []
        batch = self.real.sample(size)
        self.check_batch(batch, size)
        num_envs = self.slow.num_envs
        first = [[t * num_envs + env for t in times] for env, times in new]
        assert batch.ids[: len(new)].tolist() == first
        assert np.isnan(batch.probabilities[: len(new)]).all()
        self.check_drawn(batch.ids[len(new) :], batch.probabilities[len(new) :])

    def check_batch(self, batch, size):
        self.batch_ids = batch.ids
        length, num_envs = self.slow.length, self.slow.num_envs
        assert batch.ids.shape == (size, length)
        time, env = batch["observation"]["time"], batch["observation"]["env"]
        assert "log_square" not in batch
        assert (np.diff(time, axis=1) == 1).all()
        assert (env == env[:, :1]).all()
        assert (batch.ids == time * num_envs + env).all()
        assert batch["is_first"][:, 0].all()
        stored = self.real.read(batch.ids, "is_first")
        assert (batch["is_first"][:, 1:] == stored[:, 1:]).all()
        assert (self.real.read(batch.ids, "log_square") == time.astype(np.float32) ** 2).all()
        memos = [self.slow.find(i).memo for i in batch.ids.ravel().tolist()]
        assert batch["memo"].reshape(-1, 2).tolist() == [list(memo) for memo in memos]

    def check_drawn(self, ids, probabilities):
        num_envs = self.slow.num_envs
        trees = [self.slow.tree(k) for k in range(len(self.slow.rules))]
        totals = [sum(tree.values()) for tree in trees]
        rule_ = self.real.rule
        shares = [1 - rule_.fraction, rule_.fraction] if isinstance(rule_, Mixture) else [1.0]
        for row, probability in zip(ids, probabilities, strict=True):
            env_, times = row[0] % num_envs, row // num_envs
            steps = self.slow.steps[env_]
            positions = range(times[0] - steps[0].time, times[-1] - steps[0].time + 1)
            drawn = {  # the steps whose window this is
                steps[i].time * num_envs + env_
                for i in positions
                if self.slow.window_of(env_, i) == positions
            }
            if self.slow.window == "last" or self.slow.cross:
                place = -1 if self.slow.window == "last" else 1
                assert drawn == {row[place]}
            expected = [
                sum(w * t[i] / s for w, t, s in zip(shares, trees, totals, strict=True))
                for i in drawn
            ]
            assert any(probability == pytest.approx(e, rel=1e-9) for e in expected)
            if not self.slow.cross:
                assert not any(steps[i].is_first for i in positions[1:])

    @precondition(lambda self: self.batch_ids is not None)
    @rule(scale=st.sampled_from([0.0, 1.0, 500.0]), broken=st.sampled_from([0.0, 0.2]))
    def update(self, scale, broken):
        """Feedback for the last sampled batch, which may be partly gone by now."""
        ids = np.concatenate([self.batch_ids, self.batch_ids[:1]])  # a row that occurs twice
        signals = {}
        for name in ("model", "td"):
            values = self.random.normal(scale, scale + 1, ids.shape)
            values[-1] = values[0]
            values[self.random.random(ids.shape) < broken] = self.random.choice([np.nan, np.inf])
            signals[name] = values
        self.real.update(ids, signals)
        flat = {name: values.ravel().tolist() for name, values in signals.items()}
        stale, refused = self.slow.update(ids.ravel().tolist(), flat)
        self.stale += stale
        self.refused += refused

    @precondition(lambda self: self.batch_ids is not None)
    @rule()
    def write(self):
        """Fields of the last sampled batch, which may be partly gone by now."""
        ids = np.concatenate([self.batch_ids, self.batch_ids[:1]])  # the last values stay
        values = self.random.random((*ids.shape, 2)).astype(np.float32)
        self.real.write(ids, {"memo": values})
        memos = [tuple(memo) for memo in values.reshape(-1, 2).tolist()]
        self.unwritten += self.slow.write(ids.ravel().tolist(), memos)

    @rule()
    def clear(self):
        self.real.clear()
        self.slow.clear()
        self.ended = np.ones_like(self.ended)

    def can_take(self, other):
        """Whether all signals that a rule reads were told, or no step was judged yet."""
        judged = any(step.judged for steps in self.slow.steps for step in steps)
        told = set(self.real.sampler.history.names)
        names = {name for part in Sampler(other, 1).parts for name in part.rule.signals}
        return not judged or names <= told

    @rule(other=st.sampled_from(RULES))
    def put_on(self, other):
        if not self.can_take(other):
            with pytest.raises(ValueError, match="was never told"):
                self.real.rule = other
            return
        self.real.rule = other
        self.slow.put_on(other)

    @rule(other=st.sampled_from(RULES))
    def save_and_load_with_another_rule(self, other):
        if not self.can_take(other):
            return
        self.real.save(f"{self.folder.name}/save")
        self.real = ReplayBuffer.load(f"{self.folder.name}/save", rule=other)
        self.slow.put_on(other)

    @rule()
    def save_and_load(self):
        self.real.save(f"{self.folder.name}/save")
        own = self.real.rule if isinstance(self.real.rule, Both) else None
        loaded = ReplayBuffer.load(f"{self.folder.name}/save", rule=own)
        if loaded.ready:
            state = self.real.rng.bit_generator.state
            new = self.slow.online(3, self.slow.length) if self.online else []
            assert (loaded.sample(3).ids == self.real.sample(3).ids).all()
            drawn = self.real.rng.bit_generator.state
            assert loaded.rng.bit_generator.state == drawn
            assert (drawn != state) == (len(new) < 3)
        self.real = loaded

    @invariant()
    def same(self):
        if not hasattr(self, "real"):
            return
        real, slow = self.real, self.slow
        ids = [s.time * slow.num_envs + e for e, steps in enumerate(slow.steps) for s in steps]
        assert len(real) == len(ids)
        assert real.ids().tolist() == ids
        assert real.visits(ids).tolist() == [s.visits for steps in slow.steps for s in steps]
        if ids:
            memos = [list(s.memo) for steps in slow.steps for s in steps]
            assert real.read(ids, "memo").tolist() == memos
        for k, part in enumerate(real.sampler.parts):
            tree = slow.tree(k)
            slots, _, _, _ = real.windows.find(np.array(ids, np.int64), real.sampler.history.visits)
            leaves = part.tree.leaves[slots]
            np.testing.assert_array_equal(real.priorities(ids, k), leaves)
            np.testing.assert_allclose(leaves, [tree.get(i, 0.0) for i in ids], rtol=1e-9)
            assert part.tree.total == pytest.approx(sum(tree.values()), rel=1e-9)
            minimum = part.memory.get("model_minimum", np.inf)
            assert minimum == pytest.approx(slow.minima[k], rel=1e-9)
        steps = [step for steps in slow.steps for step in steps]
        for name in real.sampler.history.names:
            told = [step.told.get(name, np.nan) for step in steps]
            np.testing.assert_array_equal(real.signals(ids, name), told)
        together = real.priorities(ids)
        for position in range(0, len(ids), 1 + len(ids) // 20):  # also one by one
            assert real.priorities(ids[position]) == together[position]
        stats = real.stats()
        assert stats["stale"] == self.stale
        assert stats["refused"] == self.refused
        assert stats["unwritten"] == self.unwritten
        if isinstance(real.rule, Both):
            assert "novelty_share" not in stats
        else:
            assert stats["novelty_share"] == pytest.approx(slow.novelty_share(), rel=1e-6)


class ComparisonInFolder(Comparison):
    directory_mode = True


Comparison.TestCase.settings = settings(
    max_examples=200, stateful_step_count=30, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
ComparisonInFolder.TestCase.settings = settings(Comparison.TestCase.settings, max_examples=60)

TestInMemory = Comparison.TestCase
TestInFolder = ComparisonInFolder.TestCase
