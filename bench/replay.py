"""How fast replay is: the priority tree alone, the buffer as a Dreamer uses it, and the limit.

    python bench/replay.py --peers

prints tables of calls per second (higher is better) and writes them to JSON. Absolute numbers
depend on the machine and its load: compare within one run.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import peers
import timing
from peers import LENGTH, WINDOWS

from curious_replay.replay import Curious, ReplayBuffer

Made = TypeVar("Made")
OURS = "curious"
BATCH = WINDOWS * LENGTH
TREE_WORKS = ("sample 16", "sample 1024", "set 1024", "set 16 runs")
BUFFER_WORKS = ("sample 16x64", "index 16x64", "update 1024", "add")
GROWTH = "sample + update"
# Times as many rounds where a call is so short that others on the machine show: medians of 7 turns
# of an update differed by a third from run to run.
ROUNDS = {"update 1024": 6}


def available(
    contestants: Mapping[str, Callable[..., Made]], with_peers: bool, *arguments: object
) -> dict[str, Made]:
    """Make ours and, if wanted, every peer that is installed; say which are not."""
    made = {}
    for name, make in contestants.items():
        if name != OURS and not with_peers:
            continue
        try:
            made[name] = make(*arguments)
        except ImportError as error:
            print(f"without {name}: {error}", file=sys.stderr)
    return made


def tree_rates(capacity: int, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Draw 16, draw 1,024, set 1,024 random leaves, set 16 runs of 64 leaves."""
    rng = np.random.default_rng(0)
    trees = available(peers.TREES, options.peers, capacity, rng)
    everything, first = np.arange(capacity), rng.random(capacity) + 0.5
    for tree in trees.values():
        tree.set(everything, first)
    # New places each time, as in use: the same ones over and over would stay in the cache.
    randoms = [rng.integers(0, capacity, BATCH) for _ in range(500)]
    starts = [rng.integers(0, capacity - LENGTH, WINDOWS) for _ in range(500)]
    runs = [(s[:, None] + np.arange(LENGTH)).reshape(-1) for s in starts]
    values = rng.random(BATCH) + 0.5

    def set_next(tree: peers.Tree, places: list[peers.Array]) -> None:
        places.append(places.pop(0))
        tree.set(places[0], values)

    works: dict[str, Callable[[peers.Tree], Callable[[], object]]] = {
        "sample 16": lambda tree: partial(tree.sample, 16),
        "sample 1024": lambda tree: partial(tree.sample, 1024),
        "set 1024": lambda tree: partial(set_next, tree, list(randoms)),
        "set 16 runs": lambda tree: partial(set_next, tree, list(runs)),
    }
    return race(trees, works, options)


def race(
    contestants: Mapping[str, Any],
    works: Mapping[str, Callable[[Any], Callable[[], object]]],
    options: argparse.Namespace,
) -> dict[str, dict[str, float]]:
    """Rates of every contestant for every work that is wanted."""
    results: dict[str, dict[str, float]] = {name: {} for name in contestants}
    for work, prepare in works.items():
        if work not in options.only:
            continue
        turns = {name: prepare(c) for name, c in contestants.items()}
        rounds = options.rounds * ROUNDS.get(work, 1)
        for name, rate in timing.rates(turns, rounds, options.seconds).items():
            results[name][work] = rate
    return results


def buffer_rates(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Sample 16 x 64 images, update 1,024 priorities, add a step; and the limit for sampling.

    Of what is inside TorchRL's buffer, also the index alone: its storage takes most of the time.
    """
    stream = peers.Stream(options.steps, np.random.default_rng(0))
    buffers = available(peers.BUFFERS, options.peers, stream)
    sampling: dict[str, Callable[[], object]] = {name: b.sample for name, b in buffers.items()}
    ours = buffers[OURS]
    assert isinstance(ours, peers.CuriousBuffer)
    sampling[f"{OURS}, no repeats"] = ours.sample_apart
    sampling["limit: NumPy copy"] = peers.CopyLimit(stream).sample
    results = race(sampling, {"sample 16x64": lambda sample: sample}, options)
    inside = {n: b for n, b in buffers.items() if isinstance(b, peers.TorchRLBuffer)}
    indices = race(inside, {"index 16x64": lambda b: b.draw}, options)
    rest = race(buffers, {"update 1024": lambda b: b.update, "add": lambda b: b.add}, options)
    return {
        name: {**row, **indices.get(name, {}), **rest.get(name, {})}
        for name, row in results.items()
    }


def growth(sizes: tuple[int, int], options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Sampling and updating with ten times as many steps stored; small steps, to fit anywhere."""
    buffers = {}
    rng = np.random.default_rng(0)
    for size in sizes:
        buffer = ReplayBuffer(size, LENGTH, rule=Curious())
        for _ in range(size):
            buffer.add({"x": np.zeros((1, 16), np.float32), **peers.FLAGS})
        buffers[f"{size:,} steps"] = buffer
    losses = rng.random((WINDOWS, LENGTH))

    def sample_and_update(buffer: ReplayBuffer) -> None:
        buffer.update(buffer.sample(WINDOWS).ids, {"model": losses})

    return race(buffers, {GROWTH: lambda b: partial(sample_and_update, b)}, options)


def main() -> None:
    """Run everything, print tables, write `replay.json`."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--peers", action="store_true", help="compare with installed peers")
    parser.add_argument(
        "--rounds", type=int, default=7, help="turns of each contestant, 6 times that of an update"
    )
    parser.add_argument("--seconds", type=float, default=0.2, help="length of a turn")
    parser.add_argument("--steps", type=int, default=100_000, help="images stored in a buffer")
    parser.add_argument(
        "--capacities", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7], metavar="LEAVES"
    )
    works = [*TREE_WORKS, *BUFFER_WORKS, GROWTH]
    parser.add_argument("--only", nargs="+", choices=works, default=works, metavar="WORK",
                        help=f"of {', '.join(works)}")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder for the JSON")
    options = parser.parse_args()

    results: dict[str, Any] = {}
    if set(options.only) & set(TREE_WORKS):
        results["tree"] = {}
        for capacity in options.capacities:
            rows = tree_rates(capacity, options)
            results["tree"][str(capacity)] = rows
            print(timing.table(f"Priority tree, {capacity:,} leaves", rows, OURS), flush=True)
    if set(options.only) & set(BUFFER_WORKS):
        results["buffer"] = buffer_rates(options)
        title = f"Buffer of {options.steps:,} steps with 64x64x3 images"
        print(timing.table(title, results["buffer"], OURS), flush=True)
    if GROWTH in options.only:
        large = 10 * options.steps
        results["growth"] = growth((options.steps, large), options)
        small, big = (row[GROWTH] for row in results["growth"].values())
        print(
            f"Sampling and updating {large:,} steps takes {small / big:.2f}x the time of ", end=""
        )
        print(f"{options.steps:,} steps\n")
    timing.write(options.out / "replay.json", results)
    print(f"written to {options.out / 'replay.json'}")


if __name__ == "__main__":
    main()
