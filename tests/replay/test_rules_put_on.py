"""A rule can be put onto any buffer, as priorities are made of what is stored."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from helpers.streams import fill

from curious_replay.replay import (
    Adversarial,
    Balanced,
    Count,
    Curious,
    Mixture,
    ReplayBuffer,
    Rule,
    SavedBuffer,
    TemporalDifference,
    Uniform,
)

OLD = Path(__file__).parent / "saves"


@dataclass(frozen=True, kw_only=True)
class Recent(Rule):
    """What the model or the critic predicts badly."""

    weight: float = 2.0
    signals = ("model", "td")

    def terms(self, visits, signals):
        return {"surprise": np.abs(signals["model"]), "td": self.weight * np.abs(signals["td"])}


def trained(rule, **options):
    """Six single steps: 0 to 3 trained on, 0 and 1 twice; and their ids."""
    buffer = ReplayBuffer(6, 1, rule=rule, **options)
    ids = fill(buffer, 6).ravel()
    buffer.update(ids[:4], {"model": [1.0, 2.0, 3.0, 4.0], "td": [0.5, np.nan, -0.25, 8.0]})
    buffer.update(ids[:2], {"model": [5.0, np.inf], "td": [1.5, np.nan]})
    return buffer, ids


def test_the_last_finite_value_of_each_signal_is_kept():
    buffer, ids = trained(Uniform())
    np.testing.assert_array_equal(
        buffer.signals(ids, "model"), np.float32([5, 2, 3, 4, np.nan, np.nan])
    )
    np.testing.assert_array_equal(
        buffer.signals(ids[:4].reshape(2, 2), "td"), np.float32([[1.5, np.nan], [-0.25, 8]])
    )
    assert buffer.signals(ids, "td").dtype == np.float32
    with pytest.raises(KeyError, match=r"no signal 'kl' was told .* only \['model', 'td'\]"):
        buffer.signals(ids, "kl")
    fill(buffer, 1, start=6)  # takes the place of the oldest
    assert np.isnan(buffer.signals(ids[0], "model"))
    assert np.isnan(buffer.signals(6, "model"))


def test_a_signal_too_large_for_its_place_stays_large():
    buffer, ids = trained(Uniform())
    buffer.update(ids[:1], {"model": [-1e99]})
    assert buffer.signals(ids[0], "model") == -np.finfo(np.float32).max


def test_another_rule_takes_over_with_visits_and_signals():
    buffer, ids = trained(Uniform())
    buffer.rule = Count(c=100.0, beta=0.5)
    assert buffer.priorities(ids).tolist() == [50.0, 50.0, 100.0, 100.0, 1e5, 1e5]
    buffer.rule = Adversarial(alpha=1.0, eps=0.0, p_max=7.0)
    assert buffer.priorities(ids).tolist() == [5.0, 2.0, 3.0, 4.0, 7.0, 7.0]
    buffer.rule = TemporalDifference(alpha=1.0, eps=0.0)
    assert buffer.priorities(ids).tolist() == [1.5, 1e5, 0.25, 8.0, 1e5, 1e5]
    buffer.rule = Recent()
    assert buffer.priorities(ids).tolist() == [8.0, 1e5, 3.5, 20.0, 1e5, 1e5]
    buffer.rule = Mixture(Uniform(), Count(c=8.0, beta=0.5, dialect="dv3"), 0.5)
    assert buffer.priorities(ids, 1).tolist() == [2.0, 2.0, 4.0, 4.0, 1e5, 1e5]
    assert len(buffer.sampler.parts) == 2
    buffer.rule = Curious()
    assert len(buffer.sampler.parts) == 1


def test_visits_count_as_they_were_when_a_step_was_last_judged():
    """The second feedback of step 1 was refused: it is still the priority of its first visit."""
    rule = Curious(c=100.0, beta=0.5, alpha=1.0, eps=0.0)
    buffer, ids = trained(rule)
    before = buffer.priorities(ids)
    assert before.tolist() == [55.0, 102.0, 103.0, 104.0, 1e5, 1e5]
    buffer.rule = Uniform()
    buffer.rule = rule
    np.testing.assert_allclose(buffer.priorities(ids), before, rtol=1e-7)


@pytest.mark.parametrize("dialect", ["paper", "dv2", "dv3"])
def test_the_rule_that_is_on_already_changes_nothing(dialect):
    buffer, ids = trained(Curious(dialect=dialect))
    before = buffer.priorities(ids)
    buffer.rule = Curious(dialect=dialect)
    np.testing.assert_array_equal(buffer.priorities(ids), before)


def test_a_new_dv2_rule_knows_the_minimum_of_the_run():
    buffer, ids = trained(Adversarial(dialect="dv2", alpha=1.0, eps=0.0))
    buffer.rule = Adversarial(dialect="dv2", alpha=1.0, eps=0.5)
    assert buffer.priorities(ids[:4]).tolist() == [4.5, 1.5, 2.5, 3.5]  # 1.0 was the least
    buffer, ids = trained(Uniform())
    buffer.rule = Adversarial(dialect="dv2", alpha=1.0, eps=0.5)
    assert buffer.priorities(ids[:4]).tolist() == [3.5, 0.5, 1.5, 2.5]  # of what is known, 2.0


def test_a_signal_that_was_never_told_is_named():
    buffer, ids = trained(Uniform())
    message = "reads the signal 'kl', which this buffer was never told; .*: 'model', 'td'"
    with pytest.raises(ValueError, match=message):
        buffer.rule = Curious(signal="kl")
    assert buffer.rule == Uniform()
    assert (buffer.priorities(ids) == 1e5).all()
    with pytest.raises(TypeError, match="rule must be a Rule or a Mixture"):
        buffer.rule = "curious"
    empty = ReplayBuffer(6, 1, rule=Uniform())
    fill(empty, 3)
    empty.rule = Curious(signal="kl")  # nothing to be judged yet


def test_a_rule_that_fails_leaves_the_old_one_on():
    @dataclass(frozen=True, kw_only=True)
    class Wrong(Rule):
        def __call__(self, visits, signals):
            return np.ones(len(visits) + 1)

    buffer, ids = trained(Curious())
    before = buffer.priorities(ids)
    with pytest.raises(ValueError, match="must return one priority for each"):
        buffer.rule = Wrong()
    assert buffer.rule == Curious()
    np.testing.assert_array_equal(buffer.priorities(ids), before)


def test_a_rule_may_change_while_training_runs():
    """Annealing: every draw goes by the rule of its moment."""
    buffer, ids = trained(Curious())
    for beta in (0.9, 0.5, 0.1):
        buffer.rule = Count(c=1000.0, beta=beta)
        visits = buffer.visits(ids)
        batch = buffer.sample(4)
        buffer.update(batch.ids, {"model": np.ones((4, 1))})
        touched = np.isin(ids, batch.ids)
        np.testing.assert_allclose(
            buffer.priorities(ids[touched]), 1000.0 * beta ** visits[touched]
        )


def test_a_rule_that_reads_two_signals_needs_both():
    buffer, ids = trained(Recent())
    assert buffer.priorities(ids).tolist() == [8.0, 1e5, 3.5, 20.0, 1e5, 1e5]
    assert buffer.stats()["refused"] == 2  # step 1 twice: without td, and without either
    with pytest.raises(ValueError, match="reads the signal 'td'; the signals given are"):
        buffer.update(ids, {"model": np.ones(6)})


def test_priorities_are_taken_apart_by_the_rule():
    buffer, ids = trained(Curious(c=100.0, beta=0.5, alpha=1.0, eps=0.0))
    terms = buffer.terms(ids)
    assert terms["count"].tolist() == [50.0, 100.0, 100.0, 100.0, 1e5, 1e5]
    assert terms["surprise"].tolist() == [5.0, 2.0, 3.0, 4.0, 0.0, 0.0]
    assert list(buffer.terms(ids.reshape(2, 3))["count"].shape) == [2, 3]
    fill(buffer, 1, start=6)
    assert buffer.terms(ids)["count"][0] == 0.0  # gone
    buffer.rule = Balanced(0.5)
    assert set(buffer.terms(ids)) == {"surprise"}
    assert set(buffer.terms(ids, part=1)) == {"count"}
    own, ids = trained(Recent())
    assert set(own.terms(ids)) == {"surprise", "td"}


def test_a_rule_that_is_no_sum_of_terms_has_none():
    other = type("Curious", (Curious,), {"__call__": lambda self, visits, signals: visits + 1.0})
    buffer, ids = trained(other())
    assert buffer.terms(ids) is None
    assert "novelty_share" not in buffer.stats()


def test_the_share_of_novelty_is_that_of_the_count_term():
    buffer, _ = trained(Curious(c=100.0, beta=0.5, alpha=1.0, eps=0.0, p_max=200.0))
    counts, losses = 50 + 3 * 100 + 2 * 200, 5 + 2 + 3 + 4
    assert buffer.stats()["novelty_share"] == pytest.approx(counts / (counts + losses))
    for rule, share in [(Uniform(), 0), (Adversarial(), 0), (Count(), 1), (Balanced(0.3), 0.3)]:
        buffer.rule = rule
        assert buffer.stats()["novelty_share"] == pytest.approx(share)
    assert ReplayBuffer(6, 1).stats()["novelty_share"] == 0.0  # nothing can be drawn


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_balanced_draws_its_share_by_count_at_any_scale_of_losses(scale):
    buffer = ReplayBuffer(100, 1, rule=Balanced(0.3))
    ids = fill(buffer, 100).ravel()
    for _ in range(30):
        buffer.update(ids[:90], {"model": scale * np.arange(1.0, 91.0)})
    buffer.update(ids, {"model": scale * np.ones(100)})  # ten that are new, with small losses
    new = np.isin(buffer.sample(20_000).ids, ids[90:]).mean()
    assert new == pytest.approx(0.3 + 0.7 * 0.1, abs=0.02)  # of the losses, all alike, a tenth


def test_balanced_says_what_it_was_made_with(tmp_path):
    rule = Balanced(0.2, alpha=0.5, beta=0.9, eps=0.1, p_max=10.0, signal="kl", dialect="dv3")
    assert eval(repr(rule)) == rule != Balanced()
    assert repr(Balanced()).startswith("Balanced(novelty=0.3, alpha=0.7, beta=0.7")
    ReplayBuffer(6, 1, rule=rule).save(tmp_path)
    assert ReplayBuffer.load(tmp_path).rule == rule
    assert SavedBuffer(tmp_path).fraction == 0.2
    with pytest.raises(ValueError, match="novelty must be between 0 and 1, got 2"):
        Balanced(2)


def test_a_class_of_a_script_is_the_same_rule_when_it_is_imported(tmp_path):
    script = type("Recent", (Recent,), {"__module__": "__main__", "__qualname__": "Recent"})
    buffer, ids = trained(script())
    buffer.save(tmp_path)
    before = buffer.priorities(ids)
    buffer = ReplayBuffer.load(tmp_path, rule=Recent())
    np.testing.assert_array_equal(buffer.priorities(ids), before)
    heavier = ReplayBuffer.load(tmp_path, rule=Recent(weight=4.0))
    assert heavier.priorities(ids).tolist() == [11.0, 1e5, 4.0, 36.0, 1e5, 1e5]


@pytest.mark.parametrize("rule", [Curious(beta=0.3), Balanced(), TemporalDifference(), Uniform()])
def test_a_save_can_be_loaded_with_another_rule(tmp_path, rule):
    buffer, ids = trained(Mixture(Curious(), TemporalDifference(), 0.5))
    buffer.save(tmp_path)
    loaded = ReplayBuffer.load(tmp_path, rule=rule)
    buffer.rule = rule
    assert loaded.rule == rule
    for part in range(len(buffer.sampler.parts)):
        np.testing.assert_array_equal(loaded.priorities(ids, part), buffer.priorities(ids, part))
    assert loaded.sample(3).ids.tolist() == buffer.sample(3).ids.tolist()


def test_saved_priorities_are_taken_apart_too(tmp_path):
    buffer, ids = trained(Curious(dialect="dv2"))
    buffer.save(tmp_path)
    saved = SavedBuffer(tmp_path)
    for name, term in buffer.terms(ids).items():
        np.testing.assert_array_equal(saved.terms()[name], term)
    np.testing.assert_array_equal(saved.signals["td"], buffer.signals(ids, "td"))
    own, _ = trained(Recent())
    own.save(tmp_path / "own")
    assert SavedBuffer(tmp_path / "own").terms() is None


def test_saves_of_the_first_format_go_on_with_their_rule():
    buffer = ReplayBuffer.load(OLD / "first-curious")
    assert buffer.rule == Curious(dialect="dv2")
    assert buffer.stats()["model_minimum"] == 2.0
    ids = buffer.ids()
    visited = buffer.visits(ids) > 0
    assert visited.sum() > 5
    assert (buffer.priorities(ids[visited & (ids > 3)]) < 1e5).all()
    buffer.update(ids, {"model": np.ones(len(ids))})
    mixed = ReplayBuffer.load(OLD / "first-mixture")
    assert mixed.stats()["second_priority_max"] > 0
    assert SavedBuffer(OLD / "first-curious").terms() is None


def test_saves_of_the_first_format_begin_cold_with_another_rule():
    for name in ("first-curious", "first-mixture"):
        with pytest.warns(UserWarning, match="kept no signals: .* p_max until they are trained on"):
            buffer = ReplayBuffer.load(OLD / name, rule=Adversarial(p_max=3.0))
        drawable = buffer.priorities(buffer.ids())
        assert set(drawable[drawable > 0]) == {3.0}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            counted = ReplayBuffer.load(OLD / name, rule=Count(c=100.0, beta=0.5))
        visits, p = counted.visits(counted.ids()), counted.priorities(counted.ids())
        seen = (visits > 0) & (p > 0)
        np.testing.assert_array_equal(p[seen], 100.0 * 0.5 ** (visits[seen] - 1))


def test_saves_of_the_second_format_go_on_as_they_were(tmp_path):
    buffer = ReplayBuffer.load(OLD / "second-curious")
    assert buffer.rule == Curious(dialect="dv2")
    assert buffer.queue is None
    stats = buffer.stats()
    assert (stats["sampled"], stats["online"], stats["written"]) == (6, 0, 0)
    assert SavedBuffer(OLD / "second-curious").signals["model"].shape == (16,)
    buffer.save(tmp_path)
    for same in (buffer, ReplayBuffer.load(tmp_path)):
        drawn = same.sample(4).ids.tolist()
        assert drawn == [[3, 5, 7], [10, 12, 14], [3, 5, 7], [1, 3, 5]]
