from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from curious_replay.envs.background import BackgroundSwap, RandomBackground
from curious_replay.envs.control import ControlSuite
from curious_replay.envs.drawing.landscape import FolderBackgrounds, PaintedBackgrounds
from curious_replay.envs.tasks import BACKGROUND_SWAP

SOON = ((0, "A"), (40, "B"), (80, "A"))
RED, GREEN, BLUE = (200, 0, 0), (0, 200, 0), (0, 0, 200)


def small(kind, **options):
    return kind(**{"camera": "ray", "image_size": 32, "painted": 5} | options)


@pytest.fixture
def folder(tmp_path):
    """Two clips of two pictures and a text file that is none."""
    for clip, colors in (("boat", (RED, BLUE)), ("bmx", (GREEN, BLUE))):
        (tmp_path / clip).mkdir()
        for number, color in enumerate(colors):
            Image.new("RGB", (40, 24), color).save(tmp_path / clip / f"{number:05d}.png")
    (tmp_path / "readme.txt").write_text("clips")
    return tmp_path


def top(env):
    """Colour of the upper left corner, where nothing but the background is."""
    return tuple(int(value) for value in env._observe()["image"][0, 0])


def test_backgrounds_swap_a_b_a_at_the_episodes_after_the_published_frames():
    assert BackgroundSwap.SCHEDULE.changes == ((0, "A"), (1_000_000, "B"), (2_000_000, "A"))
    env = small(BackgroundSwap, task="cartpole_balance", schedule=SOON, episode_frames=20)
    first, info = env.reset(seed=0)
    pictures, phases = [first["image"]], [info["phase"]]
    for _ in range(50):
        *_, over, _ = env.step(np.zeros(1))
        if over:
            observation, info = env.reset()
            pictures.append(observation["image"])
            phases.append(info["phase"])
    assert phases == ["A", "A", "B", "B", "A", "A"]
    sky = [picture[:4] for picture in pictures]  # above the pole
    for number, phase in enumerate(phases):
        assert (sky[number] == sky[0]).all() == (phase == "A")
    np.testing.assert_array_equal(sky[2], sky[3])


@pytest.mark.parametrize("task", BACKGROUND_SWAP)
def test_only_the_background_differs_between_a_and_b(task):
    images, worlds = [], []
    for phase in ("A", "B"):
        env = small(BackgroundSwap, task=task, phase=phase)
        images.append(env.reset(seed=0)[0]["image"].astype(int))
        worlds.append(env)
    assert (np.abs(images[0] - images[1]).sum(2) > 20).mean() > 0.5
    rng = np.random.default_rng(0)
    for _ in range(10):
        action = rng.uniform(-1, 1, worlds[0].action_space.shape)
        assert worlds[0].step(action)[1] == worlds[1].step(action)[1]
    np.testing.assert_array_equal(worlds[0].data.qpos, worlds[1].data.qpos)


def test_the_floor_is_transparent_and_the_rest_of_the_model_stock():
    env = small(BackgroundSwap, task="walker_walk")
    grid = env.model.material("grid").id
    assert env.model.mat_rgba[grid, 3] == pytest.approx(0.1)
    stock = ControlSuite(task="walker_walk", camera="ray").model
    others = np.arange(stock.nmat) != grid
    np.testing.assert_array_equal(env.model.mat_rgba[others], stock.mat_rgba[others])
    np.testing.assert_array_equal(env.model.body_mass, stock.body_mass)


def test_pictures_come_from_a_folder(folder):
    env = small(BackgroundSwap, task="cartpole_balance", images=folder, clips=("boat", "bmx"))
    env.reset(seed=0)
    assert top(env) == RED
    env.set_phase("B")
    env.reset()
    assert top(env) == GREEN
    in_order_of_names = small(BackgroundSwap, task="cartpole_balance", images=str(folder))
    in_order_of_names.reset(seed=0)
    assert top(in_order_of_names) == GREEN  # bmx comes before boat


def test_a_flat_folder_is_a_list_of_clips(folder):
    flat = FolderBackgrounds(folder / "boat", 16)
    assert tuple(flat.first(0)[0, 0]) == RED
    assert tuple(flat.first(1)[0, 0]) == BLUE
    assert flat.first(0).shape == (16, 16, 3)
    assert len(flat.pool()) == 2


def test_a_large_pool_is_thinned_out_evenly(folder):
    pool = FolderBackgrounds(folder, 16, clips=("boat", "bmx"), limit=2).pool()
    assert [tuple(picture[0, 0]) for picture in pool] == [RED, BLUE]


def test_a_random_background_changes_with_every_frame(folder):
    env = small(RandomBackground, task="cartpole_balance", images=folder, action_repeat=1)
    env.reset(seed=0)
    seen = [env._number]
    for _ in range(60):
        _, _, _, _, info = env.step(np.zeros(1))
        assert info["phase"] == "constant"
        seen.append(env._number)
        pool_color = tuple(int(value) for value in env._pool[env._number][0, 0])
        assert top(env) == pool_color
    assert all(before != after for before, after in pairwise(seen))
    assert set(seen) == {0, 1, 2, 3}


def test_random_backgrounds_follow_the_seed_and_the_saved_state():
    env, twin, copy = (small(RandomBackground, task="cartpole_balance") for _ in range(3))
    first = [each.reset(seed=7)[0]["image"] for each in (env, twin)]
    np.testing.assert_array_equal(*first)
    for step in range(20):
        if step == 10:
            copy.set_state(env.get_state())
        outcomes = [each.step(np.zeros(1))[0]["image"] for each in (env, twin)]
        np.testing.assert_array_equal(*outcomes)
        if step >= 10:
            np.testing.assert_array_equal(copy.step(np.zeros(1))[0]["image"], outcomes[0])


def test_a_saved_background_is_shown_by_a_fresh_environment():
    env, copy = (small(BackgroundSwap, task="reacher_easy", schedule=SOON) for _ in range(2))
    env.set_frame(50)
    env.reset()
    env.set_frame(90)  # A by the clock, B until the episode ends
    copy.set_state(env.get_state())
    for each in (env, copy):
        each.step(np.zeros(2))
    np.testing.assert_array_equal(env._observe()["image"], copy._observe()["image"])


def test_painted_landscapes_are_rich_various_and_repeatable():
    paint = PaintedBackgrounds(seed=1, count=8, size=64)
    pictures = paint.pool()
    for picture, again in zip(pictures, PaintedBackgrounds(1, 8, 64).pool(), strict=True):
        np.testing.assert_array_equal(picture, again)
        assert picture.astype(int).std() > 20
        # Smooth as photographs are: neighbours are closer than distant pixels.
        grey = picture.mean(2)
        assert np.abs(np.diff(grey, axis=0)).mean() < np.abs(grey[32:] - grey[:32]).mean()
    for number, picture in enumerate(pictures[1:]):
        assert np.abs(picture.astype(int) - pictures[number]).mean() > 10
    other = PaintedBackgrounds(seed=2, count=8, size=64).first(0)
    assert (other != pictures[0]).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"images": "/no/such/folder"}, "is not a folder of images"),
        ({"clips": ("boat", "bmx")}, "images must be given"),
        ({"background_size": 1000}, "from 16 to 800, got 1000"),
        ({"floor_alpha": 2}, "from 0 to 1, got 2"),
        ({"painted": 1}, "at least 2 pictures"),
        ({"phase": "C"}, r"unknown phase 'C', this environment has \['A', 'B'\]"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        small(BackgroundSwap, **options)


def test_folders_without_enough_pictures_are_refused(folder, tmp_path):
    with pytest.raises(ValueError, match=r"no images 'lake' in .* it has \['bmx', 'boat'\]"):
        FolderBackgrounds(folder, 16, clips=("boat", "lake"))
    with pytest.raises(ValueError, match="needs at least 2 images"):
        FolderBackgrounds(folder, 16, clips=("boat",))
