"""The recipes of docs/guests.md learn what they say, in few lines of replay."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_torch_loop_learns_only_with_states_kept_in_replay(one_thread):
    loop = example("torch_loop")
    assert loop.run(400) > 0.95
    assert loop.run(400, keep=False) < 0.5


def test_the_torch_loop_repeats_itself(one_thread):
    loop = example("torch_loop")
    assert len({loop.run(60, seed=3) for _ in range(2)}) == 1


def test_the_jax_loop_learns():
    pytest.importorskip("jax", reason="jax is not installed")
    before, under = example("jax_loop").run(600)
    assert before > 0.95
    assert under > 0.95


@pytest.mark.parametrize("name", ["torch_loop", "jax_loop"])
def test_the_command(name):
    pytest.importorskip(name.removesuffix("_loop"))
    options = ["--updates", "40", "--seed", "1"]
    if name == "torch_loop":
        options += ["--device", "cpu"]
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *options],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert len(re.findall(r"^[a-z ]+ +[01]\.\d\d$", done.stdout, re.MULTILINE)) == 2


@pytest.mark.parametrize("name", ["torch_loop", "jax_loop"])
def test_replay_takes_ten_lines(name):
    lines = (EXAMPLES / f"{name}.py").read_text().splitlines()
    replay = [line for line in lines if re.search(r"buffer\b|batches\b|curious_replay", line)]
    shown = [line for line in replay if line.endswith("# R")]
    assert 5 <= len(shown) <= 10
    assert all(line.endswith("# R") for line in replay if "(" in line or "import" in line)
