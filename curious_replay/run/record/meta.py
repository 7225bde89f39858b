"""What a run must remember of the machine and the code that made it."""

import importlib.metadata
import os
import platform
import secrets
import shlex
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import curious_replay
from curious_replay import plugins
from curious_replay.run_folder import META
from curious_replay.untrusted import UnreadableError, read_object

PACKAGES = ("torch", "numpy", "numba", "mujoco", "dm-control", "gymnasium", "crafter")
OF_MACHINE = ("threads", "processes", "device", "card", "precision", "graphs")
"""What a run remembers of how it computed, at its beginning and with each resume."""


def describe() -> dict[str, Any]:
    """Return versions, commit, host, command line and the time, ready for JSON."""
    commit, dirty = git_state(Path(curious_replay.__file__).parent)
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "cpus": available_cpus(),
        "commit": commit,
        "dirty": dirty,
        "plugins": plugins.describe(),
        "versions": {
            "curious_replay": curious_replay.__version__,
            "python": platform.python_version(),
            **{name: package_version(name) for name in PACKAGES},
        },
    }


def new_id() -> str:
    """Return a name for a run that no other has, wherever its folder is moved.

    Forks know it by that name.
    """
    return secrets.token_hex(8)


def made_by_another(folder: Path) -> str:
    """Return what to add to an error about a run that another version has made.

    It is "" if the run was made by this version.
    """
    try:
        made = read_object(folder / META)["versions"]["curious_replay"]
    except (UnreadableError, LookupError, TypeError):
        return ""
    here = curious_replay.__version__
    return "" if made == here else f" (the run was made by version {made!r}, this is {here!r})"


def git_state(folder: Path) -> tuple[str | None, bool | None]:
    """Return the commit of the checkout that `folder` belongs to, and whether files differ from it.

    Both are None without git, and for a folder that merely lies inside a checkout, as an installed
    package does in somebody's project. Files that git does not track do not count as a difference:
    run folders are such files.
    """
    try:
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        commit = _git(folder, "rev-parse", "HEAD").strip()
        changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None, None
    return commit, bool(changes)


def available_cpus() -> int:
    """Return how many processors this process may use, which a container can limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def package_version(name: str) -> str | None:
    """Return the version of an installed package without importing it; None if there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout
