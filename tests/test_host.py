"""Importing the package leaves its host alone; the command line prepares its process."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
from helpers.imported import PACKAGE

from curious_replay import host

LIBRARIES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if path.stem not in ("__init__", "__main__") and path.parent.name != "miniatures"
    if path.parent.name != "torchrl" or find_spec("torchrl")
)
OF_LIBRARIES = {"PYGAME_HIDE_SUPPORT_PROMPT": "hide", "RAY_CLIENT_MODE": "0"}
"""What pygame and Ray set themselves when they are imported."""
PROGRAM = """
import ctypes, importlib, json, os, signal, sys
told = []
real = ctypes.CDLL
class Library(real):
    def __getattr__(self, name):
        if name == "mallopt":
            told.append(name)
        return super().__getattr__(name)
ctypes.CDLL = Library
def state():
    handlers = {each: repr(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM)}
    return {"environ": dict(os.environ), "folder": os.getcwd(), "umask": os.umask(0o22),
            "handlers": {str(k): v for k, v in handlers.items()}}
before = state()
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps([before, state(), told]))
"""


def changes_by_importing(names, env):
    """What a fresh process has before and after, and its calls of mallopt."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, check=True, env=env
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_all_of_the_package_changes_nothing_outside_of_it(tmp_path):
    """In a copy, since other tests may look after the results that are kept here."""
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    stale = tmp_path / PACKAGE.name / "replay" / "__pycache__" / "stale.nbi"
    stale.parent.mkdir()
    stale.touch()
    os.utime(stale, (0, 0))
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), **OF_LIBRARIES}
    before, after, told = changes_by_importing(LIBRARIES, environ)
    assert stale.exists()
    assert told == []
    assert after == before


@pytest.mark.parametrize("part", ["replay", "envs", "agents", "run", "cli"])
def test_importing_a_part_changes_nothing_outside_of_it(part):
    before, after, told = changes_by_importing(
        [f"curious_replay.{part}"], {**os.environ, **OF_LIBRARIES}
    )
    assert after == before
    assert told == []


def test_the_command_line_prepares_its_process(monkeypatch):
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE", raising=False)
    forgotten = []
    monkeypatch.setattr(host, "forget_stale_results", forgotten.append)
    host.prepare()
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "1"
    assert forgotten == [PACKAGE / "replay"]
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    host.prepare()
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "0"  # the user's own choice holds


def test_results_older_than_a_source_are_forgotten(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    names = [
        "one.py",
        "two.py",
        "__pycache__/one.nbi",
        "__pycache__/one.nbc",
        "__pycache__/new.nbi",
    ]
    for name, time in zip(names, (100, 200, 150, 150, 250), strict=True):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    host.forget_stale_results(tmp_path)
    kept = sorted(path.name for path in (tmp_path / "__pycache__").iterdir())
    assert kept == ["new.nbi"]
