"""Crafter's measures on games made up by hand."""

import math

import numpy as np
import pytest
from helpers.folders import counters, write_run, write_snapshot

from curious_replay.analysis import crafter, crafter_replay, load, replay_probe


def games(*sets):
    """Unlocked achievements of episodes, given by name."""
    return np.array([[name in names for name in crafter.SPECTRUM] for names in sets])


def test_names_are_those_of_the_game():
    from curious_replay.envs import crafter as game  # noqa: PLC0415

    assert set(crafter.SPECTRUM) == set(game.ACHIEVEMENTS)
    assert len(crafter.SPECTRUM) == 22
    assert crafter.ITEMS == game.ITEMS
    assert len(crafter.HARD) == 13
    assert set(crafter_replay.FOUND_BY) < set(crafter.ITEMS)
    assert set(crafter_replay.FOUND_BY.values()) < set(crafter.SPECTRUM)


def test_the_formulas_worked_example():
    assert crafter.score([100, 50, 0, 1]) == pytest.approx(9.0746597, abs=5e-8)
    assert crafter.score([0] * 22) == 0
    assert crafter.score([100] * 22) == pytest.approx(100)


def test_success_counts_episodes_within_the_budget():
    unlocked = games({"wake_up"}, {"wake_up", "eat_cow"}, set(), {"collect_diamond"})
    lengths = [40, 30, 30, 1]
    rates = dict(zip(crafter.SPECTRUM, crafter.success_rates(lengths, unlocked, 100), strict=True))
    assert rates["wake_up"] == pytest.approx(200 / 3)
    assert rates["eat_cow"] == pytest.approx(100 / 3)
    assert rates["collect_diamond"] == 0
    assert crafter.within_budget(lengths, 99) == 2
    assert np.isnan(crafter.success_rates([101], unlocked[:1], 100)).all()


def test_success_in_a_moving_average():
    unlocked = games(set(), {"wake_up"}, {"wake_up"}, set())
    found = crafter.success_over_time([10] * 4, unlocked, [5, 10, 20, 30, 40, 70], window=20)
    np.testing.assert_array_equal(found[:, 0], [np.nan, 0, 50, 100, 50, np.nan])


def test_steps_to_one_per_cent_of_the_average_agent():
    never = games(*[set()] * 10)
    late = games(*[set()] * 5, *[{"collect_wood"}] * 5)
    lengths = [10] * 10
    wood = crafter.SPECTRUM.index("collect_wood")
    options = {"window": 20, "every": 5, "budget": 100}
    one = crafter.steps_to_success([(lengths, late)], **options)
    assert one[wood] == 60
    assert np.isnan(np.delete(one, wood)).all()
    runs = [(lengths, late), (lengths, never)]
    assert crafter.steps_to_success(runs, percent=50, **options)[wood] == 70  # 100 and 0 %
    assert math.isnan(crafter.steps_to_success(runs, percent=51, **options)[wood])
    # A run that stopped before has no say in what comes later.
    runs = [(lengths, late), (lengths[:5], never[:5])]
    assert crafter.steps_to_success(runs, percent=100, **options)[wood] == 70
    assert crafter.steps_to_success(runs, **options)[wood] == 60
    assert np.isnan(crafter.steps_to_success([], **options)).all()


def test_episodes_of_a_run(tmp_path):
    line = {"mode": "train", "length": 7, "achievement/wake_up": 2, "achievement/eat_cow": 0}
    episodes = [{**counters(7), **line}, {**counters(9), **line, "mode": "eval"}, {**counters(14)}]
    run = load.load_run(write_run(tmp_path / "a", env="crafter", episodes=episodes))
    lengths, unlocked = crafter.episodes_of(run)
    assert lengths.tolist() == [7, 0]
    assert unlocked.shape == (2, 22)
    assert unlocked[:, crafter.SPECTRUM.index("wake_up")].tolist() == [True, False]
    assert unlocked.sum() == 1
    empty = load.load_run(write_run(tmp_path / "b", env="crafter"))
    assert np.isnan(crafter.success_rates(*crafter.episodes_of(empty))).all()


def test_sampling_relative_to_uniform():
    # Four steps can be drawn, their mean priority is 2; holding are those of 1, 5 and one that
    # cannot be drawn: the median of 0.5 and 2.5.
    chance = replay_probe.relative([1, 1, 1, 5, 0])
    holding = [True, False, False, True, True]
    assert crafter.relative_sampling(chance, holding) == 1.5
    assert math.isnan(crafter.relative_sampling(chance, [False] * 5))
    assert math.isnan(crafter.relative_sampling([], []))


def test_training_relative_to_uniform():
    found = crafter.relative_training([4, 2, 6, 9], [2, 2, 2, 0], [True, False, True, True])
    assert found == 2.5
    assert math.isnan(crafter.relative_training([1], [1], [False]))


def test_resources_held():
    inventory = np.zeros((2, 16), np.uint8)
    inventory[1, crafter.ITEMS.index("stone_pickaxe")] = 1
    assert crafter.held(inventory, "stone_pickaxe").tolist() == [False, True]
    assert crafter.held(inventory, "iron").tolist() == [False, False]


def test_checkpoints_after_a_step():
    assert crafter.checkpoint_after(1, 100) == 100
    assert crafter.checkpoint_after(100, 100) == 100
    assert crafter.checkpoint_after(101, 100) == 200
    assert math.isnan(crafter.checkpoint_after(math.nan, 100))


def crafter_run(folder, seed):
    """Wood is collected from step 300 on; two snapshots, wood is held in the second alone."""
    episodes = [
        {
            **counters(100 * i),
            "mode": "train",
            "length": 100,
            "achievement/collect_wood": int(i > 2),
        }
        for i in range(1, 11)
    ]
    run = write_run(folder, env="crafter", episodes=episodes, seed=seed, steps=1000,
                    replay_settings={"capacity": 1000})  # fmt: skip
    inventory = np.zeros((4, 16), np.uint8)
    write_snapshot(run, 250, ids=range(4), visits=[1, 1, 1, 1], priorities=[[1, 1, 1, 1.0]],
                   log_inventory=inventory)  # fmt: skip
    inventory[2:, crafter.ITEMS.index("wood")] = 3
    # Mean priority 2: steps that hold wood have 1 and 3 times the chance of uniform replay.
    write_snapshot(run, 500, ids=range(4), visits=[1, 1, 4, 6], priorities=[[0.0, 1, 3, 2 + seed]],
                   log_inventory=inventory)  # fmt: skip
    return load.load_run(run)


def test_tables_by_resource_held(tmp_path):
    runs = [crafter_run(tmp_path / str(seed), seed) for seed in range(2)]
    found = crafter_replay.sampling_by_resource(runs, budget=1000)
    # p · N / Σp: 3 · 3 / 6 and 2 · 3 / 6 of the first, 9 / 7 twice of the second.
    assert found["wood"].values == pytest.approx([1.25, 9 / 7])
    assert found["wood"].steps == [500, 500]  # success comes at step 500, not before 300
    assert np.isnan(found["iron"].values).all()
    trained = crafter_replay.training_by_resource(runs)
    expected = replay_probe.uniform_visits(range(4), 4, 12)
    assert trained["wood"].values[0] == pytest.approx((4 / expected[2] + 6 / expected[3]) / 2)
    assert trained["wood"].steps == [500, 500]
    assert np.isnan(trained["stone"].values).all()
    assert len(trained["stone"].steps) == 2
    bare = load.load_run(write_run(tmp_path / "bare", env="crafter"))
    assert np.isnan(crafter_replay.sampling_by_resource([bare], 1000)["wood"].values).all()
    assert np.isnan(crafter_replay.training_by_resource([bare])["wood"].values).all()
