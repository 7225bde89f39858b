"""Files are replaced in one step, grow by whole lines, and hold JSON that every parser takes."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from curious_replay.durable import replacing, write_bytes
from curious_replay.run.record.files import (
    append_line,
    cut,
    read_json,
    read_lines,
    whole_lines,
    write_json,
)


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def test_json_is_strict_and_comes_back_as_it_was(tmp_path):
    path = tmp_path / "content.json"
    content = {"a": [1, 2.5, None, True, "x"], "b": {"inf": math.inf, "low": [-math.inf]}}
    write_json(path, content)
    json.loads(path.read_text(), parse_constant=refuse)
    assert read_json(path) == content
    write_json(path, {"nan": math.nan})
    assert json.loads(path.read_text(), parse_constant=refuse) == {"nan": "NaN"}
    assert math.isnan(read_json(path)["nan"])


def test_json_takes_numpy_numbers_and_paths(tmp_path):
    path = tmp_path / "content.json"
    numbers = {"int": np.int64(3), "bool": np.bool_(True), "double": np.float64(0.1)}
    write_json(path, {**numbers, "single": np.float32(0.1), "bad": np.float32("nan"), "p": path})
    found = json.loads(path.read_text(), parse_constant=refuse)
    short = {"int": 3, "bool": True, "double": 0.1, "single": 0.1, "bad": "NaN", "p": str(path)}
    assert found == short
    assert np.float32(found["single"]) == np.float32(0.1)
    with pytest.raises(TypeError, match="of type set cannot be written"):
        write_json(path, {"x": {1}})
    assert json.loads(path.read_text()) == short


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "state"
    write_bytes(path, b"old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_bytes(b"ne")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["state"]
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def test_a_file_is_on_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    happened = []
    path = tmp_path / "state"
    real = os.fsync

    def fsync(descriptor):
        happened.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), path.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_bytes(path, b"content")
    assert happened == [(str(tmp_path / ".part-state"), False), (str(tmp_path), True)]


class Full:
    """A file on a disk that has room for a few bytes more."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, content):
        if not self.room:
            raise OSError(28, "No space left on device")
        written = self.file.write(content[: self.room])
        self.room -= written
        return written

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_a_line_without_room_is_taken_back(tmp_path):
    path = tmp_path / "lines.jsonl"
    with path.open("ab", buffering=0) as file:
        append_line(file, {"a": 1})
        with pytest.raises(OSError, match="No space left"):
            append_line(Full(file, 4), {"b": 2})
        append_line(file, {"c": 3})
    assert path.read_bytes() == b'{"a": 1}\n{"c": 3}\n'


def test_a_line_is_written_whole_even_in_pieces(tmp_path):
    class Slow(Full):
        def write(self, content):
            return self.file.write(content[:3])

    path = tmp_path / "lines.jsonl"
    with path.open("ab", buffering=0) as file:
        append_line(Slow(file, 0), {"name": "ä long line"})
    assert read_lines(path) == [{"name": "ä long line"}]


@pytest.mark.parametrize("torn", [b"", b'{"a"', b'{"a": 1}', b"\xc3"])
def test_reading_leaves_out_a_torn_last_line(torn, tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"frame": 1, "loss": "-Infinity"}\n{"frame": 2}\n' + torn)
    assert read_lines(path) == [{"frame": 1, "loss": -math.inf}, {"frame": 2}]
    cut(path, whole_lines(path))
    assert path.read_bytes().endswith(b'{"frame": 2}\n')


def test_reading_does_not_hide_damage_elsewhere(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"frame": 1, "lo\n{"frame": 2}\n')
    with pytest.raises(ValueError, match=r"lines.jsonl, line 1"):
        read_lines(path)


def test_no_file_has_no_lines_to_cut(tmp_path):
    assert whole_lines(tmp_path / "none") == 0
    cut(tmp_path / "none", 0)
