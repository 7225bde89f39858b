"""What a run must remember of the machine and the code that made it."""

import importlib.metadata
import os
import platform
import shlex
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import curious_replay

PACKAGES = ("torch", "numpy", "numba", "mujoco", "dm-control", "gymnasium", "crafter")


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
        "versions": {
            "curious_replay": curious_replay.__version__,
            "python": platform.python_version(),
            **{name: package_version(name) for name in PACKAGES},
        },
    }


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
