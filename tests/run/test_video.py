"""Videos show what they say they show, and become files that play."""

import signal

import imageio.v3
import numpy as np
import pytest

from curious_replay.run.record import encode
from curious_replay.run.record.encode import EncodeError, why_no_mp4, write_video
from curious_replay.run.record.video import (
    SEEN,
    UNSEEN,
    dreams_video,
    episode_video,
    open_loop_video,
)

RNG = np.random.default_rng(0)


def noise(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def tile(picture, column, row, zoom, size=32):
    """Cut a tile out of a picture of an open-loop video, in the pixels of the input."""
    height = width = size * zoom
    y, x = 34 + row * (height + 8), 60 + column * (width + 8)
    return picture[y : y + height : zoom, x : x + width : zoom]


def test_open_loop_video_has_truth_model_and_error_in_rows_and_sequences_in_columns():
    truth, model = noise(3, 7, 32, 32, 3), noise(3, 7, 32, 32, 3)
    video = open_loop_video(truth, model, context=2)
    assert video.dtype == np.uint8
    assert video.shape[0] == 7
    assert video.shape[1] % 2 == video.shape[2] % 2 == 0
    error = np.abs(truth.astype(int) - model.astype(int))
    for step in range(7):
        for column in range(3):
            rows = (truth, model, error)
            for row, expected in enumerate(rows):
                found = tile(video[step], column, row, zoom=4)
                assert np.array_equal(found, expected[column, step])


def test_dreams_of_several_models_lie_below_the_truth():
    truth, models = (
        noise(2, 3, 32, 32, 3),
        {"one": noise(2, 3, 32, 32, 3), "two": noise(2, 3, 32, 32, 3)},
    )
    video = dreams_video(truth, models, context=1)
    for row, expected in enumerate((truth, *models.values())):
        assert np.array_equal(tile(video[2], 1, row, zoom=4), expected[1, 2])
        border = tuple(video[2][34 + 136 * row - 1, 60 + 64])
        assert (border == UNSEEN) == (row > 0), "models dream, the truth does not"
    with pytest.raises(ValueError, match=r"truth .* and two .* must have one shape"):
        dreams_video(truth, {**models, "two": truth[:1]}, context=1)


@pytest.mark.parametrize("context", [0, 2, 5])
def test_a_viewer_sees_where_the_open_loop_starts(context):
    video = open_loop_video(noise(1, 5, 32, 32, 3), noise(1, 5, 32, 32, 3), context)
    words = {"context": set(), "prediction": set()}
    for step, picture in enumerate(video):
        border = picture[34 + 136 - 1, 60 + 64]
        assert tuple(border) == (SEEN if step < context else UNSEEN)
        head = picture[:30].reshape(-1, 3)
        color, other = (SEEN, UNSEEN) if step < context else (UNSEEN, SEEN)
        assert (head == color).all(axis=1).any()
        word = (picture[:30] == color).all(axis=2).any(axis=0).tobytes()
        words["context" if step < context else "prediction"].add(word)
        assert not (head == other).all(axis=1).any()
    assert [len(shapes) for shapes in words.values()] == [context > 0, context < 5]
    assert not words["context"] & words["prediction"]
    heads = {picture[:30].tobytes() for picture in video}
    assert len(heads) == 5, "the step number is written above each picture"


def test_large_and_oblong_pictures_are_not_cut():
    video = open_loop_video(noise(2, 2, 120, 160, 3), noise(2, 2, 120, 160, 3), 1)
    assert video.shape[1] >= 3 * 240
    assert video.shape[2] >= 2 * 320
    assert open_loop_video(noise(1, 2, 128, 128, 3), noise(1, 2, 128, 128, 3), 1).shape[2] >= 360


@pytest.mark.parametrize(
    ("truth", "model", "context", "message"),
    [
        (noise(2, 3, 8, 8, 3), noise(2, 4, 8, 8, 3), 1, "one shape"),
        (noise(2, 3, 8, 8, 3) / 255, noise(2, 3, 8, 8, 3), 1, "truth must be uint8"),
        (noise(2, 3, 8, 8, 3), noise(2, 3, 8, 8), 1, "model must be uint8"),
        (noise(2, 3, 8, 8, 3), noise(2, 3, 8, 8, 3), 4, "between 0 and 3 steps, got 4"),
    ],
)
def test_open_loop_video_refuses_what_is_none(truth, model, context, message):
    with pytest.raises(ValueError, match=message):
        open_loop_video(truth, model, context)


def test_episode_video_captions_each_picture():
    pictures = noise(4, 64, 64, 3)
    pictures[1:] = pictures[0]

    def captions(frames, phases, returns):
        video = list(episode_video(pictures, frames, phases, returns))
        for picture in video:
            assert picture.shape == (300, 256, 3)
            assert np.array_equal(picture[:256:4, :256:4], pictures[0])
        return [picture[256:].tobytes() for picture in video]

    same = captions([0] * 4, ["a"] * 4, [0.0] * 4)
    assert len(set(same)) == 1
    for changed in (
        captions(range(4), ["a"] * 4, [0.0] * 4),
        captions([0] * 4, "abcd", [0.0] * 4),
        captions([0] * 4, ["a"] * 4, [0.0, 1.0, 2.0, 3.0]),
    ):
        assert len(set(changed)) == 4
    with pytest.raises(ValueError, match="differ in length"):
        episode_video(pictures, range(3), "abcd", range(4))


def video(length=12, height=46, width=62):
    """Slow colors, which survive compression."""
    t, y, x = np.mgrid[:length, :height, :width]
    return np.stack([20 * t, 4 * y, 3 * x], axis=-1).astype(np.uint8)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # imageio's, when reading
@pytest.mark.parametrize("size", [(46, 62), (45, 61)])
def test_a_video_is_h264_that_plays_everywhere(size, tmp_path):
    pictures = video(12, *size)
    path = write_video(pictures, tmp_path / "a video", fps=12.5)
    assert path == tmp_path / "a video.mp4"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    about = imageio.v3.immeta(path)
    assert (about["codec"], about["fps"]) == ("h264", 12.5)
    assert about["pix_fmt"].startswith("yuv420p")
    found = imageio.v3.imread(path)
    assert found.shape == (12, 46, 62, 3)
    assert np.abs(found[:, : size[0], : size[1]].astype(int) - pictures).mean() < 4
    content = path.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat"), "it plays before it is loaded whole"


def test_pictures_may_come_one_at_a_time(tmp_path):
    whole = write_video(video(), tmp_path / "whole", 10)
    pieces = write_video((picture for picture in video()), tmp_path / "pieces", 10)
    assert whole.read_bytes() == pieces.read_bytes()


@pytest.mark.parametrize(
    ("pictures", "message"),
    [
        (np.zeros((0, 8, 8, 3), np.uint8), "at least one picture"),
        (np.zeros((2, 8, 8, 3)), "uint8"),
        (np.zeros((2, 8, 8), np.uint8), "uint8"),
        ([np.zeros((8, 8, 3), np.uint8), np.zeros((8, 10, 3), np.uint8)], "one size"),
    ],
)
def test_a_video_that_is_none_leaves_no_file(pictures, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_video(pictures, tmp_path / "video", 10)
    with pytest.raises(ValueError, match="pictures per second"):
        write_video(video(), tmp_path / "video", 0)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def no_ffmpeg(monkeypatch):
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/nowhere/ffmpeg")
    why_no_mp4.cache_clear()
    yield
    why_no_mp4.cache_clear()


@pytest.mark.usefixtures("no_ffmpeg")
def test_without_ffmpeg_a_video_is_a_gif(tmp_path):
    path = write_video(video(), tmp_path / "video", 10)
    assert path.name == "video.gif"
    assert imageio.v3.imread(path).shape == (12, 46, 62, 3)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert "ffmpeg" in why_no_mp4()


def test_an_encoder_that_gives_up_says_why_and_leaves_no_file(tmp_path, monkeypatch):
    assert why_no_mp4() is None
    broken = tmp_path / "ffmpeg"
    broken.write_text("#!/bin/sh\necho it is too hot >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(encode, "_ffmpeg", lambda: str(broken))
    with pytest.raises(EncodeError, match="code 3: it is too hot"):
        write_video(noise(40, 200, 200, 3), tmp_path / "video", 10)
    assert [p.name for p in tmp_path.iterdir()] == ["ffmpeg"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR2])
def test_a_stop_of_all_processes_does_not_reach_the_encoder(number, tmp_path, monkeypatch):
    whole = write_video(video(), tmp_path / "whole", 10)
    encoders, start = [], encode._start
    monkeypatch.setattr(encode, "_start", lambda *a: encoders.append(start(*a)) or encoders[-1])

    def pictures():
        for t, picture in enumerate(video()):
            if t == 1:
                encoders[-1].send_signal(number)
            yield picture

    assert write_video(pictures(), tmp_path / "video", 10).read_bytes() == whole.read_bytes()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()  # we go on hearing them
