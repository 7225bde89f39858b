"""The test of the world model on fixed scenes, and that it disturbs nothing."""

import json

import numpy as np
import pytest
from helpers.runs import config, lines, run

from curious_replay.agents.spaces import Spaces
from curious_replay.envs.object_interaction import BALLS, ball_pixels
from curious_replay.envs.toys.two_rooms import object_pixels
from curious_replay.run.loop import drives, walks
from curious_replay.run.loop.drives import PREDICTED, SEEN
from curious_replay.run.loop.probe import Probe, scenes_of
from curious_replay.run.saved_run import make_agent
from curious_replay.run.settings.config import Choice
from curious_replay.run.settings.env_config import AssayConfig
from curious_replay.run.settings.grid_config import TwoRoomsConfig
from curious_replay.run.settings.presets import preset

ARENA = AssayConfig(scale="mini", image_size=32, action_repeat=2)


@pytest.fixture(scope="module")
def probe():
    return Probe(scenes_of(ARENA, "ray"))


class Seer:
    """Predicts the truth, or it with a mistake."""

    def __init__(self, probe, mistake=0):
        self.pictures = probe.scenes.batch["image"].astype(int)
        self.mistake = mistake

    def open_loop(self, batch, context):
        assert context == SEEN
        assert set(batch) >= {"image", "action", "reward", "is_first", "is_terminal"}
        return (self.pictures + self.mistake).clip(0, 255).astype(np.uint8)


def test_scenes_are_drives_towards_the_ball(probe):
    scenes = probe.scenes.batch
    assert scenes["image"].shape == (8, SEEN + PREDICTED, 32, 32, 3)
    assert scenes["action"].shape == (8, SEEN + PREDICTED, 2)
    assert scenes["is_first"].sum(1).tolist() == [1] * 8
    shown = ball_pixels(scenes["image"], BALLS["magenta"]).sum((2, 3))
    assert (shown.max(1) > 0).all()  # every scene shows it
    moved = np.abs(np.diff(scenes["image"].astype(int), axis=1)).sum((2, 3, 4))
    assert (moved > 0).mean() > 0.9


def test_scenes_are_the_same_every_time(probe):
    for found, again in (
        (probe.scenes, drives.make(ARENA, "ray")),
        (walks.make(TwoRoomsConfig()), walks.make(TwoRoomsConfig())),
    ):
        for name, array in found.batch.items():
            np.testing.assert_array_equal(again.batch[name], array)


LARGE = {"rooms": 3, "room": 5, "view": 5, "object_size": 3}
HUGE = {"room": 9, "object_size": 7}


@pytest.mark.parametrize(
    "world", [{}, {"rooms": 3, "room": 7, "view": 7}, {"television": 3}, LARGE, HUGE]
)
def test_scenes_in_rooms_are_walks_to_the_object_and_around_it(world):
    env = TwoRoomsConfig(image_size=16, length=9, schedule=((0, "empty"),), **world)
    names, batch, shown, seen = scenes_of(env, None)
    steps = seen + walks.PREDICTED
    assert batch["image"].shape == (len(names), steps, 16, 16, 3)
    assert batch["action"].shape == (8, steps, 5)
    assert np.array_equal(shown, object_pixels(batch["image"]))
    assert shown[:, seen - 1].any((1, 2)).all()  # the model has seen it when it begins to predict
    assert shown[:, seen:].any((2, 3)).mean() > 0.8
    assert len({batch["action"][row].tobytes() for row in range(8)}) == 8


def test_truth_has_no_error_and_mistakes_have_theirs(probe):
    right = list(probe.lines(Seer(probe)))
    assert len(right) == 8 * PREDICTED
    assert [line["ahead"] for line in right[:PREDICTED]] == list(range(1, PREDICTED + 1))
    assert {line["mse"] for line in right} == {0.0}
    assert right[0]["nll"] == pytest.approx(32 * 32 * 3 * 0.9189385332)
    with_ball = [line for line in right if line["object_pixels"]]
    assert with_ball and all(line["mse_object"] == 0 for line in with_ball)
    assert all("mse_object" not in line for line in right if not line["object_pixels"])


def test_errors_are_means_over_their_pixels(probe):
    seer = Seer(probe)
    ball = ball_pixels(probe.scenes.batch["image"], BALLS["magenta"])
    seer.pictures = np.where(ball[..., None], 0, seer.pictures)  # the ball is not seen
    for line in probe.lines(seer):
        row, step = line["scene"] - 1, SEEN + line["ahead"] - 1
        truth = probe.scenes.batch["image"][row, step] / 255
        expected = (truth**2)[ball[row, step]]
        assert line["mse"] == pytest.approx(expected.sum() / truth.size)
        if line["object_pixels"]:
            assert line["object_pixels"] == len(expected)
            assert line["mse_object"] == pytest.approx(expected.mean())
            assert line["nll_object"] == pytest.approx(
                0.5 * expected.sum() + expected.size * 0.9189385332
            )


@pytest.mark.parametrize(
    ("world", "env", "predicted"),
    [
        ("object-interaction", {"image_size": 32, "camera": "ray"}, PREDICTED),
        ("toy/two-rooms", {}, walks.PREDICTED),
    ],
)
def test_a_run_with_the_probe_is_the_run_without_it(world, env, predicted, tmp_path):
    settings = {"env": env, "train": {"steps": 60}}
    for name, every in (("with", 30), ("without", 0)):
        run(config(world, record={"probe_every": every}, **settings), tmp_path / name)
    assert lines(tmp_path / "with") == lines(tmp_path / "without")
    text = (tmp_path / "with" / "probe.jsonl").read_text()
    probed = [json.loads(line) for line in text.splitlines()]
    assert sorted({line["step"] for line in probed}) == [30, 60]
    assert len(probed) == 2 * 8 * predicted
    assert (tmp_path / "without/probe.jsonl").read_bytes() == b""


@pytest.mark.parametrize("world", ["object-interaction", "toy/two-rooms"])
def test_a_model_predicts_the_scenes_of_its_world(world):
    made = preset(Choice(env=world, agent="dreamerv3", replay="uniform", scale="debug"))
    probe = Probe(scenes_of(made.env, None))
    batch = probe.scenes.batch
    steps, count = batch["action"].shape[1:]
    spaces = Spaces(count, world == "toy/two-rooms", batch["image"].shape[2:4])
    found = list(probe.lines(make_agent(made, spaces)))
    assert len(found) == 8 * (steps - probe.scenes.seen)
    assert all(0 < line["mse"] < 1 for line in found)
