"""The three MiniGrid worlds that change: what changes, when, and what stays."""

import numpy as np
import pytest
from helpers.trajectories import from_json, to_json
from minigrid.core.constants import OBJECT_TO_IDX
from minigrid.core.world_object import Ball, Door, Goal, Key, Lava, Wall

from curious_replay.envs import make
from curious_replay.envs.minigrids.key_swap import DOOR, OTHER, KeySwap
from curious_replay.envs.minigrids.lava import Lava as LavaWorld
from curious_replay.envs.minigrids.new_object import NewObject

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE = range(6)
EAST, SOUTH, WEST, NORTH = range(4)


def found(env, *kinds):
    """Cells with things of these kinds: {(x, y): thing}."""
    game = env._game
    cells = [(i % game.width, i // game.width) for i in range(game.width * game.height)]
    return {cell: game.grid.get(*cell) for cell in cells if isinstance(game.grid.get(*cell), kinds)}


def put(env, x, y, direction):
    env._game.agent_pos, env._game.agent_dir = (x, y), direction


# Key swap


def before_the_door(env, color):
    """Reset, put a key of this colour into the agent's hand, and it before the door."""
    env.reset(seed=1)
    ((x, y), door), *_ = found(env, Door).items()
    for cell in found(env, Key):
        env._game.grid.set(*cell, None)
    env._game.carrying = Key(color)
    put(env, x - 1, y, EAST)
    return door


@pytest.mark.parametrize(
    ("phase", "color", "opens"),
    [
        ("matching", DOOR, True),
        ("matching", OTHER, False),
        ("swapped", DOOR, False),
        ("swapped", OTHER, True),
    ],
)
def test_which_key_opens_the_door(phase, color, opens):
    env = KeySwap(phase=phase)
    door = before_the_door(env, color)
    env.step(TOGGLE)
    assert (door.is_open, door.is_locked) == (opens, not opens)
    *_, info = env.step(FORWARD)
    assert (info["log_agent_position"][1] == 3) == opens


def test_the_key_changes_at_its_frame_and_an_open_door_stays_open():
    env = KeySwap(schedule=((0, "matching"), (2, "swapped")))
    door = before_the_door(env, OTHER)
    env.step(TOGGLE)
    assert door.is_locked
    *_, info = env.step(LEFT)
    assert (info["phase"], info["frame"]) == ("swapped", 2)
    env.step(RIGHT)
    env.step(TOGGLE)
    assert door.is_open
    env.set_phase("matching")
    env.step(TOGGLE)  # an unlocked door needs no key
    assert not door.is_open
    assert not door.is_locked
    env.step(TOGGLE)
    assert door.is_open


def test_nothing_shows_which_key_it_is_but_keys_do_not_look_alike():
    worlds = [KeySwap(phase=phase, image_size=16) for phase in ("matching", "swapped")]
    before, after = (env.reset(seed=2)[0]["image"] for env in worlds)
    np.testing.assert_array_equal(before, after)
    held = []
    for color in (DOOR, OTHER):
        before_the_door(worlds[0], color)
        held.append(worlds[0].step(LEFT)[0]["image"])
    assert np.abs(held[0].astype(int) - held[1]).max() > 100


def test_the_goal_is_behind_the_door_and_ends_the_episode():
    env = KeySwap(size=6, length=50)
    before_the_door(env, DOOR)
    env.step(TOGGLE)
    ((x, y), _), *_ = found(env, Goal).items()
    put(env, x, y - 1, SOUTH)
    _, reward, terminated, truncated, _ = env.step(FORWARD)
    assert (reward, terminated, truncated) == (1 - 0.9 * 2 / 50, True, False)


@pytest.mark.parametrize("size", [6, 7, 10])
def test_keys_and_agent_lie_before_the_wall_in_every_episode(size):
    env = KeySwap(size=size)
    places = set()
    for seed in range(20):
        env.reset(seed=seed)
        keys = found(env, Key)
        assert sorted(key.color for key in keys.values()) == sorted((DOOR, OTHER))
        assert all(x < size - 3 for x, _ in [*keys, tuple(env._game.agent_pos)])
        (door,) = found(env, Door)
        assert door[0] == size - 3
        places.add((*sorted(keys), door))
    assert len(places) > 10


# Lava


def inside(cells):
    """Those of a world of 9 cells that are not on its border."""
    return {(x, y) for x, y in cells if 0 < x < 8 and 0 < y < 8}


def test_walls_become_lava_and_walls_again():
    env = LavaWorld(schedule=((0, "walls"), (2, "lava"), (4, "walls")), crossings=2)
    observation, info = env.reset(seed=3)
    inner = inside(found(env, Wall))
    assert len(inner) > 8
    outer = set(found(env, Wall)) - inner
    assert len(outer) == 32
    seen = [(info["phase"], observation["image"].tobytes())]
    for step in range(1, 6):
        observation, *_, info = env.step(LEFT)
        lava = step in (2, 3)
        assert info["phase"] == ("lava" if lava else "walls")
        assert set(found(env, Lava)) == (inner if lava else set())
        assert set(found(env, Wall)) == (outer if lava else inner | outer)
        seen.append((info["phase"], observation["image"].tobytes()))
    assert seen[0] == seen[4]  # turned once round, and walls again


def test_lava_is_seen_and_seen_across():
    looks = []
    for phase in ("walls", "lava"):
        env = LavaWorld(phase=phase, observation="symbols", crossings=6)
        looks.append(env.reset(seed=0)[0]["vector"][::3])
    walls, lava = looks
    assert (lava == OBJECT_TO_IDX["lava"]).sum() > 3
    assert (lava == 0).sum() < (walls == 0).sum()  # less is hidden


@pytest.mark.parametrize(("phase", "ends"), [("walls", False), ("lava", True)])
def test_walls_stop_and_lava_ends(phase, ends):
    env = LavaWorld(phase=phase)
    env.reset(seed=0)
    x, y = min(inside(found(env, Wall, Lava)))
    beside = [(1, 0, WEST), (-1, 0, EAST), (0, 1, NORTH), (0, -1, SOUTH)]
    i, j, direction = next(b for b in beside if env._game.grid.get(x + b[0], y + b[1]) is None)
    put(env, x + i, y + j, direction)
    _, reward, terminated, truncated, info = env.step(FORWARD)
    assert (reward, terminated, truncated) == (0, ends, False)
    assert (info["log_agent_position"].tolist() == [y, x]) == ends


# New object


def walled_off(env):
    """Reset in phase "object", with the ball at (2, 3) of the first room."""
    env.reset(seed=0)
    for cell in found(env, Ball):
        env._game.grid.set(*cell, None)
    env._game._put_ball((3, 3))
    put(env, 1, 3, EAST)
    return env


def test_walking_into_the_object_pushes_it_and_is_counted_as_in_two_rooms():
    env = walled_off(NewObject(phase="object"))  # rooms of 5 cells, 1 to 5
    infos = [env.step(FORWARD)[4] for _ in range(5)]
    assert [info["log_contacts"] for info in infos] == [0, 1, 1, 1, 1]
    assert [info["log_interactions"] for info in infos] == [0, 1, 0, 0, 0]
    assert [info["log_object_position"].tolist() for info in infos] == [
        [3, 3],
        [3, 4],
        [3, 5],
        [3, 6],
        [3, 7],
    ]  # through the gap in the wall
    assert infos[-1]["log_agent_position"].tolist() == [3, 6]
    # Turned away and back: still the same interaction, for they were never apart.
    again = [env.step(action)[4] for action in (LEFT, RIGHT, FORWARD)]
    assert [info["log_interactions"] for info in again] == [0, 0, 0]
    env.step(LEFT)
    env.step(LEFT)
    apart = [env.step(action)[4] for action in (FORWARD, LEFT, LEFT, FORWARD, FORWARD)]
    assert [info["log_contacts"] for info in apart] == [0, 0, 0, 0, 1]
    assert [info["log_interactions"] for info in apart] == [0, 0, 0, 0, 1]


def test_against_the_wall_the_object_stays():
    env = walled_off(NewObject(phase="object"))
    put(env, 3, 4, NORTH)
    infos = [env.step(FORWARD)[4] for _ in range(4)]
    assert infos[-1]["log_object_position"].tolist() == [1, 3]
    assert infos[-1]["log_agent_position"].tolist() == [2, 3]
    assert infos[-1]["log_contacts"] == 1
    assert [info["log_interactions"] for info in infos] == [1, 0, 0, 0]


def test_the_object_appears_at_its_frame_out_of_sight_and_goes():
    schedule = ((0, "empty"), (3, "object"), (5, "empty"))
    for seed in range(30):
        env = NewObject(schedule=schedule, image_size=16)
        _, info = env.reset(seed=seed)
        for step in range(1, 7):
            _, reward, terminated, truncated, info = env.step(FORWARD)
            there = step in (3, 4)
            assert (len(found(env, Ball)) == 1) == there
            assert (info["log_object_position"].tolist() != [-1, -1]) == there
            assert (reward, terminated, truncated) == (0, False, False)
            if step == 3:
                assert info["log_object_pixels"] == 0
                x, y = env._game.ball
                around = ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1))
                assert all(env._game.grid.get(*cell) is None for cell in around)


def test_pixels_of_the_object_are_counted_in_the_picture():
    env = walled_off(NewObject(phase="object", image_size=16))
    env.step(LEFT)
    assert env.step(LEFT)[4]["log_object_pixels"] == 0  # behind the agent
    env.step(LEFT)
    observation, *_, info = env.step(LEFT)
    blue = (observation["image"][..., 2] > observation["image"][..., 0]).sum()
    assert info["log_object_pixels"] == 4 == blue


def test_it_is_endless_unless_given_a_length():
    env = NewObject(length=2)
    env.reset(seed=0)
    assert [env.step(LEFT)[2:4] for _ in range(2)] == [(False, False), (False, True)]
    env = NewObject()
    env.reset(seed=0)
    assert not any(any(env.step(LEFT)[2:4]) for _ in range(500))


# All three


WORLDS = [KeySwap, LavaWorld, NewObject]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("observation", ["pixels", "symbols"])
def test_saved_and_loaded_at_any_step_it_goes_on_as_before(world, observation):
    """With keys carried, doors opened, balls pushed, phases changed and episodes ended."""
    phases = world().clock.known

    def fresh():
        schedule = [(30 * i, phases[i % 2]) for i in range(9)]
        return world(schedule=schedule, length=40, observation=observation, image_size=16)

    env, other = fresh(), fresh()
    env.action_space.seed(0)
    env.reset(seed=0)
    for step in range(240):
        action = env.action_space.sample()
        if step % 7 == 0:
            other.set_state(from_json(to_json(env.get_state())))
        outcome = env.step(action)
        assert to_json(other.step(action)) == to_json(outcome)
        if outcome[2] or outcome[3]:
            assert to_json(other.reset()) == to_json(env.reset())


@pytest.mark.parametrize("world", WORLDS)
def test_a_state_of_another_size_is_refused_and_one_before_reset_is_not(world):
    small, large = world(), world(size=17)
    with pytest.raises(ValueError, match=r"this state has \(.*\) cells, this world \(17, 17\)"):
        large.set_state(small.get_state())
    other = world()
    other.reset(seed=3)
    other.set_state(small.get_state())
    assert to_json(other.reset()) == to_json(small.reset())


@pytest.mark.parametrize("world", WORLDS)
def test_the_way_there_is_a_matter_of_few_actions(world):
    assert world().action_space.n == (6 if world is KeySwap else 3)


@pytest.mark.parametrize(
    ("world", "setting", "message"),
    [
        (KeySwap, {"size": 5}, "size must be at least 6 cells, walls included, got 5"),
        (KeySwap, {"length": 0}, "length"),
        (KeySwap, {"phase": "lava"}, "unknown phase 'lava'"),
        (LavaWorld, {"size": 8}, "size must be an odd number of cells from 5 on, got 8"),
        (LavaWorld, {"size": 3}, "size"),
        (LavaWorld, {"size": 5, "crossings": 3}, "crossings must be from 1 to 2 at size 5, got 3"),
        (LavaWorld, {"crossings": 0}, "crossings"),
        (LavaWorld, {"length": 0}, "length"),
        (NewObject, {"size": 11}, "size must be 9, 13, 17 or so on"),
        (NewObject, {"size": 5}, "size"),
        (NewObject, {"length": 0}, "length"),
        (NewObject, {"schedule": ((0, "ball"),)}, "unknown phase 'ball'"),
        (NewObject, {"view": 2}, "view"),
    ],
)
def test_bad_settings_are_refused(world, setting, message):
    with pytest.raises(ValueError, match=message):
        world(**setting)


@pytest.mark.parametrize("name", ["key-swap", "lava", "new-object"])
def test_all_of_it_is_played_from_16_pixels(name):
    env = make(f"minigrid/{name}", scale="mini", image_size=16)
    observation, _ = env.reset(seed=0)
    assert observation["image"].shape == (16, 16, 3)
    assert env.clock.schedule.changes[1][0] == 20_000
