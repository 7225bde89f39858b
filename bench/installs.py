"""What installing the package takes: fresh environments, by Python and extras, and what then works.

    python bench/installs.py                             # the core alone, on each Python found here
    python bench/installs.py --extras run,worlds --pythons 3.11

Each environment is made below `--out` with `pip install` of this checkout, measured, tried and
removed. pip needs a package index, and with the extra `run` gigabytes where it takes PyTorch with
CUDA.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
MEGABYTE = 1e6
AROUND_THE_EXAMPLE = """
import numpy as np
step = dict.fromkeys(("is_first", "is_last", "is_terminal"), np.zeros(4, bool))
step["image"] = np.zeros((4, 8, 8, 3), np.uint8)
train = lambda batch: np.ones(batch["image"].shape[:2])
"""
RUN = (
    "curious demo --quick --seeds 1 --no-open",
    "curious train --env toy/mirror --agent dreamerv3 --replay curious --scale debug --logdir run",
)
"""Commands that are tried where the extra `run` is installed."""


def example() -> str:
    """Return the ten lines of the README as a program that ends."""
    text = (ROOT / "README.md").read_text()
    blocks: list[str] = re.findall(r"```python\n(.*?)```", text, re.S)
    [code] = [block for block in blocks if "add(step)" in block]
    return AROUND_THE_EXAMPLE + code.replace("while training:", "for _ in range(100):")


def find_python(version: str) -> Path | None:
    """Return an interpreter of a version such as "3.12" that can make environments, if any."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [Path(sys.executable), *pyenv.glob(f"versions/{version}.*/bin/python")]
    if found := shutil.which(f"python{version}"):
        candidates.append(Path(found))
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for candidate in candidates:
        done = subprocess.run(
            [candidate, "-c", code], capture_output=True, text=True, check=False, cwd="/"
        )
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    return None


def fresh_environment(python: Path, folder: Path) -> Path:
    """Make an environment that has pip and nothing else; return its folder of programs."""
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin")


def clean_environ(programs: Path) -> dict[str, str]:
    """Return variables with which these programs find each other and nothing of this checkout."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "PATH": f"{programs}{os.pathsep}{kept.get('PATH', '')}"}


def install(programs: Path, *what: str | Path) -> None:
    """Call pip; CalledProcessError if it cannot."""
    command = [programs / "python", "-m", "pip", "install", "--quiet", *what]
    subprocess.run(command, check=True, env=clean_environ(programs), cwd=programs)


def sizes(folder: Path) -> tuple[float, dict[str, float]]:
    """Return the megabytes of an environment's packages, and those of the largest of them."""
    [site] = (folder / "lib").glob("python*/site-packages")
    each = {path.name: _bytes(path) / MEGABYTE for path in site.iterdir()}
    tools = sum(size for name, size in each.items() if name.startswith(("pip", "setuptools")))
    largest = sorted(each, key=lambda name: -each[name])[:12]
    return sum(each.values()) - tools, {name: round(each[name], 1) for name in largest}


def measure(version: str, extras: str, folder: Path) -> dict[str, Any]:
    """Install, measure and try one environment; `extras` is "" or "run,worlds"."""
    python = find_python(version)
    if python is None:
        return {"python": version, "extras": extras, "skipped": "no such interpreter was found"}
    programs = fresh_environment(python, folder)
    install(programs, f"{ROOT}[{extras}]" if extras else ROOT)
    total, largest = sizes(folder)
    commands: dict[str, list[str | Path]] = {
        "the example": [programs / "python", "-W", "error", "-c", example()]
    }
    if "run" in extras.split(","):
        for line in RUN:
            program, *rest = line.split()
            commands[line] = [programs / program, *rest]
    with tempfile.TemporaryDirectory() as elsewhere:
        for command in commands.values():
            subprocess.run(
                command, check=True, env=clean_environ(programs), cwd=elsewhere, capture_output=True
            )
    return {
        "python": version,
        "extras": extras,
        "megabytes": round(total),
        "largest": largest,
        "works": [*commands],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all combinations, print a line for each, and write them to installs.json."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pythons", nargs="+", default=PYTHONS, help="versions such as 3.12")
    parser.add_argument("--extras", nargs="+", default=[""], help="such as run,worlds minigrid")
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for row in _measured(options.pythons, options.extras, options.out.resolve() / "environment"):
        rows.append(row)
        said = row.get("skipped") or f"{row['megabytes']} MB; {', '.join(row['works'])}"
        print(f"Python {row['python']} [{row['extras']}]: {said}", flush=True)
    (options.out / "installs.json").write_text(json.dumps(rows, indent=1) + "\n")


def _measured(
    pythons: Sequence[str], extras: Sequence[str], folder: Path
) -> Iterator[dict[str, Any]]:
    for version in pythons:
        for each in extras:
            try:
                yield measure(version, each, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_file())


if __name__ == "__main__":
    main()
