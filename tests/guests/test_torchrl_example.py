"""The TorchRL script learns its toy, and what the page shows can be run."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchrl", reason="TorchRL is not installed: pip install '.[torchrl]'")

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/torchrl_agent.py"
PAGE = ROOT / "docs/guests.md"


@pytest.fixture(scope="module")
def example(one_thread):
    spec = importlib.util.spec_from_file_location("torchrl_agent", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_model_learns_and_curious_replay_is_sooner(example):
    uniform, curious = (example.run(name, 0, 600, 400) for name in ("uniform", "curious"))
    assert min(curious[-3:]) < 1 / 3
    learned, slower = example.updates_to_learn(curious), example.updates_to_learn(uniform)
    assert learned is not None
    assert slower is None or learned < 0.8 * slower


def test_same_seed_same_run(example):
    first, again = (example.run("curious", 3, 10, 21) for _ in range(2))
    assert len(first) == 3
    assert first == again


def test_the_command():
    command = [sys.executable, str(EXAMPLE), "--seeds", "2", "--before", "4", "--after", "5"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for name in ("uniform", "curious"):
        assert re.search(rf"^{name} +> 5 +> 5$", output, re.MULTILINE)


def test_what_the_page_shows_can_be_run():
    section = PAGE.read_text().partition("\n## TorchRL\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert blocks
    space = {}
    for block in blocks:
        exec(block, space)
    assert space["buffer"].sampler.slice_len == 64
