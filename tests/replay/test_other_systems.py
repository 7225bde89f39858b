"""The library without POSIX: Windows, as far as that can be tried elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WITHOUT = "import without_posix\n"
STEPS = """
import numpy as np
from curious_replay.replay import Curious, ReplayBuffer, SavedBuffer

def fill(buffer):
    for t in range(40):
        flags = {"is_first": t == 0, "is_last": False, "is_terminal": False}
        buffer.add({"time": np.array([t, t]), **{k: np.full(2, v) for k, v in flags.items()}})
    return buffer
"""


def environ():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE.parents[1])))}


def run(code, tmp_path):
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environ()
    )


def test_a_buffer_in_memory_lacks_nothing(tmp_path):
    code = """
buffer = fill(ReplayBuffer(60, 4, num_envs=2, rule=Curious()))
batch = buffer.sample(16)
buffer.update(batch.ids, {"model": np.ones(batch.ids.shape)})
buffer.save("save")
fill(buffer).save("save")
assert SavedBuffer("save").field("time").max() == 39
again = ReplayBuffer.load("save")
assert (again.sample(16).ids == buffer.sample(16).ids).all()
"""
    done = run(WITHOUT + STEPS + code, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_folder_is_refused_with_what_is_missing(tmp_path):
    done = run(WITHOUT + STEPS + 'ReplayBuffer(60, 4, directory="here")', tmp_path)
    last = done.stderr.splitlines()[-1]
    assert "UsageError: steps cannot be kept in the folder" in last
    assert "POSIX file locks, which win32 lacks; with directory=None" in last
    assert not (tmp_path / "here").exists()


def test_a_save_of_a_buffer_in_a_folder_is_loaded_into_memory(tmp_path):
    done = run(STEPS + 'fill(ReplayBuffer(60, 4, num_envs=2, directory="x")).save("s")', tmp_path)
    assert done.returncode == 0, done.stderr
    assert "directory=None" in run(WITHOUT + STEPS + 'ReplayBuffer.load("s")', tmp_path).stderr
    code = 'assert ReplayBuffer.load("s", directory=None).sample(3)["time"].shape == (3, 4)'
    done = run(WITHOUT + STEPS + code, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_linked_file_is_refused_there_too(tmp_path):
    code = """
import json
from pathlib import Path
from curious_replay.untrusted import UnreadableError, read_json
Path("real").write_text(json.dumps([26]) + chr(26))
Path("link").symlink_to("real")
try:
    read_json(Path("link"))
except UnreadableError as error:
    print(error)
"""
    assert run(WITHOUT + code, tmp_path).stdout == (
        "link is a symbolic link; it must be a file itself\n"
    )


def test_a_folder_without_memory_advice_says_what_it_may_take(tmp_path):
    code = """
import mmap
for name in [name for name in vars(mmap) if name.startswith("MADV_")]:
    delattr(mmap, name)
"""
    steps = STEPS + 'fill(ReplayBuffer(60, 4, num_envs=2, directory="here")).sample(3)'
    quiet = run(STEPS + steps, tmp_path)
    assert quiet.returncode == 0, quiet.stderr
    told = run(code + steps, tmp_path).stderr
    assert "takes no advice on memory" in told
    ignored = "import warnings; warnings.simplefilter('ignore')\n"
    released = "import curious_replay.replay.storage as s; s.RELEASE_AFTER = 1\n"
    done = run(code + ignored + released + steps, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_all_else_of_these_tests_passes_there(tmp_path):
    pytest_ = [sys.executable, "-m", "pytest", "-p", "without_posix", "-q", "-m", "not slow"]
    without = [f"--ignore={__file__}", "-k", "not InFolder", f"--basetemp={tmp_path}/base"]
    done = subprocess.run(
        [*pytest_, *without, HERE], capture_output=True, text=True, check=False, env=environ()
    )
    assert done.returncode == 0, done.stdout + done.stderr
