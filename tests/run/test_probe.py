"""The test of the world model on fixed scenes, and that it disturbs nothing."""

import json

import numpy as np
import pytest
from helpers.runs import config, lines, run

from curious_replay.envs.object_interaction import BALLS, ball_pixels
from curious_replay.run.loop.probe import PREDICTED, SEEN, Probe


@pytest.fixture(scope="module")
def probe():
    return Probe("mini", image_size=32, camera="ray", action_repeat=2)


class Seer:
    """Predicts the truth, or it with a mistake."""

    def __init__(self, probe, mistake=0):
        self.pictures = probe.scenes["image"].astype(int)
        self.mistake = mistake

    def open_loop(self, batch, context):
        assert context == SEEN
        assert set(batch) >= {"image", "action", "reward", "is_first", "is_terminal"}
        return (self.pictures + self.mistake).clip(0, 255).astype(np.uint8)


def test_scenes_are_drives_towards_the_ball(probe):
    scenes = probe.scenes
    assert scenes["image"].shape == (8, SEEN + PREDICTED, 32, 32, 3)
    assert scenes["action"].shape == (8, SEEN + PREDICTED, 2)
    assert scenes["is_first"].sum(1).tolist() == [1] * 8
    shown = ball_pixels(scenes["image"], BALLS["magenta"]).sum((2, 3))
    assert (shown.max(1) > 0).all()  # every scene shows it
    moved = np.abs(np.diff(scenes["image"].astype(int), axis=1)).sum((2, 3, 4))
    assert (moved > 0).mean() > 0.9


def test_scenes_are_the_same_every_time(probe):
    again = Probe("mini", image_size=32, camera="ray", action_repeat=2).scenes
    for name, array in probe.scenes.items():
        np.testing.assert_array_equal(again[name], array)


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
    ball = ball_pixels(probe.scenes["image"], BALLS["magenta"])
    seer.pictures = np.where(ball[..., None], 0, seer.pictures)  # the ball is not seen
    for line in probe.lines(seer):
        row, step = line["scene"] - 1, SEEN + line["ahead"] - 1
        truth = probe.scenes["image"][row, step] / 255
        expected = (truth**2)[ball[row, step]]
        assert line["mse"] == pytest.approx(expected.sum() / truth.size)
        if line["object_pixels"]:
            assert line["object_pixels"] == len(expected)
            assert line["mse_object"] == pytest.approx(expected.mean())
            assert line["nll_object"] == pytest.approx(
                0.5 * expected.sum() + expected.size * 0.9189385332
            )


def test_a_run_with_the_probe_is_the_run_without_it(tmp_path):
    settings = {"env": {"image_size": 32, "camera": "ray"}, "train": {"steps": 60}}
    for name, every in (("with", 30), ("without", 0)):
        run(
            config("object-interaction", record={"probe_every": every}, **settings), tmp_path / name
        )
    assert lines(tmp_path / "with") == lines(tmp_path / "without")
    text = (tmp_path / "with" / "probe.jsonl").read_text()
    probed = [json.loads(line) for line in text.splitlines()]
    assert sorted({line["step"] for line in probed}) == [30, 60]
    assert len(probed) == 2 * 8 * PREDICTED
    assert (tmp_path / "without/probe.jsonl").read_bytes() == b""
