import crafter
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from curious_replay.envs import make
from curious_replay.envs.crafter import ACHIEVEMENTS, ACTIONS, ITEMS, CrafterEnv


def play(env, actions):
    """Bytes of every picture, reward and info that the actions lead to."""
    record = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        record.append((observation["image"].tobytes(), reward, terminated, truncated, str(info)))
        if terminated or truncated:
            observation, info = env.reset()
            record.append((observation["image"].tobytes(), str(info)))
    return record


def random_actions(count, seed=0):
    return np.random.default_rng(seed).integers(len(ACTIONS), size=count)


def test_worlds_of_a_seed_are_those_of_the_package():
    env, stock = CrafterEnv(), crafter.Env(seed=7)
    for seed in (7, None, None):
        observation, _ = env.reset(seed=seed)
        np.testing.assert_array_equal(observation["image"], stock.reset())
        for action in (1, 5, 2):
            np.testing.assert_array_equal(env.step(action)[0]["image"], stock.step(action)[0])


def test_unseeded_environments_differ():
    envs = [CrafterEnv() for _ in range(2)]
    for env in envs:
        env.reset()
    first, second = (env.get_state()["materials"] for env in envs)
    assert (first != second).any()


def test_deterministic_game_repeats_itself():
    actions = random_actions(600)
    records = []
    for _ in range(2):
        env = CrafterEnv(deterministic=True)
        env.reset(seed=3)
        records.append(play(env, actions))
    assert records[0] == records[1]


def test_creatures_are_presented_in_order_of_age(monkeypatch):
    seen = []

    def note(self, chunk, objs):
        seen.append([self._world._objects.index(obj) for obj in objs])

    monkeypatch.setattr(crafter.Env, "_balance_chunk", note)
    env = CrafterEnv(deterministic=True)
    env.reset(seed=0)
    for _ in range(10):  # chunks are looked at every tenth step
        env.step(0)
    assert max(len(slots) for slots in seen) > 2
    assert all(slots == sorted(slots) for slots in seen)


def test_gymnasium_finds_nothing_wrong_with_the_stock_game():
    check_env(make("crafter"))


def test_which_game_is_played_is_recorded():
    assert CrafterEnv().reset()[1]["deterministic"] is False
    assert CrafterEnv(deterministic=True).reset()[1]["deterministic"] is True


@pytest.mark.parametrize("done", [0, 250])
def test_saved_game_goes_on_bit_by_bit(done):
    # 250 steps reach the night, whose noise is drawn from the world's random numbers.
    env = CrafterEnv(deterministic=True)
    env.reset(seed=11)
    play(env, random_actions(done, seed=1))
    state = env.get_state()
    other = CrafterEnv(deterministic=True)
    other.set_state(state)
    more = random_actions(400, seed=2)
    assert play(env, more) == play(other, more)


def test_saved_game_keeps_creatures_arrows_and_plants():
    env = CrafterEnv(deterministic=True)
    env.reset(seed=2)
    world, player = env._game._world, env._game._player
    x, y = player.pos
    for cls, offset in (("Skeleton", (3, 0)), ("Zombie", (0, 3)), ("Cow", (-2, 0))):
        creature = getattr(crafter.objects, cls)
        extra = () if cls == "Cow" else (player,)
        cell = (x + offset[0], y + offset[1])
        world[cell] = "path"
        if world[cell][1] is None:
            world.add(creature(world, cell, *extra))
    world.add(crafter.objects.Arrow(world, (x, y - 3), np.array((0, 1))))
    world.add(crafter.objects.Plant(world, (x + 1, y - 3)))
    saved = env.get_state()
    other = CrafterEnv(deterministic=True)
    other.set_state(saved)
    kinds = {type(obj).__name__ for obj in other._game._world.objects}
    assert kinds >= {"Player", "Skeleton", "Zombie", "Cow", "Arrow", "Plant"}
    actions = random_actions(60, seed=5)
    assert play(env, actions) == play(other, actions)


def test_saved_state_is_not_changed_by_playing_on():
    env = CrafterEnv(deterministic=True)
    env.reset(seed=4)
    state = env.get_state()
    actions = random_actions(120, seed=6)
    first = play(env, actions)
    env.set_state(state)
    assert play(env, actions) == first


def test_state_of_the_other_game_is_refused():
    env = CrafterEnv(deterministic=True)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="deterministic=True"):
        CrafterEnv().set_state(env.get_state())
    with pytest.raises(ValueError, match="area"):
        CrafterEnv(deterministic=True, area=32).set_state(env.get_state())


def test_achievements_and_inventory_are_reported():
    env = CrafterEnv()
    _, info = env.reset(seed=0)
    assert info["achievements"] == dict.fromkeys(ACHIEVEMENTS, 0)
    assert info["inventory"]["health"] == 9
    env._game._player.inventory["wood"] = 9
    _, reward, *_, info = env.step(ACTIONS.index("place_table"))
    assert reward == 1.0
    assert info["achievements"]["place_table"] == 1
    assert info["log_achievements"][ACHIEVEMENTS.index("place_table")] == 1
    assert info["log_achievements"].sum() == 1
    left = info["inventory"]["wood"]
    assert left < 9
    assert info["log_inventory"][ITEMS.index("wood")] == left


def test_without_reward_the_agent_gets_none_and_the_log_keeps_it():
    env = CrafterEnv(reward=False)
    env.reset(seed=0)
    env._game._player.inventory["wood"] = 9
    _, reward, *_, info = env.step(ACTIONS.index("place_table"))
    assert reward == 0.0
    assert info["log_reward"] == 1.0


def test_death_terminates_and_length_truncates():
    env = CrafterEnv(length=3)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    env.reset()
    env._game._player.health = 0
    assert env.step(0)[2:4] == (True, False)


def test_endless_when_length_is_zero():
    env = CrafterEnv(length=0)
    env.reset(seed=0)
    assert not any(any(env.step(0)[2:4]) for _ in range(20))


def test_looking_does_not_change_the_game():
    actions = random_actions(260, seed=9)
    records = []
    for looks in (0, 1):
        env = CrafterEnv(deterministic=True, render_mode="rgb_array")
        env.reset(seed=5)
        record = []
        for action in actions:
            record += play(env, [action])
            for _ in range(looks):
                env.render()
        records.append(record)
    assert records[0] == records[1]


@pytest.mark.parametrize("size", [32, 128])
def test_image_size(size):
    env = CrafterEnv(image_size=size)
    assert env.reset(seed=0)[0]["image"].shape == (size, size, 3)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"image_size": 16}, "image_size"),
        ({"view": 4}, "view"),
        ({"length": -1}, "length"),
        ({"area": 4}, "area"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        CrafterEnv(**setting)


def test_bad_use_is_refused():
    env = CrafterEnv()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.get_state()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="got 17"):
        env.step(17)
