"""The example does what it says: curious replay learns the new rule in fewer updates."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from curious_replay.replay import Curious, Uniform

EXAMPLE = Path(__file__).parents[1] / "examples/own_agent.py"


@pytest.fixture(scope="module")
def own_agent(one_thread):
    spec = importlib.util.spec_from_file_location("own_agent", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_curious_replay_learns_the_new_rule_sooner(own_agent):
    uniform, curious = (own_agent.run(rule, 1, 600, 400) for rule in (Uniform(), Curious()))
    learned = own_agent.updates_to_learn(curious)
    assert learned is not None
    slower = own_agent.updates_to_learn(uniform)
    assert slower is None or learned < 0.8 * slower


def test_same_seed_same_run(own_agent):
    first, again = (own_agent.run(Curious(), 3, 20, 20) for _ in range(2))
    assert first == again


def test_the_command(tmp_path):
    picture = tmp_path / "plots/picture.png"
    command = [sys.executable, str(EXAMPLE), "--seeds", "2", "--before", "5", "--after", "6"]
    output = subprocess.run(
        [*command, "--plot", str(picture)], check=True, capture_output=True, text=True
    ).stdout
    for name in ("uniform", "curious"):
        assert re.search(rf"^{name} +> 6 +> 6$", output, re.MULTILINE)
    assert picture.stat().st_size > 10_000


def test_replay_takes_ten_lines():
    lines = EXAMPLE.read_text().splitlines()
    replay = [line for line in lines if "buffer" in line or "curious_replay" in line]
    assert 5 <= len(replay) <= 10
    assert all(line.endswith("# R") for line in replay)
