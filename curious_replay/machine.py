"""What the machine has: memory that this process may still take, and NVIDIA's cards.

Memory is counted by the machine and by the limits that this process runs under.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class _Groups(NamedTuple):
    """Where a version of Linux's control groups keeps limits (containers, Slurm, systemd)."""

    controller: str  # as /proc/self/cgroup names it
    root: str
    limit: str
    used: str
    cached: str  # files in memory: they count as used, but make room when it is needed


_VERSIONS = (
    _Groups("", "sys/fs/cgroup", "memory.max", "memory.current", "file"),
    _Groups(
        "memory",
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_cache",
    ),
)


def free_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that this process may still take; None if the system does not tell."""
    known = [*_left_by_machine(root)]
    for version in _VERSIONS:
        for group in _own_groups(root, version):
            known += _left_by_group(group, version)
    return min(known) if known else None


def nvidia_cards(*wanted: str) -> list[list[str]]:
    """Return what NVIDIA's driver says of each card; `wanted` are its names for that."""
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", f"--query-gpu={','.join(wanted)}", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    rows = [line.split(", ") for line in done.stdout.splitlines()]
    return [row for row in rows if len(row) == len(wanted)] if done.returncode == 0 else []


def _left_by_machine(root: Path) -> Iterator[int]:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _own_groups(root: Path, version: _Groups) -> Iterator[Path]:
    """Yield the group of this process and all that it is part of, which limit it too."""
    own = "/"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if version.controller in controllers.split(","):
            own = path
    top = root / version.root
    group = top / own.strip("/")
    yield group
    while group != top:
        group = group.parent
        yield group


def _left_by_group(group: Path, version: _Groups) -> Iterator[int]:
    """Yield the bytes that a group leaves; nothing if it has no limit that can be read."""
    try:
        limit = int((group / version.limit).read_text())  # "max": none
        facts = dict(line.split() for line in _lines(group / "memory.stat"))
        used = int((group / version.used).read_text()) - int(facts[version.cached])
    except (OSError, KeyError, ValueError):
        return
    yield limit - used


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
