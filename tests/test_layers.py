"""Who may import what, so that the layout keeps telling the truth."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "curious_replay"

# Which of our packages, and which large libraries, each package may import.
OURS = {
    "replay": {"replay"},
    "envs": {"envs"},
    "agents": {"agents"},
    "analysis": {"analysis", "replay"},  # replay: steps are read from saved buffers
    "report": {"report", "analysis", "replay"},
    "experiments": {"experiments", "analysis", "report", "run"},
}
HEAVY = {"torch", "mujoco", "dm_control", "gymnasium", "crafter", "matplotlib"}
MAY_USE = {
    "envs": {"mujoco", "dm_control", "gymnasium", "crafter"},
    "agents": {"torch"},
    "analysis": {"matplotlib"},
    "report": {"matplotlib"},
}


def imports(path):
    """Yield ("curious_replay", "replay", "priority") and the like for every import of a file."""
    inside = path.relative_to(PACKAGE.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = inside[: len(inside) - node.level + 1] if node.level else ()
            yield base + tuple((node.module or "").split(".") if node.module else ())


def files():
    return sorted(p for name in OURS for p in (PACKAGE / name).rglob("*.py"))


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports(path):
    package = path.relative_to(PACKAGE).parts[0]
    for name in imports(path):
        if name[0] == "curious_replay" and len(name) > 1:
            assert name[1] in OURS[package], f"{package} must not import {'.'.join(name)}"
        if name[0] in HEAVY:
            assert name[0] in MAY_USE.get(package, set()), f"{package} must not import {name[0]}"


def test_replay_needs_neither_torch_nor_a_simulator():
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "mujoco", "dm_control", "gymnasium"}:
            raise ImportError(f"{name} is not installed here")
sys.meta_path.insert(0, Refuse())
import numpy as np
from curious_replay.replay import ReplayBuffer
buffer = ReplayBuffer(capacity=8, length=2)
flags = dict.fromkeys(("is_first", "is_last", "is_terminal"), np.zeros(1, bool))
buffer.add(flags)
buffer.add(flags)
assert buffer.sample(1).ids.tolist() == [[0, 1]]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
