"""Who may import what, so that the layout keeps telling the truth: the table of the docs, kept."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.imported import PACKAGE, imports

PAGE = Path(__file__).parents[1] / "docs/architecture.md"

# Which of our packages, and which large libraries, each package may import.
OURS = {
    "errors": set(),
    "extras": {"errors"},
    "bounds": set(),
    "durable": set(),
    "run_folder": set(),
    "untrusted": {"errors"},
    "machine": set(),
    "host": set(),
    "launch": set(),
    "plugins": {"errors", "run_folder", "untrusted"},
    "replay": {"durable", "errors", "untrusted"},
    "torchrl": {"errors", "extras", "untrusted", "replay"},
    "envs": {"errors", "extras", "untrusted"},
    "agents": {"errors", "extras", "bounds", "untrusted"},
    "run": {
        "errors",
        "extras",
        "bounds",
        "durable",
        "run_folder",
        "untrusted",
        "machine",
        "launch",
        "plugins",
        "replay",
        "envs",
        "agents",
    },
    # Steps are read from saved buffers.
    "analysis": {"extras", "run_folder", "untrusted", "replay"},
    "report": {"run_folder", "untrusted", "analysis"},
    "experiments": {"errors", "run_folder", "untrusted", "envs", "run", "analysis", "report"},
    "sweep": {"errors", "extras", "host", "run_folder", "untrusted", "plugins", "run", "analysis"},
    "demo": {"run_folder", "replay", "envs", "agents", "run", "analysis", "report"},
    "doctor": {"errors", "extras", "machine", "envs"},
    "commands": {
        "errors",
        "run_folder",
        "launch",
        "plugins",
        "envs",
        "run",
        "analysis",
        "report",
        "experiments",
        "sweep",
        "demo",
        "doctor",
    },
    # It finds commands by name when they are asked for.
    "cli": {"errors", "extras", "host", "launch", "plugins"},
    "__main__": {"launch", "cli"},
}
HEAVY = {
    "torch", "mujoco", "dm_control", "gymnasium", "crafter", "matplotlib", "ray", "submitit",
    "wandb", "minigrid", "torchrl", "tensordict", "pandas",
}  # fmt: skip
MAY_USE = {
    "replay": {"torch"},  # only where a batch is asked for as tensors
    "torchrl": {"torch", "torchrl", "tensordict"},
    "envs": {"mujoco", "dm_control", "gymnasium", "crafter", "minigrid"},
    "agents": {"torch"},
    "run": {"torch", "gymnasium", "wandb"},
    "analysis": {"matplotlib", "pandas"},
    "sweep": {"torch", "ray", "submitit"},
    "demo": {"torch", "matplotlib"},
}


def parts():
    """The packages, and the modules beside them."""
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py")}
    return found - {"__init__", "__pycache__"}


def files(part):
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def used(part):
    """Names of ours, and of large libraries, that the files of a part import; with where."""
    ours, heavy = {}, {}
    for path in files(part):
        for name in imports(path):
            if name[0] == "curious_replay" and len(name) > 1 and name[1] != part:
                ours[name[1]] = path.relative_to(PACKAGE)
            if name[0] in HEAVY:
                heavy[name[0]] = path.relative_to(PACKAGE)
    return ours, heavy


def test_every_part_has_a_rule():
    assert parts() == OURS.keys()


@pytest.mark.parametrize("part", OURS)
def test_imports(part):
    for found, allowed in zip(used(part), (OURS[part], MAY_USE.get(part, set())), strict=True):
        for name, path in found.items():
            assert name in allowed, f"{part} must not import {name}, as {path} does"
        # A permission that nobody uses would hide the next mistake.
        assert allowed <= found.keys(), f"{part} no longer needs {allowed - found.keys()}"


def test_nothing_imports_in_a_circle():
    below = {part: set(OURS[part]) for part in OURS}
    while free := [part for part, needs in below.items() if not needs]:
        for part in free:
            del below[part]
        for needs in below.values():
            needs.difference_update(free)
    assert not below


def test_blocks_know_no_agent():
    modules = {("agents", name) for name in ("blocks", "precision", "spaces", "together")}
    for path in sorted((PACKAGE / "agents/blocks").glob("*.py")):
        for name in imports(path):
            if name[0] == "curious_replay":
                known = name[1:3] in (*modules, ("errors",), ("untrusted",))
                assert known, f"{path.name} imports {'.'.join(name)}"


def test_the_page_has_these_rules():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    ours = {part: set(re.findall(r"`(\w+)`", allowed)) for part, allowed, _ in rows}
    heavy = {part: set(re.findall(r"`(\w+)`", allowed)) for part, _, allowed in rows}
    assert ours == OURS
    assert {part: names for part, names in heavy.items() if names} == MAY_USE


def test_every_file_that_the_page_names_is_there():
    named = re.findall(r"`([\w/]+/\w+\.\w+)`", PAGE.read_text())
    assert len(named) > 50
    root = PAGE.parents[1]
    missing = [n for n in named if not (root / n).exists() and not (PACKAGE / n).exists()]
    assert not missing


def test_every_name_that_the_page_says_is_in_a_file_is_there():
    said = re.findall(r"`([\w.]+)`(?: and `([\w.]+)`)? in `([\w/]+\.py)`", PAGE.read_text())
    assert len(said) > 8
    for *names, file in said:
        text = (PACKAGE / file).read_text()
        for name in filter(None, names):
            for part in name.split("."):
                pattern = rf"^(?:class| *def) {part}\b|^{part} ="
                assert re.search(pattern, text, re.MULTILINE), f"{file} has no {name}"


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
