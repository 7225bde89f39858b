"""Memory: images take little more than their bytes, and in a folder hardly any memory at all."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "bench/memory.py"
GIB = 2**30


def measure(steps, mode, folder):
    command = [sys.executable, str(SCRIPT), "--steps", str(steps), "--modes", mode]
    command += ["--directory", str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pattern = rf"{mode}: {steps:,} steps, largest resident size ([\d.]+) GiB \(([\d.]+) GiB"
    return tuple(map(float, re.match(pattern, output).groups()))


def test_a_million_steps_fit_into_12_6_gib(tmp_path):
    """Extended to a million from two smaller sizes, which tell apart what the process takes."""
    small, large = (measure(steps, "memory", tmp_path)[0] for steps in (20_000, 80_000))
    images = 60_000 * 64 * 64 * 3 / GIB
    assert images - 0.02 < large - small  # the images are really there
    assert small + (large - small) / 60_000 * 980_000 < 12.6


def test_a_folder_larger_than_the_limit_takes_less_memory_than_the_limit(tmp_path):
    steps = 100_000
    assert steps * 64 * 64 * 3 > 1.1 * GIB
    largest, _ = measure(steps, "folder", tmp_path)
    assert largest < 1.0
