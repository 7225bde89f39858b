"""The record of a run survives kills, goes back to a checkpoint exactly, and shows no point twice.

TensorBoard and W&B are read back as their users would see them.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from curious_replay.run.record.encode import why_no_mp4
from curious_replay.run.record.files import read_json, read_lines
from curious_replay.run.record.record import Record, RecordError

JSONL = ("metrics.jsonl", "episodes.jsonl")


def counters(t):
    return {"frame": 4 * t, "step": t, "update": t // 2}


def write(record, start, stop, clock=0.0):
    """Write what a run might write in steps `start` to `stop`; several lines share a frame."""
    for t in range(start, stop):
        record.metrics(counters(t), {"loss/image": t + 0.5, "entropy": 1 / (t + 1)})
        record.metrics(counters(t), {"loss/image": t + 0.75, "entropy": 2 / (t + 1)})
        record.speed(counters(t), {"frames_per_second": 100.0 + clock})
        if t % 3 == 2:
            record.episode(counters(t), {"return": 1.5 * t, "length": 3, "phase": "ball"})


def events(folder):
    """Return step and value of everything that TensorBoard shows, by name."""
    board = EventAccumulator(str(folder / "events"), size_guidance={"scalars": 0})
    board.Reload()
    return {
        tag: [(event.step, event.value) for event in board.Scalars(tag)]
        for tag in board.Tags()["scalars"]
    }


def test_a_folder_holds_config_meta_and_lines(tmp_path):
    folder = tmp_path / "runs" / "one"
    with Record.create(folder, {"env": "toy", "limit": float("inf")}, seed=7) as record:
        write(record, 0, 3)
        record.remember(camera="egl")
    assert read_json(folder / "config.json") == {"env": "toy", "limit": float("inf")}
    meta = json.loads((folder / "meta.json").read_text())
    assert (meta["seed"], meta["camera"], meta["resumes"]) == (7, "egl", [])
    assert meta["versions"]["numpy"] == np.__version__
    first = '{"frame": 0, "step": 0, "update": 0, "loss/image": 0.5, "entropy": 1.0}'
    assert (folder / "metrics.jsonl").read_text().splitlines()[0] == first
    assert read_lines(folder / "episodes.jsonl") == [
        {"frame": 8, "step": 2, "update": 1, "return": 3.0, "length": 3, "phase": "ball"}
    ]
    assert read_lines(folder / "speed.jsonl")[0] == {
        "frame": 0, "step": 0, "update": 0, "session": 1, "frames_per_second": 100.0
    }  # fmt: skip
    assert {"events", "videos", "checkpoints"} <= {path.name for path in folder.iterdir()}


def test_a_folder_that_holds_a_run_is_refused_and_left_alone(tmp_path):
    Record.create(tmp_path, {"a": 1}, seed=0).close()
    with pytest.raises(RecordError, match=r"holds a run already.*--resume, or choose another"):
        Record.create(tmp_path, {"a": 2}, seed=0)
    assert read_json(tmp_path / "config.json") == {"a": 1}


def test_a_start_that_was_killed_can_be_started_again(tmp_path):
    (tmp_path / "meta.json").write_text("{}")
    (tmp_path / ".part-config.json").write_text('{"a"')
    Record.create(tmp_path, {"a": 2}, seed=0).close()
    assert read_json(tmp_path / "config.json") == {"a": 2}


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path):
    with pytest.raises(RecordError, match=r"holds no run to resume: it has no config\.json"):
        Record.open(tmp_path, position={})
    assert not list(tmp_path.iterdir())


def test_a_line_is_with_the_system_when_the_call_returns(tmp_path):
    with Record.create(tmp_path, {}, seed=0, tensorboard=False) as record:
        record.metrics(counters(1), {"loss": 1.0})
        record.episode(counters(1), {"return": 2.0})
        record.speed(counters(1), {"seconds": 3.0})
        for name, value in (("metrics", 1.0), ("episodes", 2.0), ("speed", 3.0)):
            assert list(read_lines(tmp_path / f"{name}.jsonl")[0].values())[-1] == value


def test_lines_with_missing_or_doubled_counters_are_refused(tmp_path):
    with Record.create(tmp_path, {}, seed=0, tensorboard=False) as record:
        with pytest.raises(ValueError, match=r"needs the counters .*\['update'\] missing"):
            record.metrics({"frame": 1, "step": 1}, {"loss": 1.0})
        with pytest.raises(ValueError, match="step cannot be counter and value"):
            record.metrics(counters(1), {"step": 1.0})
        assert not (tmp_path / "metrics.jsonl").read_bytes()
        record.metrics({**counters(1), "epoch": 3}, {"loss": 1.0})
    assert read_lines(tmp_path / "metrics.jsonl")[0]["epoch"] == 3


@pytest.mark.parametrize(("stop", "crash"), [(0, 5), (1, 9), (5, 12), (9, 9), (9, 12)])
def test_a_resumed_run_leaves_the_same_files_as_one_never_stopped(stop, crash, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    with Record.create(one, {}, seed=0) as record:
        write(record, 0, 15)
    record = Record.create(two, {}, seed=0)
    write(record, 0, stop)
    position = json.loads(json.dumps(record.position()))
    write(record, stop, crash, clock=1.0)
    record.close()
    with Record.open(two, position=position) as record:
        write(record, stop, 15, clock=2.0)
    for name in JSONL:
        assert (one / name).read_bytes() == (two / name).read_bytes()
    expected, found = events(one), events(two)
    speed = "speed/frames_per_second"
    assert found[speed][-1] == (56, 102.0)
    assert {k: v for k, v in found.items() if k != speed} == {
        k: v for k, v in expected.items() if k != speed
    }
    speeds = read_lines(two / "speed.jsonl")
    assert [line["session"] for line in speeds] == [1] * crash + [2] * (15 - stop)
    resumes = read_json(two / "meta.json")["resumes"]
    assert [resume["frame"] for resume in resumes] == [max(0, 4 * (stop - 1))]


def test_a_checkpoint_between_lines_of_one_frame_doubles_and_loses_nothing(tmp_path):
    record = Record.create(tmp_path, {}, seed=0)
    record.metrics(counters(1), {"loss": 1.0})
    record.metrics(counters(2), {"loss": 2.0})
    position = record.position()
    record.metrics(counters(2), {"loss": 3.0})
    record.metrics(counters(3), {"loss": 4.0})
    record.close()
    with Record.open(tmp_path, position=position) as record:
        record.metrics(counters(2), {"loss": 3.0})
        record.metrics(counters(3), {"loss": 4.0})
        assert record.position()["line"] == 4
    assert events(tmp_path)["train/loss"] == [(4, 1.0), (8, 2.0), (8, 3.0), (12, 4.0)]


def test_names_are_grouped_and_words_are_not_numbers(tmp_path):
    with Record.create(tmp_path, {}, seed=0) as record:
        write(record, 2, 3)
        record.metrics(counters(3), {"bad": float("nan")})
        record.episode(counters(3), {"mode": "train", "return": 1})
        record.episode(counters(3), {"mode": "eval", "return": 2})
    shown = events(tmp_path)
    assert shown.keys() == {
        "loss/image", "train/entropy", "train/bad", "episode/return", "episode/length",
        "train_episode/return", "eval_episode/return", "speed/frames_per_second",
    }  # fmt: skip
    assert shown["loss/image"] == [(8, 2.5), (8, 2.75)]
    assert np.isnan(shown["train/bad"][0][1])


def test_tensorboard_can_be_left_off_and_is_not_imported_to_begin_with(tmp_path):
    code = """
import sys
from pathlib import Path
from curious_replay.run.record.record import Record
record = Record.create(Path(sys.argv[1]), {}, seed=0)
assert not {"tensorboard", "torch", "wandb", "imageio_ffmpeg"} & sys.modules.keys()
record.metrics({"frame": 0, "step": 0, "update": 0}, {"loss": 1})
record.position()
assert "tensorboard" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "one")], check=True)
    with Record.create(tmp_path / "two", {}, seed=0, tensorboard=False) as record:
        write(record, 0, 3)
    assert not list((tmp_path / "two" / "events").iterdir())


def test_tensorboard_shows_all_of_a_run_that_it_has_not_seen(tmp_path):
    """As a fork, which begins with the lines of another."""
    with Record.create(tmp_path / "seen", {}, seed=0) as record:
        write(record, 0, 9)
    with Record.create(tmp_path / "new", {}, seed=0, tensorboard=False) as record:
        write(record, 0, 5)
        position = record.position()
    (tmp_path / "new" / "events").rmdir()
    with Record.open(tmp_path / "new", position=position) as record:
        write(record, 5, 9)
        position = record.position()
    Record.open(tmp_path / "new", position=position).close()  # which has seen it by now
    shown, expected = events(tmp_path / "new"), events(tmp_path / "seen")
    assert expected.pop("speed/frames_per_second")
    shown.pop("speed/frames_per_second")
    assert shown == expected


def test_tensorboard_that_fails_says_so_and_keeps_nobody_waiting(tmp_path):
    record = Record.create(tmp_path, {}, seed=0)
    (tmp_path / "events").rmdir()
    record.metrics(counters(0), {"loss": 1.0})
    with pytest.raises(OSError, match=r"TensorBoard cannot be written: .*No such file"):
        record.position()
    with pytest.raises(OSError, match="TensorBoard cannot be written"):
        record.metrics(counters(1), {"loss": 1.0})
    with pytest.raises(OSError, match="TensorBoard cannot be written"):
        record.close()
    record.close()
    assert len(read_lines(tmp_path / "metrics.jsonl")) == 2


@pytest.mark.parametrize("name", JSONL)
def test_files_that_lost_lines_are_refused_before_anything_is_changed(name, tmp_path):
    with Record.create(tmp_path, {}, seed=0) as record:
        write(record, 0, 9)
        position = record.position()
        write(record, 9, 12)
    path, other = (tmp_path / n for n in (name, *(set(JSONL) - {name})))
    content, untouched = path.read_bytes(), other.read_bytes()
    path.write_bytes(content[: position["bytes"][name] - 1])
    with pytest.raises(RecordError, match=rf"{name} is damaged: it has \d+ bytes, at the check"):
        Record.open(tmp_path, position=position)
    path.write_bytes(b"x" + content)
    with pytest.raises(RecordError, match=f"{name} is damaged: no line ends at byte"):
        Record.open(tmp_path, position=position)
    path.unlink()
    with pytest.raises(RecordError, match="is damaged: it has 0 bytes"):
        Record.open(tmp_path, position=position)
    assert other.read_bytes() == untouched
    path.write_bytes(content)
    Record.open(tmp_path, position=position).close()


@pytest.mark.parametrize("name", [".lock", "metrics.jsonl", "speed.jsonl"])
def test_what_is_no_file_is_refused_and_not_waited_for(name, tmp_path):
    Record.create(tmp_path, {}, seed=0).close()
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(RecordError, match=f"{name} must be a file; it is a folder, pipe or device"):
        Record.open(tmp_path, position={})


def test_a_run_has_one_writer(tmp_path):
    code = """
import sys
from pathlib import Path
from curious_replay.run.record.record import Record, RecordError
try:
    Record.open(Path(sys.argv[1]), position={})
except RecordError as error:
    print(error)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    with Record.create(tmp_path, {}, seed=0) as record:
        write(record, 0, 3)
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "is being written to by a run not ended yet" in said
        write(record, 3, 4)
    assert len(read_lines(tmp_path / "metrics.jsonl")) == 8
    assert not subprocess.run(command, check=True, capture_output=True, text=True).stdout


WRITER = """
import json, os, sys
from pathlib import Path
from curious_replay.run.record.files import write_json
from curious_replay.run.record.record import Record
folder, start = Path(sys.argv[1]), int(sys.argv[2])
checkpoint = folder / "checkpoints" / "position.json"
if start < 0:
    record, t = Record.create(folder, {}, seed=0), 0
else:
    saved = json.loads(checkpoint.read_text()) if checkpoint.exists() else {"t": 0, "position": {}}
    record, t = Record.open(folder, position=saved["position"]), saved["t"]
    os.write(1, b"r")
while True:
    counters = {"frame": t, "step": t, "update": t}
    record.metrics(counters, {f"loss/{i}": t + i / 7 for i in range(30)})
    record.episode(counters, {"return": t})
    os.write(1, b"l")  # one byte for each pair of lines that was returned for
    t += 1
    if t % 50 == 0:
        write_json(checkpoint, {"t": t, "position": record.position()})
"""


def test_a_killed_run_has_every_line_that_was_returned_for_and_no_line_twice(tmp_path):
    folder, rng, known = tmp_path / "run", random.Random(0), 0
    for attempt in range(5):
        saved = folder / "checkpoints" / "position.json"
        start = read_json(saved)["t"] if saved.exists() else 0
        command = [sys.executable, "-c", WRITER, str(folder), str(attempt - 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            reported = process.stdout.read(1 + rng.randrange(400))
            time.sleep(rng.random() / 50)
            os.kill(process.pid, signal.SIGKILL)
            reported += process.stdout.read()
        returned = start + reported.count(b"l")
        for name in JSONL:
            frames = [line["frame"] for line in read_lines(folder / name)]
            assert frames == list(range(len(frames)))
            assert len(frames) >= returned
            known = max(known, len(frames))
    position = read_json(folder / "checkpoints" / "position.json")["position"]
    with Record.open(folder, position=position) as record:
        record.metrics(dict.fromkeys(("frame", "step", "update"), 1_000_000), {"loss/0": 0.0})
    for name in JSONL:
        assert (folder / name).read_bytes().endswith(b"\n")
    frames = [line["frame"] for line in read_lines(folder / "metrics.jsonl")]
    assert [step for step, _ in events(folder)["loss/0"]] == frames
    assert known > 100


def test_a_torn_line_of_speed_is_dropped_and_the_rest_kept(tmp_path):
    with Record.create(tmp_path, {}, seed=0) as record:
        write(record, 0, 3)
    with (tmp_path / "speed.jsonl").open("ab") as file:
        file.write(b'{"frame": 12, "st')
    with Record.open(tmp_path, position={}) as record:
        write(record, 0, 1)
    assert [line["session"] for line in read_lines(tmp_path / "speed.jsonl")] == [1, 1, 1, 2]
    assert len(read_lines(tmp_path / "metrics.jsonl")) == 2


PICTURES = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), np.uint8)


def test_videos_are_named_by_frame_and_written_whole(tmp_path):
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / ".part-old.mp4").write_bytes(b"unfinished")
    with Record.create(tmp_path, {}, seed=0) as record:
        record.video("open_loop", counters(3), PICTURES, fps=10)
        record.video("open_loop", counters(3), iter(PICTURES), fps=10)
        with pytest.raises(ValueError, match="is named with letters"):
            record.video("../config", counters(3), PICTURES, fps=10)
    assert [path.name for path in (tmp_path / "videos").iterdir()] == ["open_loop-000000012.mp4"]


def test_without_ffmpeg_videos_are_gifs_which_is_noted_once(tmp_path, monkeypatch):
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/nowhere/ffmpeg")
    why_no_mp4.cache_clear()
    notes = []
    with Record.create(tmp_path, {}, seed=0) as record:
        record.note = notes.append
        record.video("episode", counters(1), PICTURES, fps=10)
        record.video("episode", counters(2), PICTURES, fps=10)
    why_no_mp4.cache_clear()
    names = sorted(path.name for path in (tmp_path / "videos").iterdir())
    assert names == ["episode-000000004.gif", "episode-000000008.gif"]
    assert len(notes) == 1
    assert "videos are written as GIF" in notes[0]


def test_a_video_that_cannot_be_written_does_not_end_the_run(tmp_path, capsys):
    with Record.create(tmp_path, {}, seed=0) as record:
        (tmp_path / "videos" / "episode-000000004.mp4").mkdir()
        record.video("episode", counters(1), PICTURES, fps=10)
        (tmp_path / "videos").rename(tmp_path / "lost")
        record.video("episode", counters(2), PICTURES, fps=10)
        write(record, 0, 1)
    said = capsys.readouterr().err
    assert "the video episode of frame 4 was not written: [Errno" in said
    assert "the video episode of frame 8 was not written: ffmpeg stopped" in said


class FakeRuns:
    """What W&B's server keeps: rows by number, for each id; as a module in its place."""

    def __init__(self):
        self.rows, self.calls = {}, []
        self.Video = lambda path, format: (Path(path).name, format)

    def init(self, **settings):
        self.calls.append(settings)
        rows = self.rows.setdefault(settings["id"], {})
        step = max(rows, default=-1) + 1
        assert settings["resume"] == "allow"

        def log(values, step):
            assert step >= max(rows, default=0), "W&B takes rows in order"
            rows.setdefault(step, {}).update(values)

        return SimpleNamespace(
            step=step, log=log, finish=lambda: None, define_metric=lambda *a, **k: None
        )


def test_wandb_continues_one_run_without_doubled_rows(tmp_path, monkeypatch):
    fake = FakeRuns()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    record = Record.create(tmp_path, {"env": "toy"}, seed=0, wandb=True)
    write(record, 0, 4)
    position = record.position()
    write(record, 4, 6)
    for _ in range(9):  # how often speed is told depends on the clock
        record.speed(counters(5), {"frames_per_second": 99.0})
    record.video("episode", counters(5), PICTURES, fps=10)
    record.close()
    with Record.open(tmp_path, position=position, wandb=True) as record:
        write(record, 4, 6)
        record.video("episode", counters(5), PICTURES, fps=10)
        write(record, 6, 8)
    (identity, rows), *others = fake.rows.items()
    assert not others
    assert identity == read_json(tmp_path / "meta.json")["wandb"]
    assert fake.calls[0]["config"] == {"env": "toy"}
    assert [row["loss/image"] for row in rows.values() if "loss/image" in row] == [
        t + part for t in range(8) for part in (0.5, 0.75)
    ]
    assert sum("videos/episode" in row for row in rows.values()) == 1
    assert all("frame" in row for row in rows.values())


def test_wandb_that_is_not_installed_is_named_before_the_run_begins(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r'needs wandb, .*: pip install -e ".*\[wandb\]"'):
        Record.create(tmp_path, {}, seed=0, wandb=True)
    with Record.create(tmp_path, {}, seed=0) as record:
        write(record, 0, 3)
    with pytest.raises(ImportError, match="wandb"):
        Record.open(tmp_path, position={}, wandb=True)
    assert len(read_lines(tmp_path / "metrics.jsonl")) == 6, "nothing is cut before it is clear"
