"""A reader who does what the pages say gets what they say: all of it is run, at a smaller scale.

Each page is read from top to bottom in a folder of its own. What is replaced is written here, and
so is what cannot be run, with the reason.
"""

import functools
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
from helpers.pages import ROOT, TEXTS, shown

from curious_replay import cli

# Words of a page in place of which a reader puts their own.
PLACEHOLDERS = {"runs/mini": "runs/debug", "8000": "40", "cuda": "cpu"}
NAMES = {"envs": "toy/count", "sweep": "toy-mirror"}  # instead of NAME
# What makes a command small; what comes last counts.
SMALLER = {
    "train": "--scale debug --train.steps 60 --train.prefill 20 --train.pretrain 2 "
    "--train.threads 1 --eval.every 0",
    "resume": "--train.steps 90",
    "fork runs/first": "--train.steps 100",
    "eval": "--episodes 1",
    "sweep": "--scale debug --seeds 1",
    "envs show": "--frames 5",
    "doctor": "--pictures 1",
    "demo": "--quick --seeds 1 --no-open",
    "python examples/own_agent.py": "--seeds 1 --before 5 --after 6",
    "python examples/torch_loop.py": "--updates 40",
}
SMALLER_PYTHON = {
    'scale="mini"), seed=1': 'scale="debug"), seed=1',
    "steps=10_000": "steps=60",
    "evaluate(run, episodes=10": "evaluate(run, episodes=1",
    "at=8000": "at=40",
}
NOT_RUN = {
    r"(\.venv/bin/)?pip install .*": "needs a package index; tests/test_wheel.py installs",
    r"curious sweep .* --launcher ray .*": "needs a cluster; tests/sweep/test_clusters.py has one",
    r"(python )?bench/.*": "takes minutes; tests/test_bench.py runs it small",
    r"python examples/torchrl_agent\.py": "tests/guests/test_torchrl_example.py runs it",
    r"python tests/fuzz/fuzz\.py .*": "takes minutes; tests/fuzz/test_fuzz.py runs it small",
    r"python soak/soak\.py .*": "takes an hour; tests/test_soak.py runs a short one",
    r"python soak/long_run\.py .*": "needs an hour's run; tests/test_long_run.py makes one up",
    r"python docs/make_pictures\.py": "draws the pictures of this repository anew, for minutes",
    r"python docs/make_api\.py": "writes a page of this repository; tests/test_public.py compares",
    r"python examples/jax_loop\.py": "needs jax; tests/test_guests.py runs it where it is",
    r"curious (train|fork|eval|sweep|report)|python -m curious_replay": "named within a sentence",
    r"\.ci/run|pytest .*|ruff .*|mypy": "what runs these tests, and runs beside them",
    r"mkdocs build --strict": "tests/test_docs.py builds the site",
    r"pip wheel .*|rm -rf build": "tests/test_wheel.py builds the wheel",
}
# Runs that a reader has by then.
RUNS = "curious train --env object-interaction --replay {0} --logdir runs/{0}"
BEFORE = {"analysis.md": [RUNS.format("curious"), RUNS.format("uniform")]}
# What an earlier page shows too is run there; but this one goes on with it.
ON_ITS_OWN = "training.md"
# Python that is run elsewhere: tests/test_extending.py (it is in examples/), tests/test_public.py.
# That of TorchRL too, where it is installed: tests/guests/test_torchrl_example.py.
EXAMPLES = ("extending.md", "api.md")
SLOW = {"README.md", "training.md", "analysis.md", "experiments.md", "extending.md", "sweeps.md"}

MY_MODULE = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

class Heavy(CartPoleEnv):
    pass

class MyEnv(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, size):
        self.observation_space = gymnasium.spaces.Box(0, 1, (size,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}
"""


def why_not(command):
    """Why a command is not run; None if it is."""
    reasons = [reason for kind, reason in NOT_RUN.items() if re.fullmatch(kind, command)]
    return reasons[0] if reasons else None


@functools.cache
def recipe(target):
    """The commands of a target of the Makefile, without the folder that they are in."""
    make = ["make", "--dry-run", "--old-file=.venv/ready", "RUN=", target]
    # These tests may have been begun by make, which would have it say more.
    names = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(make, cwd=ROOT, env=names, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def to_run(each):
    """Commands of something that a page shows: of a target its recipe, without comments."""
    line = shlex.join(shlex.split(each.command, comments=True))
    if line.startswith("make "):
        return recipe(line.split()[1])
    return [line] if line else []


def commands(page):
    """All of a page."""
    return [command for each in shown(page) for command in to_run(each)]


def smaller(command):
    """The words of a command, with what makes it small."""
    words = [PLACEHOLDERS.get(word, word) for word in shlex.split(command)]
    if words[0] == "curious" and "NAME" in words:
        words[words.index("NAME")] = NAMES[words[1]]
    if "--help" in words:
        return words
    kinds = [kind for kind in SMALLER if f" {kind} " in f" {' '.join(words)} "]
    if "--resume" in words:
        kinds = ["resume"]
    return [*words, *(word for kind in kinds for word in SMALLER[kind].split())]


def smaller_python(code):
    for text, instead in SMALLER_PYTHON.items():
        code = code.replace(text, instead)
    return code


@pytest.fixture
def folder(tmp_path, monkeypatch, own_parts):
    """Where a reader works: with the examples, and what pages say that one has."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "my_module.py").write_text(MY_MODULE)
    shutil.copy(ROOT / "tests/sweep/small_grid.py", tmp_path / "my_grid.py")
    [mine] = [each.python for each in shown("experiments.md") if each.python]
    (tmp_path / "mine.py").write_text(mine)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words, where, monkeypatch):
    """Run a command in a folder."""
    print("$", shlex.join(words))
    monkeypatch.chdir(where)
    if words[0] == "curious":
        try:
            code = cli.main(words[1:])
        except SystemExit as ended:
            code = ended.code
    else:
        assert words[0] == "python", f"nothing is known of {words}"
        code = subprocess.run([sys.executable, *words[1:]], check=False).returncode
    assert code == 0, shlex.join(words)


class Training:
    """`while training:` of a page goes on until windows of 64 steps are there, and drawn."""

    left = 70

    def __bool__(self):
        self.left -= 1
        return self.left >= 0


def names_of_a_loop():
    """What the loop on a page has from its agent."""
    flags = dict.fromkeys(("is_first", "is_last", "is_terminal"), np.zeros(4, bool))
    return {
        "training": Training(),
        "step": {"image": np.zeros((4, 8, 8, 3), np.uint8), **flags},
        "train": lambda batch: np.ones(batch.ids.shape, np.float32),
    }


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.slow) if p in SLOW else p for p in TEXTS]
)
def test_a_page_can_be_followed(page, folder, monkeypatch):
    earlier = [] if page == ON_ITS_OWN else list(TEXTS)[: list(TEXTS).index(page)]
    done = {command for each in earlier for command in commands(each)}
    for command in BEFORE.get(page, []):
        run(smaller(command), folder, monkeypatch)
    where, block = folder, None
    for each in shown(page):
        if each.block != block:  # `cd` holds within a block
            where, block = folder, each.block
        for command in to_run(each):
            if command.startswith("cd "):
                where = folder / command.removeprefix("cd ")
            elif command not in done and why_not(command) is None:
                run(smaller(command), where, monkeypatch)
                done.add(command)
        if each.python and page not in EXAMPLES and "curious_replay.torchrl" not in each.python:
            monkeypatch.chdir(folder)
            exec(compile(smaller_python(each.python), page, "exec"), names_of_a_loop())


def all_commands():
    return {command for page in TEXTS for command in commands(page)}


@pytest.mark.parametrize("kind", NOT_RUN)
def test_what_is_not_run_is_on_a_page(kind):
    assert [command for command in all_commands() if re.fullmatch(kind, command)]


def test_few_commands_are_not_run():
    complete = [command for command in all_commands() if re.match(r"curious \w+ \S", command)]
    left_out = {command for command in complete if why_not(command)}
    assert left_out == {"curious sweep crafter --scale paper --launcher ray --ray.gpus 1"}


@pytest.mark.parametrize("file", re.findall(r"tests/[\w/]+\.py", " ".join(NOT_RUN.values())))
def test_what_is_run_elsewhere_is_there(file):
    assert (ROOT / file).exists()


def test_what_is_replaced_is_on_a_page():
    pages = "".join(TEXTS.values())
    for text in (*PLACEHOLDERS, *SMALLER_PYTHON, " NAME ", "my_module:MyEnv", " my_grid.py "):
        assert text in pages


def test_the_pictures_of_environments_can_be_drawn():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs/make_pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.picture_of("toy/two-rooms", ["ray"])
    side = 64 * module.SCALE
    assert page.shape == (side, 2 * side + module.GAP, 3)  # both phases
    assert (page[:, :side] != page[:, -side:]).any()
