"""What the agent of a MiniGrid game sees, and tasks as MiniGrid has them."""

from itertools import combinations

import gymnasium
import numpy as np
import pytest
from helpers.trajectories import from_json, to_json
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX
from minigrid.core.world_object import Door, Key

from curious_replay.envs import make
from curious_replay.envs.minigrids.view import View, _tiles
from curious_replay.envs.minigrids.world import MiniGridTask, full_id, tasks

EMPTY, WALL = OBJECT_TO_IDX["empty"], OBJECT_TO_IDX["wall"]
LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE, DONE = range(7)


def cells():
    """All that can lie in a cell, by name: object, colour, state."""
    yield "nothing seen", ("unseen", "red", "open")
    yield "nothing there", ("empty", "red", "open")
    yield "the agent", ("agent", "red", "open")
    yield "a wall", ("wall", "grey", "open")
    yield "the goal", ("goal", "green", "open")
    yield "lava", ("lava", "red", "open")
    for kind in ("floor", "key", "ball", "box", "door"):
        for color in COLOR_TO_IDX:
            for state in STATE_TO_IDX if kind == "door" else ("open",):
                yield f"{color} {kind} {state}", (kind, color, state)


@pytest.mark.parametrize("pixels", [2, 3, 4, 9])
def test_no_two_things_look_alike(pixels):
    tiles = _tiles(pixels).astype(int)
    looks = {
        name: tiles[OBJECT_TO_IDX[kind], COLOR_TO_IDX[color], STATE_TO_IDX[state]]
        for name, (kind, color, state) in cells()
    }
    for one, other in combinations(looks, 2):
        assert np.abs(looks[one] - looks[other]).max() >= 30, f"{one} and {other}"


@pytest.mark.parametrize(("size", "cell", "border"), [(16, 2, 1), (32, 4, 2), (64, 9, 0)])
def test_a_picture_is_made_of_whole_cells(size, cell, border):
    view = View(7, "pixels", size)
    symbols = np.zeros((7, 7, 3), np.uint8)
    symbols[..., 0] = EMPTY
    symbols[1, 4] = (OBJECT_TO_IDX["goal"], COLOR_TO_IDX["green"], 0)  # column 1, row 4
    image = view.observe(symbols)["image"]
    green = (image[..., 1] > 200) & (image[..., 0] < 100)
    assert green.sum() == cell**2
    rows, columns = np.nonzero(green)
    assert (rows.min(), columns.min()) == (border + 4 * cell, border + 1 * cell)
    seen = image.any(-1)
    assert seen.sum() == (7 * cell) ** 2  # all else is border, and black
    assert seen[border, border]


def test_the_agent_is_shown_unless_it_carries_something():
    view = View(5, "pixels", 32)
    symbols = np.zeros((5, 5, 3), np.uint8)
    symbols[2, 4] = (EMPTY, 0, 0)
    agent = view.observe(symbols)["image"]
    symbols[2, 4] = (OBJECT_TO_IDX["key"], COLOR_TO_IDX["blue"], 0)
    carrier = view.observe(symbols)["image"]
    assert agent[..., 0].max() == 255  # red
    assert carrier[..., 2].max() == 255
    assert carrier[..., 0].max() < 100


def test_symbols_are_a_row_of_numbers():
    env = make("minigrid/DoorKey-5x5", observation="symbols", view=5)
    stock = gymnasium.make("MiniGrid-DoorKey-5x5-v0", agent_view_size=5)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    np.testing.assert_array_equal(
        observation["vector"], stock.reset(seed=1)[0]["image"].reshape(-1)
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"view": 4}, "view must be an odd number of cells from 3 on, got 4"),
        ({"view": 9, "image_size": 16}, "9 cells are in view: a cell needs 2 x 2 pixels"),
        ({"image_size": 8}, "image_size must be from 16 to 128 pixels, got 8"),
        ({"observation": "words"}, "observation must be one of pixels, symbols, got 'words'"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
        ({"task": "None"}, "MiniGrid has no task 'None'"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        MiniGridTask(**{"task": "Empty-5x5", **setting})


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("DoorKey-5x5", "MiniGrid-DoorKey-5x5-v0"),
        ("MiniGrid-DoorKey-5x5-v0", "MiniGrid-DoorKey-5x5-v0"),
        ("DoorKey-5x5-v0", "MiniGrid-DoorKey-5x5-v0"),
        ("MultiRoom-N4-S5", "MiniGrid-MultiRoom-N4-S5-v1"),  # the newest
        ("MultiRoom-N4-S5-v1", "MiniGrid-MultiRoom-N4-S5-v1"),
        ("BabyAI-GoToObj", "BabyAI-GoToObj-v0"),
    ],
)
def test_short_names_of_tasks(name, full):
    assert full_id(name) == full
    assert make(f"minigrid/{name}").task == full
    assert tasks()["MultiRoom-N4-S5-v0"] == "MiniGrid-MultiRoom-N4-S5-v0"


@pytest.mark.filterwarnings("ignore:.*is out of date")  # older versions of tasks
def test_every_task_is_as_in_minigrid_and_goes_on_from_a_saved_state():
    """Same seed and actions, same rewards, ends and missions; also half-way from a state."""
    assert len(tasks()) > 150
    rng = np.random.default_rng(0)
    for name, full in tasks().items():
        env, other = (MiniGridTask(task=name, image_size=32) for _ in range(2))
        stock = gymnasium.make(full, disable_env_checker=True).unwrapped
        info, theirs = env.reset(seed=5)[1], stock.reset(seed=5)[0]
        for step in range(14):
            assert info["mission"] == theirs["mission"], name
            np.testing.assert_array_equal(info["log_agent_position"], stock.agent_pos[::-1])
            if step == 7:
                other.set_state(from_json(to_json(env.get_state())))
            action = int(rng.integers(env.action_space.n))
            outcome = env.step(action)
            theirs, reward, terminated, truncated, _ = stock.step(action)
            assert outcome[1:4] == (reward, terminated, truncated), name
            info, over = outcome[4], terminated or truncated
            if step >= 7:
                assert to_json(other.step(action)) == to_json(outcome), name
            if over:
                (picture, info), (theirs, _) = env.reset(), stock.reset()
                if step >= 7:
                    assert to_json(other.reset()) == to_json((picture, info)), name


def test_a_state_is_of_one_task_and_of_its_actions():
    env = make("minigrid/DoorKey-5x5")
    with pytest.raises(ValueError, match="this state is of MiniGrid-DoorKey-5x5-v0, this world is"):
        make("minigrid/Empty-5x5").set_state(env.get_state())
    env.reset(seed=0)
    state = {**env.get_state(), "actions": np.array([1, 9], np.uint8)}
    with pytest.raises(ValueError, match="this state has an action 9, which"):
        env.set_state(state)


def test_a_state_can_be_taken_before_the_first_reset():
    env, other = make("minigrid/DoorKey-5x5"), make("minigrid/DoorKey-5x5")
    other.reset(seed=9)
    other.set_state(env.get_state())
    with pytest.raises(gymnasium.error.ResetNeeded):
        other.step(0)
    assert to_json(env.reset()) == to_json(other.reset())


def test_rendering_shows_the_whole_world():
    env = make("minigrid/DoorKey-5x5", render_mode="rgb_array")
    env.reset(seed=0)
    image = env.render()
    assert image.shape == (80, 80, 3)
    assert (image == (0, 255, 0)).all(-1).any()  # the goal behind the door
    assert make("minigrid/DoorKey-5x5").render() is None


def test_carried_keys_and_doors_are_seen_in_small_pictures():
    env = make("minigrid/DoorKey-5x5", image_size=16)
    env.reset(seed=3)
    game = env._game
    door, key = (
        next(cell for cell in game.grid.grid if isinstance(cell, kind)) for kind in (Door, Key)
    )
    game.grid.set(*key.cur_pos, None)
    game.put_obj(key, 1, 1)
    game.agent_pos, game.agent_dir = (1, 2), 3  # right before it
    before = env.step(DONE)[0]["image"]
    held = env.step(PICKUP)[0]["image"]
    assert game.carrying is key
    agent = (slice(13, 15), slice(7, 9))  # the middle of the last row, of 2 pixels a cell
    assert (before[agent] != held[agent]).any()
    game.agent_pos, game.agent_dir = (door.cur_pos[0] - 1, door.cur_pos[1]), 0
    locked = env.step(DONE)[0]["image"]
    opened = env.step(TOGGLE)[0]["image"]
    assert door.is_open
    front = (slice(11, 13), slice(7, 9))
    assert (locked[front] != opened[front]).any()
