"""A run remembers what it ran on, and says nothing of git where git knows nothing of it."""

import json
import os
import platform
import subprocess
import sys

import numpy as np

import curious_replay
from curious_replay.run.record.meta import available_cpus, describe, git_state, package_version


def git(folder, *arguments):
    identity = ["-c", "user.name=Somebody", "-c", "user.email=some@body"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_everything_is_there_and_fits_into_json(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/curious", "train", "--env", "two words"])
    found = json.loads(json.dumps(describe()))
    assert found["command"] == "curious train --env 'two words'"
    assert found["host"] == platform.node()
    assert found["cpus"] == len(os.sched_getaffinity(0))
    assert found["started"].endswith("+00:00")
    assert found["versions"]["python"] == platform.python_version()
    assert found["versions"]["numpy"] == np.__version__
    assert found["versions"]["curious_replay"] == curious_replay.__version__
    assert {"torch", "mujoco", "gymnasium", "crafter"} <= found["versions"].keys()
    assert all(found["versions"].values())


def test_the_commit_and_whether_files_differ_from_it(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("one = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Begin")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert git_state(package) == (commit, False)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "metrics.jsonl").write_text("{}\n")
    assert git_state(package) == (commit, False)
    (package / "__init__.py").write_text("one = 2\n")
    assert git_state(package) == (commit, True)


def test_a_package_installed_inside_somebodys_checkout_has_no_commit(tmp_path):
    (tmp_path / "theirs.py").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "theirs.py")
    git(tmp_path, "commit", "-qm", "Begin")
    installed = tmp_path / "site-packages" / "package"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert git_state(installed) == (None, None)


def test_no_git_and_no_checkout_are_no_trouble(tmp_path, monkeypatch):
    assert git_state(tmp_path) == (None, None)
    monkeypatch.setenv("PATH", "")
    assert git_state(tmp_path) == (None, None)


def test_what_is_not_installed_has_no_version():
    assert package_version("a-package-that-nobody-wrote") is None
    assert available_cpus() >= 1
