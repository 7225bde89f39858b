"""Fair timing on a noisy machine: contestants take turns, and medians are compared."""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

Work = Callable[[], object]


def rates(contestants: Mapping[str, Work], rounds: int, seconds: float) -> dict[str, float]:
    """Calls per second of each contestant: the median over `rounds` turns of `seconds` each."""
    for work in contestants.values():
        work()  # what is only done once (compiling, first allocation) is not part of the race
    measured: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, work in contestants.items():
            measured[name].append(_rate(work, seconds))
    return {name: median(values) for name, values in measured.items()}


def _rate(work: Work, seconds: float) -> float:
    calls, block = 0, 1
    start = time.perf_counter()
    while True:
        for _ in range(block):
            work()
        calls += block
        passed = time.perf_counter() - start
        if passed > seconds:
            return calls / passed
        block = max(1, int(calls / passed * seconds / 20))  # look at the clock 20 times, not more


def table(title: str, results: Mapping[str, Mapping[str, float]], ours: str) -> str:
    """Rates of each contestant (rows) for each workload (columns), with our ratio to the best."""
    works = list(dict.fromkeys(work for row in results.values() for work in row))
    width = max(map(len, [*results, "curious / best other"]))
    lines = [title, " " * width + "".join(f"{work:>18}" for work in works)]
    for name, row in results.items():
        cells = "".join(f"{row[work]:>18,.0f}" if work in row else f"{'-':>18}" for work in works)
        lines.append(f"{name:<{width}}{cells}")
    ratios = {work: ratio(results, work, ours) for work in works}
    cells = "".join(f"{'-' if r is None else f'{r:.2f}x':>18}" for r in ratios.values())
    return "\n".join([*lines, f"{'curious / best other':<{width}}{cells}", ""])


def ratio(results: Mapping[str, Mapping[str, float]], work: str, ours: str) -> float | None:
    """Our rate over the best other rate, None where there is no other."""
    others = [
        row[work] for name, row in results.items() if not name.startswith(ours) and work in row
    ]
    mine = results[ours].get(work)
    return mine / max(others) if others and mine else None


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    packages = ("numpy", "numba", "torch", "torchrl", "cpprb", "starr", "tianshou")
    versions = {}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "packages": versions,
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def write(path: Path, results: Mapping[str, Any]) -> None:
    """Write results with the machine they come from, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps({"machine": machine(), **results}, indent=2) + "\n")
    temporary.replace(path)
