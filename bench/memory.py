"""How much memory replay takes, in memory and in a folder.

    python bench/memory.py --steps 1000000

fills a buffer with steps of 64x64x3 images, samples from it while more steps come in, and prints
the largest resident size of the process. Each mode runs in a process of its own.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from curious_replay.replay import ReplayBuffer

GIB = 2**30
ENVS = 4


def peak() -> int:
    """The largest resident size of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(steps: int, directory: str | None) -> None:
    """Fill, sample, and print what it took."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (16, ENVS, 64, 64, 3), np.uint8)
    flags = {name: np.zeros(ENVS, bool) for name in ("is_first", "is_last", "is_terminal")}
    rest = {"action": np.zeros((ENVS, 17), np.float32), "reward": np.zeros(ENVS, np.float32)}
    start = peak()
    buffer = ReplayBuffer(steps, 64, num_envs=ENVS, directory=directory)
    for t in range(steps // ENVS):
        buffer.add({"image": images[t % 16], **rest, **flags})
    for t in range(200):
        batch = buffer.sample(16)
        buffer.update(batch.ids, {"model": rng.random((16, 64))})
        buffer.add({"image": images[t % 16], **rest, **flags})
    assert len(buffer) == steps
    print(f"{steps} {peak()} {start}")


def main() -> None:
    """Measure both modes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--modes", nargs="+", default=["memory", "folder"])
    parser.add_argument("--directory", type=Path, help="where the folder mode puts its files")
    parser.add_argument("--measure", metavar="MODE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.steps, None if options.measure == "memory" else str(options.directory))
        return
    for mode in options.modes:
        with tempfile.TemporaryDirectory(dir=options.directory) as folder:
            command = [sys.executable, __file__, "--steps", str(options.steps)]
            command += ["--measure", mode, "--directory", folder]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        steps, largest, start = map(int, output.split())
        print(
            f"{mode}: {steps:,} steps, largest resident size {largest / GIB:.2f} GiB "
            f"({start / GIB:.2f} GiB of it before the buffer was made)",
            flush=True,
        )


if __name__ == "__main__":
    main()
