"""Does Curious Replay adapt sooner when the world turns round? A toy, on two cores in half an hour.

DreamerV3 learns `toy/mirror` with uniform and with curious replay, several seeds of each. At frame
2,000 every move is mirrored. Measured is the number of steps from the start, and from the change,
until the task is solved: 20 episodes in a row reach the goal, in 8 steps on average.

    python experiments/toy_mirror.py --seeds 5 --out results/toy-mirror

Start it again after an interruption and it goes on where it was.
"""

import json
import statistics
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from curious_replay.run import Choice, preset, train
from curious_replay.run.files import read_lines, write_json

REPLAYS = ("uniform", "curious")
CHANGE = 2_000  # steps, which are frames here
IN_A_ROW, LENGTH = 20, 8.0


@dataclass
class Options:
    """How many runs, and where they go."""

    seeds: int = 5
    """Runs of each kind of replay."""
    out: Path = Path("results/toy-mirror")
    """Folder of the table; the runs themselves go to `runs`."""
    runs: Path = Path("runs/toy-mirror")
    """Folder of the run folders."""
    steps: int = 4_500
    """Steps of a run."""
    at_once: int = 2
    """Runs side by side, one thread each."""


def run(job: tuple[str, int], folder: Path, steps: int) -> dict[str, Any]:
    """Train one seed with one kind of replay, or read what it did before."""
    replay, seed = job
    choice = Choice(env="toy/mirror", agent="dreamerv3", replay=replay, scale="mini")
    settings = preset(choice, seed)
    settings = replace(
        settings,
        train=replace(settings.train, steps=steps, threads=1),
        eval=replace(settings.eval, every=0),
        record=replace(settings.record, video_every=0),
    )
    path = folder / f"{replay}-{seed}"
    train(settings, path, resume=True, console=Console(quiet=True))
    episodes = [line for line in read_lines(path / "episodes.jsonl") if line["mode"] == "train"]
    return {
        "replay": replay,
        "seed": seed,
        "solved": steps_to_solve(episodes, 0, CHANGE),
        "solved_again": steps_to_solve(episodes, CHANGE, steps),
    }


def steps_to_solve(episodes: list[dict[str, Any]], begin: int, end: int) -> int | None:
    """Steps from `begin` until a row of good episodes is complete; None if it never is."""
    recent: list[dict[str, Any]] = []
    for episode in episodes:
        if not begin + episode["length"] <= episode["step"] <= end:
            continue
        recent = [*recent, episode][-IN_A_ROW:]
        won = all(each["return"] > 0 for each in recent)
        mean = statistics.mean(each["length"] for each in recent)
        if len(recent) == IN_A_ROW and won and mean <= LENGTH:
            return int(episode["step"]) - begin
    return None


def main(options: Options) -> None:
    """Train all, print the table and write it."""
    jobs = [(replay, seed) for seed in range(options.seeds) for replay in REPLAYS]
    work = partial(run, folder=options.runs, steps=options.steps)
    with ProcessPoolExecutor(options.at_once, get_context("spawn")) as pool:
        results = list(pool.map(work, jobs))
    table = Table("replay", "seed", "steps to solve", "steps to solve again")
    for result in sorted(results, key=lambda each: (each["replay"], each["seed"])):
        table.add_row(*(str(result[name]) for name in result))
    Console().print(table)
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / "results.json", {"steps": options.steps, "runs": results})
    print(json.dumps(summary(results, options.steps - CHANGE), indent=1))


def summary(results: list[dict[str, Any]], longest: int) -> dict[str, Any]:
    """Medians by kind of replay; a run that never solved it again counts as the longest."""
    found = {}
    for replay in REPLAYS:
        times = [r["solved_again"] for r in results if r["replay"] == replay]
        found[replay] = {
            "median": statistics.median(longest if t is None else t for t in times),
            "never": times.count(None),
            "runs": len(times),
        }
    return found


if __name__ == "__main__":
    main(tyro.cli(Options))
