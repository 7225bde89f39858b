"""What this machine has for running agents and environments, and what to do about the rest."""

import importlib
import importlib.metadata
import os
import platform
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from curious_replay.envs import make
from curious_replay.errors import UsageError
from curious_replay.extras import install_command, is_installed, obstacle
from curious_replay.machine import free_memory, nvidia_cards

GIGABYTE = 1e9
# One million steps of 64 x 64 x 3 bytes, the replay buffer of the published runs.
PAPER_REPLAY = 12.3 * GIGABYTE
WITH_BFLOAT16 = 8.0  # generation of NVIDIA cards
OPENGL_ADVICE = {
    "egl": "install libegl1 (Debian, Ubuntu) or mesa-libEGL (Fedora)",
    "osmesa": "install libosmesa6 (Debian, Ubuntu) or mesa-libOSMesa (Fedora)",
}


@dataclass(frozen=True)
class Finding:
    """One line of the report; `problem` is what makes something impossible, `note` what limits."""

    group: str
    name: str
    value: str
    verdict: Literal["ok", "note", "problem"] = "ok"
    advice: str = ""


def print_report(console: Console, findings: Sequence[Finding]) -> int:
    """Print all findings; returns 1 if there is a problem among them, else 0."""
    marks = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "problem": "[red]problem[/]"}
    table = Table(box=None, pad_edge=False)
    for column in ("", "", "found", "", "what to do"):
        table.add_column(column)
    group = ""
    for found in findings:
        title = "" if found.group == group else f"[bold]{found.group}[/]"
        value, advice = escape(found.value), escape(found.advice)  # [worlds] is no style
        table.add_row(title, found.name, value, marks[found.verdict], advice)
        group = found.group
    console.print(table, highlight=False)
    return int(any(found.verdict == "problem" for found in findings))


def examine(folder: Path, pictures: int) -> Iterator[Finding]:
    """Yield all findings: packages, cameras, machine."""
    if pictures < 1:
        raise UsageError(f"a camera must draw at least one picture, got {pictures}")
    if not folder.is_dir():
        raise UsageError(f"the folder {folder} does not exist")
    yield from packages()
    yield from cameras(pictures)
    yield from machine(folder)


def packages() -> Iterator[Finding]:
    """Yield the versions of Python and of what this package needs or can use."""
    yield Finding("versions", "python", platform.python_version())
    own = _version("curious-replay")
    if own is None:
        advice = "pip install . in the folder of the project"
        yield Finding("versions", "curious-replay", "not installed", "problem", advice)
        return
    yield Finding("versions", "curious-replay", own)
    seen = set()
    for extra in ("", "run", "worlds", "minigrid"):
        for requirement in map(Requirement, importlib.metadata.requires("curious-replay") or []):
            marker = requirement.marker
            if requirement.name not in seen and (not marker or marker.evaluate({"extra": extra})):
                seen.add(requirement.name)
                yield _package(requirement, extra)
    if not is_installed("dm_control") and (reason := obstacle("dm_control")):
        yield Finding("versions", "dm-control", "not installed", "note", reason)


def cameras(pictures: int) -> Iterator[Finding]:
    """Yield which cameras work, and how many 64 x 64 pictures of the assay each draws a second."""
    if not is_installed("mujoco"):
        advice = f"{install_command('worlds')} for the worlds that need one"
        yield Finding("cameras", "none", "MuJoCo is not installed", "note", advice)
        return
    try:
        problems = camera_problems()
    except ImportError as error:
        advice = "nothing can be simulated: see the versions above"
        yield Finding("cameras", "none", str(error), "problem", advice)
        return
    opengl_works = any(problem is None for name, problem in problems.items() if name != "ray")
    for name, problem in problems.items():
        if problem is None:
            yield _measured(name, pictures)
        elif opengl_works:
            yield Finding("cameras", name, f"not needed: {problem}")  # one of them is enough
        else:
            advice = f"{OPENGL_ADVICE[name]}, or stay with the ray camera"
            yield Finding("cameras", name, problem, "note", advice)


def machine(folder: Path) -> Iterator[Finding]:
    """Yield processor, graphics, memory, disk."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("machine", "processor", f"{_processor()}, {cores} cores to use")
    yield from graphics()
    free = free_memory()
    memory = "unknown" if free is None else f"{free / GIGABYTE:.1f} GB free"
    if free is not None and free < PAPER_REPLAY:
        advice = "a replay buffer of 1M steps takes 12.3 GB: keep it on disk or make it smaller"
        yield Finding("machine", "memory", memory, "note", advice)
    else:
        yield Finding("machine", "memory", memory)
    space = shutil.disk_usage(folder).free
    disk = f"{space / GIGABYTE:.1f} GB free in {folder.resolve()}"
    if space < 2 * PAPER_REPLAY:
        advice = "a run that saves a full replay buffer wants 25 GB: choose another --folder"
        yield Finding("machine", "disk", disk, "note", advice)
    else:
        yield Finding("machine", "disk", disk)


def _package(requirement: Requirement, extra: str) -> Finding:
    """Return the finding on a package; only some worlds cannot do without their extras."""
    name, version = requirement.name, _version(requirement.name)
    bounds = f"{name}{requirement.specifier}"
    if version is None and extra in ("worlds", "minigrid"):
        return Finding("versions", name, "not installed", "note", install_command(extra))
    if version is None:
        return Finding("versions", name, "missing", "problem", f"pip install '{bounds}'")
    if not requirement.specifier.contains(version, prereleases=True):
        return Finding("versions", name, version, "problem", f"pip install '{bounds}'")
    return Finding("versions", name, version)


def graphics() -> Iterator[Finding]:
    """Yield the graphics cards the driver knows, and whether torch can use them."""
    cards = nvidia_cards("name", "memory.total", "memory.free", "driver_version", "compute_cap")
    if not cards:
        advice = "CPU only: use the mini scale; paper scale takes a CUDA graphics card"
        yield Finding("machine", "graphics", "no NVIDIA card found", "note", advice)
    torch = _version("torch")
    for number, (name, memory, free, driver, generation) in enumerate(cards):
        row = "graphics" if len(cards) == 1 else f"graphics {number}"
        value = f"{name}, {memory}, {free} free, driver {driver}, generation {generation}"
        if torch is not None and "+cpu" in torch:
            advice = "torch is built without CUDA: install the CUDA build of the same version"
            yield Finding("machine", row, value, "note", advice)
        elif float(generation) < WITH_BFLOAT16:
            advice = "no bfloat16 units: runs are in float32; try --train.precision float16"
            yield Finding("machine", row, value, "note", advice)
        else:
            yield Finding("machine", row, value)


def camera_problems() -> dict[str, str | None]:
    """Return why each camera cannot be used, None if it can.

    The module is imported late, for MuJoCo may be missing.
    """
    module = importlib.import_module("curious_replay.envs.drawing.camera")
    problems: dict[str, str | None] = module.camera_problems()
    return problems


def _measured(camera: str, pictures: int) -> Finding:
    try:
        speed = _pictures_per_second(camera, pictures)
    except Exception as error:  # whatever an unfit library raises is what we want to report
        advice = "report this with the versions above"
        return Finding("cameras", camera, f"{type(error).__name__}: {error}", "problem", advice)
    return Finding("cameras", camera, f"{speed:,.0f} pictures/s")


def _pictures_per_second(camera: str, pictures: int) -> float:
    env = make("object-interaction", camera=camera, render_mode="rgb_array")
    env.reset(seed=0)
    env.render()
    start = time.perf_counter()
    for _ in range(pictures):
        env.render()
    elapsed = time.perf_counter() - start
    env.close()
    return pictures / elapsed


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the model name where the system tells it, else the kind of processor."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
