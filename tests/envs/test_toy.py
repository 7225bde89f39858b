import gymnasium
import numpy as np
import pytest
from helpers.trajectories import from_json, to_json

from curious_replay.envs.schedule import Schedule
from curious_replay.envs.toys import mirror
from curious_replay.envs.toys.mirror import Mirror
from curious_replay.envs.toys.toy import CountingPicture, CountingWorld, read_count
from curious_replay.envs.toys.two_rooms import DOWN, LEFT, RIGHT, STAY, UP, TwoRooms

MAGENTA = (255, 0, 255)


def magenta_pixels(image):
    return int((image == MAGENTA).all(-1).sum())


def walk(env, actions):
    """The infos of these actions."""
    return [env.step(action)[4] for action in actions]


def test_counting_world_shows_step_episode_and_action():
    env = CountingWorld(length=3)
    observation, _ = env.reset(seed=0)
    assert read_count(observation["image"]) == CountingPicture(step=0, episode=0, action=None)
    for step, action in enumerate((2, 0, 1), start=1):
        observation, reward, terminated, truncated, info = env.step(action)
        assert read_count(observation["image"]) == CountingPicture(step, 0, action)
        assert reward == step
        assert info["log_step"] == step
        assert (terminated, truncated) == (step == 3, False)
    observation, _ = env.reset()
    assert read_count(observation["image"]) == CountingPicture(step=0, episode=1, action=None)


@pytest.mark.parametrize("size", [16, 32, 33, 64, 128])
def test_counts_beyond_one_byte_are_readable_at_every_size(size):
    env = CountingWorld(length=10**6, image_size=size)
    env.reset(seed=0)
    env.set_state({**env.get_state(), "step": 70_000, "episode": 300})
    observation, *_ = env.step(1)
    assert read_count(observation["image"]) == CountingPicture(70_001, 300, 1)


def test_counting_world_may_end_by_time_limit():
    env = CountingWorld(length=1, ending="truncated")
    env.reset(seed=0)
    assert env.step(0)[2:4] == (False, True)


def test_object_appears_at_its_frame_and_goes():
    schedule = Schedule(((0, "empty"), (3, "object"), (5, "empty")))
    env = TwoRooms(schedule=schedule, view=None)
    observation, info = env.reset(seed=0)
    seen = [(info["frame"], info["phase"], magenta_pixels(observation["image"]) > 0)]
    for _ in range(6):
        observation, *_, info = env.step(STAY)
        assert info["log_object_pixels"] == magenta_pixels(observation["image"])
        seen.append((info["frame"], info["phase"], info["log_object_pixels"] > 0))
    assert seen == [
        (0, "empty", False), (1, "empty", False), (2, "empty", False), (3, "object", True),
        (4, "object", True), (5, "empty", False), (6, "empty", False),
    ]  # fmt: skip


def test_frames_count_over_resets_and_parallel_environments():
    env = TwoRooms(schedule=((0, "empty"), (8, "object")), parallel=4, view=None)
    env.reset(seed=0)
    assert walk(env, [STAY])[0]["frame"] == 4
    _, info = env.reset()
    assert info["frame"] == 4
    assert walk(env, [STAY])[0]["phase"] == "object"


def test_evaluation_can_hold_any_phase():
    env = TwoRooms(view=None, phase="object")
    observation, _ = env.reset(seed=0)
    assert magenta_pixels(observation["image"]) > 0
    env.set_phase("empty")
    assert magenta_pixels(env.step(STAY)[0]["image"]) == 0
    env.set_phase(None)
    assert walk(env, [STAY])[0]["phase"] == "empty"
    env.set_frame(5_000)
    assert walk(env, [STAY])[0]["log_object_pixels"] > 0


def test_object_is_out_of_sight_until_found():
    env = TwoRooms(phase="object", room=5, view=3)
    _, info = env.reset(seed=0)
    assert info["log_object_pixels"] == 0
    assert walk(env, [RIGHT] * 5)[-1]["log_object_pixels"] > 0


def test_walking_into_the_object_pushes_it_and_is_counted():
    # Rooms of 5: agent in column 3, door in 6, object in column 9 of the same row 3.
    env = TwoRooms(phase="object", room=5, view=None)
    _, info = env.reset(seed=0)
    assert (info["log_agent_position"].tolist(), info["log_object_position"].tolist()) == (
        [3, 3],
        [3, 9],
    )
    infos = walk(env, [RIGHT] * 5)
    assert sum(info["log_contacts"] for info in infos) == 0
    pushes = walk(env, [RIGHT, RIGHT])
    assert [info["log_contacts"] for info in pushes] == [1, 1]
    assert [info["log_interactions"] for info in pushes] == [1, 0]
    assert pushes[-1]["log_object_position"].tolist() == [3, 11]
    # Against the wall the object stays, and so does the agent: still a contact, not a new one.
    blocked = walk(env, [RIGHT])[0]
    assert (blocked["log_contacts"], blocked["log_interactions"]) == (1, 0)
    assert blocked["log_agent_position"].tolist() == [3, 10]
    # Apart and back: a new interaction.
    again = walk(env, [LEFT, RIGHT, RIGHT])
    assert [info["log_interactions"] for info in again] == [0, 0, 1]


@pytest.mark.parametrize("rooms", [2, 3, 6])
def test_more_rooms_lie_between_the_agent_and_the_object(rooms):
    # Rooms of 5: middles in columns 3, 9, 15, ..., doors in 6, 12, ..., all in row 3.
    env = TwoRooms(phase="object", room=5, rooms=rooms, view=None)
    observation, info = env.reset(seed=0)
    last = 6 * rooms - 3
    assert info["log_object_position"].tolist() == [3, last]
    floors = {tuple(pixel) for pixel in observation["image"].reshape(-1, 3).tolist()}
    assert len(floors) == 3 + 2 * min(rooms, 4)  # wall, agent, object; two colours a room
    infos = walk(env, [RIGHT] * (last - 3))
    assert [info["log_contacts"] for info in infos].index(1) == last - 4
    assert infos[-1]["log_agent_position"].tolist() == [3, last]
    env.reset()
    assert walk(env, [UP] + [RIGHT] * 9)[-1]["log_agent_position"].tolist() == [2, 5]  # no door


def test_a_large_object_is_pushed_as_one_and_stops_at_walls():
    # Rooms of 5: door in column 6, an object of 3 x 3 cells about column 9 of row 3.
    env = TwoRooms(phase="object", room=5, object_size=3, view=None, image_size=7 * 13)
    observation, info = env.reset(seed=0)
    assert info["log_object_position"].tolist() == [3, 9]
    assert magenta_pixels(observation["image"]) == info["log_object_pixels"]
    assert info["log_object_pixels"] == 9 * 13 * 7
    assert sum(info["log_contacts"] for info in walk(env, [RIGHT] * 4)) == 0
    (touch,) = walk(env, [RIGHT])
    assert touch["log_agent_position"].tolist() == [3, 8]  # where the object's edge was
    assert touch["log_object_position"].tolist() == [3, 10]
    (stuck,) = walk(env, [RIGHT])
    assert (stuck["log_contacts"], stuck["log_object_position"].tolist()) == (1, [3, 10])
    assert stuck["log_agent_position"].tolist() == [3, 8]
    apart, beside, again = walk(env, [UP, UP, RIGHT])
    assert [info["log_contacts"] for info in (apart, beside, again)] == [0, 0, 0]
    assert again["log_agent_position"].tolist() == [1, 9]  # above it
    (down,) = walk(env, [DOWN])
    assert (down["log_contacts"], down["log_interactions"]) == (1, 1)
    assert down["log_object_position"].tolist() == [4, 10]


def test_an_object_waits_until_the_agent_is_out_of_its_place():
    env = TwoRooms(schedule=((0, "empty"), (6, "object")), room=5, object_size=3, view=None)
    env.reset(seed=0)
    *_, covered = walk(env, [RIGHT] * 6)  # in the middle of the second room
    assert covered["phase"] == "object" and covered["log_object_pixels"] == 0
    (info,) = walk(env, [LEFT])
    assert info["log_object_position"].tolist() == [3, 10]  # one cell on, beside the agent
    env.set_phase("empty")
    assert walk(env, [STAY])[0]["log_object_pixels"] == 0
    walk(env, [LEFT])
    env.set_phase("object")
    assert walk(env, [STAY])[0]["log_object_position"].tolist() == [3, 9]  # its own place


def test_a_large_object_is_cut_by_the_edge_of_the_view_and_saved():
    settings = {"phase": "object", "room": 5, "object_size": 3, "view": 5, "image_size": 20}
    env, other = TwoRooms(**settings), TwoRooms(**settings)
    env.reset(seed=0)
    seen = [info["log_object_pixels"] for info in walk(env, [RIGHT] * 5)]
    assert seen == [0, 0, 3 * 16, 6 * 16, 9 * 16 - 3 * 16]  # columns of three cells, then pushed
    other.reset(seed=1)
    other.set_state(env.get_state())
    for action in (UP, RIGHT, DOWN, RIGHT):
        here, there = env.step(action), other.step(action)
        assert np.array_equal(here[0]["image"], there[0]["image"])
        assert here[-1]["log_object_position"].tolist() == there[-1]["log_object_position"].tolist()


def television(env, image):
    """The 3 x 3 cells of the television in a picture of a whole world of 7 x 13 cells."""
    rows, columns = env._pixels
    return image[np.isin(rows, (1, 2, 3))][:, np.isin(columns, (1, 2, 3))]


def test_a_television_shows_noise_at_every_step_and_nothing_else_does():
    env = TwoRooms(phase="object", room=5, view=None, television=3, render_mode="rgb_array")
    quiet = TwoRooms(phase="object", room=5, view=None)
    pictures = [env.reset(seed=0)[0]["image"]]
    quiet.reset(seed=0)
    screen = television(env, np.arange(64 * 64).reshape(64, 64))
    for action in (RIGHT, RIGHT, UP, DOWN, STAY):
        observation, *_, info = env.step(action)
        image, same = observation["image"], quiet.step(action)
        pictures.append(image.copy())
        np.testing.assert_array_equal(env.render(), image)  # to look again changes nothing
        assert info["log_object_pixels"] == same[4]["log_object_pixels"]
        unlike = np.flatnonzero((image != same[0]["image"]).any(-1))
        assert set(unlike) <= set(screen.reshape(-1))
    noise = [television(env, picture) for picture in pictures]
    assert len({each.tobytes() for each in noise}) == len(noise)
    assert all(50 < each.std() < 100 for each in noise[1:])
    np.testing.assert_array_equal(env.reset(seed=0)[0]["image"], pictures[0])


def test_a_television_goes_on_where_it_was():
    env, other = (TwoRooms(television=4, image_size=16, render_mode="rgb_array") for _ in range(2))
    env.reset(seed=3)
    env.step(UP)
    other.set_state(from_json(to_json(env.get_state())))
    np.testing.assert_array_equal(env.render(), other.render())
    for action in (LEFT, STAY, UP, RIGHT):
        assert to_json(env.step(action)) == to_json(other.step(action))


def test_the_agent_walks_over_the_television():
    env = TwoRooms(phase="empty", room=3, television=3, view=None)
    env.reset(seed=0)
    assert walk(env, [UP, LEFT])[-1]["log_agent_position"].tolist() == [1, 1]


def test_standing_beside_the_object_is_no_contact():
    env = TwoRooms(phase="object", room=5, view=None)
    env.reset(seed=0)
    infos = walk(env, [RIGHT] * 5 + [STAY, UP, DOWN, LEFT])
    assert sum(info["log_contacts"] for info in infos) == 0


def test_walls_stop_the_agent():
    env = TwoRooms(phase="empty", room=3, view=None)
    env.reset(seed=0)
    assert walk(env, [UP] * 5)[-1]["log_agent_position"].tolist() == [1, 2]
    assert walk(env, [RIGHT] * 5)[-1]["log_agent_position"].tolist() == [1, 3]


def test_object_does_not_appear_on_the_agent():
    env = TwoRooms(schedule=((0, "empty"), (6, "object")), room=5, view=None)
    env.reset(seed=0)
    info = walk(env, [RIGHT] * 6)[-1]
    assert info["log_agent_position"].tolist() == [3, 9]
    assert info["log_object_position"].tolist() == [3, 10]


def test_a_clock_that_is_set_is_followed_at_once():
    env = TwoRooms(schedule=((0, "empty"), (10, "object")), view=None, render_mode="rgb_array")
    env.reset(seed=0)
    seen = [magenta_pixels(env.render())]
    for change in (lambda: env.set_frame(10), lambda: env.set_phase("empty"),
                   lambda: env.set_phase(None), lambda: env.set_frame(9)):  # fmt: skip
        change()
        seen.append(magenta_pixels(env.render()))
    assert [number > 0 for number in seen] == [False, True, False, True, False]


def test_two_rooms_goes_on_unless_given_a_length():
    env = TwoRooms(length=2)
    env.reset(seed=0)
    assert [env.step(STAY)[3] for _ in range(2)] == [False, True]
    env = TwoRooms()
    env.reset(seed=0)
    assert not any(any(env.step(STAY)[2:4]) for _ in range(300))


def test_view_at_the_edge_of_the_world_shows_wall():
    env = TwoRooms(phase="empty", room=3, view=5)
    env.reset(seed=0)
    image = env.step(UP)[0]["image"]
    assert not image[: 64 // 5].any()  # two rows above the top floor row are wall
    assert image.any()


@pytest.mark.parametrize("size", [16, 33, 64])
def test_every_cell_in_view_has_a_pixel(size):
    env = TwoRooms(phase="object", room=5, view=None, image_size=size)  # 7 x 13 cells
    env.reset(seed=0)
    shown = set()
    for _ in range(5):  # through the door, up to the object
        image = env.step(RIGHT)[0]["image"]
        shown.add(tuple(map(int, np.argwhere((image == 245).all(-1))[0])))
        assert magenta_pixels(image) >= (size // 7) * (size // 13)
    assert len(shown) == 5
    observation, _ = Mirror(room=16, image_size=16).reset(seed=0)
    assert (observation["image"] == (60, 220, 90)).all(-1).sum() == 1  # the goal, of one cell


@pytest.mark.parametrize(
    ("world", "setting", "cells"),
    [
        (TwoRooms, {"view": None, "image_size": 16}, 21),
        (TwoRooms, {"view": 17, "image_size": 16}, 17),
        (TwoRooms, {"view": 33, "image_size": 32}, 33),
        (Mirror, {"room": 17, "image_size": 16}, 17),
    ],
)
def test_cells_without_a_pixel_are_refused(world, setting, cells):
    message = f"image_size is {setting['image_size']} pixels and {cells} cells are in view"
    with pytest.raises(ValueError, match=message):
        world(**setting)


@pytest.mark.parametrize(
    ("world", "setting", "message"),
    [
        (CountingWorld, {"ending": "done"}, "ending"),
        (CountingWorld, {"length": 0}, "length"),
        (CountingWorld, {"image_size": 8}, "image_size"),
        (Mirror, {"room": 1}, "room"),
        (Mirror, {"length": 0}, "length"),
        (Mirror, {"floor": "red"}, "floor must be 'plain' or 'random', got 'red'"),
        (Mirror, {"phase": "object"}, "unknown phase 'object'"),
        (TwoRooms, {"room": 2}, "room"),
        (TwoRooms, {"rooms": 1}, "at least 2 rooms, got 1"),
        (
            TwoRooms,
            {"object_size": 2},
            "an odd number of cells from 1 on, less than the 9 of a room",
        ),
        (TwoRooms, {"object_size": 5, "room": 5}, "less than the 5 of a room, got 5"),
        (TwoRooms, {"object_size": -1}, "object_size"),
        (TwoRooms, {"television": 10}, "television must be from 0 to 9 cells wide, got 10"),
        (TwoRooms, {"television": -1}, "television"),
        (TwoRooms, {"view": 4}, "view"),
        (TwoRooms, {"length": 0}, "length"),
        (TwoRooms, {"phase": "ball"}, "unknown phase 'ball'"),
        (TwoRooms, {"schedule": ((1, "empty"),)}, "begins with frame 0"),
    ],
)
def test_bad_settings_are_refused(world, setting, message):
    with pytest.raises(ValueError, match=message):
        world(**setting)


@pytest.mark.parametrize("world", [CountingWorld, TwoRooms, Mirror])
def test_bad_use_is_refused(world):
    env = world()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="Discrete"):
        env.step(9)


@pytest.mark.parametrize("world", [CountingWorld, TwoRooms, Mirror])
def test_render_is_the_observation(world):
    env = world(render_mode="rgb_array")
    env.reset(seed=0)
    np.testing.assert_array_equal(env.step(1)[0]["image"], env.render())


def last_of(env, *actions):
    return [env.step(action) for action in actions][-1]


def test_mirror_is_won_by_reaching_the_goal():
    env = Mirror(room=3, phase="straight")
    env.reset(seed=0)
    env._agent = np.array((0, 0))
    moves = (mirror.UP, mirror.RIGHT, mirror.RIGHT, mirror.DOWN)
    *_, terminated, truncated, info = last_of(env, *moves)
    assert info["log_agent_position"].tolist() == [1, 2]
    assert not terminated and not truncated
    _, reward, terminated, truncated, _ = env.step(mirror.DOWN)
    assert (reward, terminated, truncated) == (1.0, True, False)


def test_mirror_turns_moves_and_floor_at_its_frame():
    env = Mirror(room=3, schedule=((0, "straight"), (2, "mirrored")))
    observation, info = env.reset(seed=0)
    env._agent = np.array((1, 0))
    floor = observation["image"][0, -1].tolist()
    env.step(mirror.UP)
    observation, _, _, _, info = env.step(mirror.RIGHT)  # frame 2 shows the other floor
    assert info["phase"] == "mirrored"
    assert info["log_agent_position"].tolist() == [0, 1]
    assert observation["image"][0, -1].tolist() != floor
    *_, info = env.step(mirror.LEFT)
    assert info["log_agent_position"].tolist() == [0, 2]


def test_mirror_never_starts_at_the_goal_and_cuts_long_episodes():
    env = Mirror(room=2, length=3)
    starts = {tuple(env.reset(seed=seed)[1]["log_agent_position"].tolist()) for seed in range(50)}
    assert starts == {(0, 0), (0, 1), (1, 0)}
    env._agent = np.array((0, 0))
    *_, terminated, truncated, _ = last_of(env, mirror.UP, mirror.UP, mirror.UP)
    assert (terminated, truncated) == (False, True)


def test_mirror_may_have_a_floor_of_random_colours_that_still_tells_the_phase():
    env = Mirror(room=5, length=1000, floor="random", schedule=((0, "straight"), (40, "mirrored")),
                 render_mode="rgb_array")  # fmt: skip
    env.reset(seed=1)
    env._goal = np.array((-1, -1))  # never reached
    floors = {"straight": [], "mirrored": []}
    for step in range(80):
        observation, *_, info = env.step(step % 4)
        np.testing.assert_array_equal(env.render(), observation["image"])
        pixels = observation["image"].reshape(-1, 3)
        colors = {tuple(pixel) for pixel in pixels.tolist()} - {(245, 245, 245), (60, 220, 90)}
        assert len(colors) == 1
        floors[info["phase"]].append(*colors)
    assert len({*floors["straight"], *floors["mirrored"]}) > 75
    assert all(red < green < blue and blue - red >= 50 for red, green, blue in floors["straight"])
    assert all(red > green > blue and red - blue >= 50 for red, green, blue in floors["mirrored"])


def test_a_random_floor_goes_on_where_it_was():
    env, other = (Mirror(floor="random", image_size=16, render_mode="rgb_array") for _ in range(2))
    env.reset(seed=3)
    env.step(0)
    other.set_state(from_json(to_json(env.get_state())))
    np.testing.assert_array_equal(env.render(), other.render())
    for action in (0, 1, 2, 0):
        assert to_json(env.step(action)) == to_json(other.step(action))
    assert to_json(env.reset()) == to_json(other.reset())


@pytest.mark.parametrize(("world", "later"), [(TwoRooms, "noise"), (Mirror, "shade")])
def test_states_of_earlier_versions_go_on(world, later):
    env, other = world(), world()
    env.reset(seed=1)
    state = env.get_state()
    del state[later]
    other.set_state(state)
    assert to_json(env.step(1)) == to_json(other.step(1))
