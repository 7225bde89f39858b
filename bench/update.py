"""How fast agents learn: seconds of one whole update, of DreamerV3 beside sheeprl, and of all.

    python bench/update.py --sheeprl-python ~/sheeprl/bin/python

An update trains world model, actor and critic on 16 windows of 64 steps, images of 64x64x3, with
17 discrete actions and 15 imagined steps. Contestants live in processes of their own and take
turns, one update each; medians are compared. Absolute numbers depend on the machine and its load:
compare within one run.

After that each of our agents has a row, with the settings and the batch that its preset has on
Crafter, and images of 64x64x3 too, computed as precisely as `curious train` does. Then come two
agents as small as in the miniatures, with one thread, in time of the processor; a change of the
code is judged beside the checkout without it:

    git worktree add ../before main
    python bench/update.py --sizes --agents --rounds 20 --against ../before

On a graphics card only the agents take part, one after the other, at any scale:

    python bench/update.py --device cuda --scale paper
    python bench/update.py --device cuda --scale paper --graphs
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, get_args

import numpy as np
import timing
import torch
from update_agents import WARM_UPS, agent_rows, agent_table
from update_peers import ACTIONS, PIXELS

from curious_replay.replay import Curious, ReplayBuffer, Uniform
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.config import SCALES, Precision

OURS = "curious"
WORKER = Path(__file__).with_name("update_peers.py")
HERE = Path(__file__).parents[1]
SMALL = ("mirror", "assay")
LEAN: dict[str, tuple[str, dict[str, float]]] = {
    "mirror": ("16 pixels, a quarter of the starts", {"pixels": 16, "starts": 0.25}),
    "assay": ("half of the starts", {"starts": 0.5}),  # it is not shown in fewer pixels
}
IN_A_TURN = 10  # small updates: memory is warm in most of them


class MissingError(Exception):
    """A contestant cannot take part."""


class Worker:
    """A contestant in a process of its own."""

    def __init__(
        self, name: str, size: str, python: str, environment: Mapping[str, str], **numbers: float
    ) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [python, str(WORKER), name, size, *(f"--{key}={n}" for key, n in numbers.items())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        greeting = self._answer()
        if "missing" in greeting:
            self.close()
            raise MissingError(greeting["missing"])
        self.parameters: dict[str, int] = greeting["parameters"]
        self.versions: dict[str, str] = greeting["versions"]

    def ask(self, request: str) -> Any:
        """Let it do what is asked; returns its answer."""
        assert self._process.stdin is not None
        print(request, file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with status {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def surroundings(threads: int) -> dict[str, str]:
    """Environment variables of a contestant: nothing that our package has set in this process."""
    names = os.environ.keys() - {"THP_MEM_ALLOC_ENABLE"}
    return {name: os.environ[name] for name in names} | {"OMP_NUM_THREADS": str(threads)}


def start_workers(size: str, options: argparse.Namespace) -> list[Worker]:
    """Start ours and, if an interpreter is given, sheeprl as it is and compiled."""
    numbers = {key: getattr(options, key) for key in ("windows", "length", "threads")}
    environment = surroundings(options.threads)
    workers = [Worker(OURS, size, sys.executable, environment, **numbers)]
    if options.sheeprl_python is not None:
        names = ["sheeprl"] if options.uncompiled else ["sheeprl", "sheeprl compiled"]
        for name in names:
            try:
                python = options.sheeprl_python
                workers.append(Worker(name, size, python, environment, **numbers))
            except MissingError as error:
                print(f"without {name}: {error}", file=sys.stderr)
    return workers


def race(size: str, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of an update of each contestant, and of ours its speed and its parts."""
    workers = start_workers(size, options)
    ours = workers[0]
    for worker in workers[1:]:
        if worker.parameters != ours.parameters:
            raise ValueError(
                f"{worker.name} has {worker.parameters} parameters, ours {ours.parameters}: "
                "these agents are not of one size"
            )
    for worker in workers:
        for _ in range(WARM_UPS):
            worker.ask("update")
    turns: dict[str, list[float]] = {worker.name: [] for worker in workers}
    limit = []
    for _ in range(options.rounds):
        for worker in workers:
            turns[worker.name].append(worker.ask("update")["seconds"])
        limit.append(ours.ask("matmul")["flops"])
    seconds = {name: median(values) for name, values in turns.items()}
    reached = ours.ask("flops")["flops"] / seconds[OURS]
    result = {
        "parameters": ours.parameters,
        "versions": {worker.name: worker.versions for worker in workers},
        "seconds": seconds,
        "turns": turns,
        "flops": {"reached": reached, "large matrix product": median(limit)},
        "shares": ours.ask("profile")["shares"],
    }
    for worker in workers:
        worker.close()
    return result


def small_race(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a small update: of another checkout, of this one, and with its options."""
    options_of_it, lean = LEAN[name]
    entries: dict[str, tuple[Path, dict[str, float]]]
    entries = {"now": (HERE, {}), f"now, {options_of_it}": (HERE, lean)}
    if options.against is not None:
        entries = {"before": (options.against, {}), **entries}
    workers: dict[str, Worker] = {}
    for row, (checkout, numbers) in entries.items():
        environment = {**surroundings(1), "PYTHONPATH": str(checkout.resolve())}
        try:
            workers[row] = Worker("small", name, sys.executable, environment, threads=1, **numbers)
        except MissingError as error:
            print(f"without {name}, {row}: {error}", file=sys.stderr)
    turns: dict[str, list[float]] = {row: [] for row in workers}
    for turn in range(options.rounds + 1):
        for row, worker in workers.items():
            seconds = [worker.ask("update")["seconds"] for _ in range(IN_A_TURN)]
            if turn:  # the first is a warm-up
                turns[row].append(1e3 * median(seconds))
    for worker in workers.values():
        worker.close()
    return {"turns": turns, "milliseconds": {row: median(each) for row, each in turns.items()}}


def small_table(name: str, result: Mapping[str, Any]) -> str:
    """One small update, in words."""
    lines = [f"One small update, {name}, one thread", f"{'milliseconds':>46}{'/ first':>10}"]
    milliseconds = result["milliseconds"]
    first = next(iter(milliseconds.values()))
    lines += [f"{row:<36}{ms:>10.1f}{ms / first:>9.2f}x" for row, ms in milliseconds.items()]
    return "\n".join([*lines, ""])


def priority_seconds(options: argparse.Namespace) -> dict[str, float]:
    """Seconds to draw by priority, to draw uniformly, and to renew the priorities of a batch."""
    rng = np.random.default_rng(0)
    step = {
        "action": np.zeros((1, ACTIONS), np.float32),
        "reward": np.zeros(1, np.float32),
        **{name: np.zeros(1, bool) for name in ("is_first", "is_last", "is_terminal")},
    }
    images = [{"image": rng.integers(0, 256, (1, PIXELS, PIXELS, 3), np.uint8)} for _ in range(64)]
    buffers = {rule: ReplayBuffer(options.steps, options.length, rule=rule) for rule in
               (Curious(), Uniform())}  # fmt: skip
    for image, _ in zip(itertools.cycle(images), range(options.steps), strict=False):
        for buffer in buffers.values():
            buffer.add({**step, **image})
    curious, uniform = buffers.values()
    losses = rng.random((options.windows, options.length), np.float32) * 300
    ids = itertools.cycle([curious.sample(options.windows).ids for _ in range(100)])
    works: dict[str, timing.Work] = {
        "draw by priority": lambda: curious.sample(options.windows),
        "draw uniformly": lambda: uniform.sample(options.windows),
        "renew priorities": lambda: curious.update(next(ids), {"model": losses}),
    }
    rates = timing.rates(works, options.rounds, seconds=0.1)
    return {name: 1 / rate for name, rate in rates.items()}


def table(size: str, result: Mapping[str, Any], priorities: Mapping[str, float]) -> str:
    """Everything about one size, in words."""
    seconds: dict[str, float] = result["seconds"]
    total = sum(result["parameters"].values())
    lines = [f"One update of size {size}, {total:,} parameters", f"{'seconds':>28}{'/ ours':>10}"]
    for name, value in seconds.items():
        lines.append(f"{name:<18}{value:>10.3f}{value / seconds[OURS]:>9.2f}x")
    flops = result["flops"]
    reached, limit = flops["reached"], flops["large matrix product"]
    lines.append(
        f"ours: {reached / 1e9:.0f} GFLOP/s, {reached / limit:.0%} of a large matrix product"
    )
    lines.append(f"prioritisation: {priority_share(seconds[OURS], priorities):.2%} of an update")
    lines.append(", ".join(f"{name} {share:.0%}" for name, share in result["shares"].items()))
    return "\n".join([*lines, ""])


def priority_share(update: float, priorities: Mapping[str, float]) -> float:
    """Time that prioritisation takes, as a part of an update that takes `update` seconds."""
    draw = priorities["draw by priority"] - priorities["draw uniformly"]
    return (draw + priorities["renew priorities"]) / update


def main() -> None:
    """Run everything, print tables, write `update.json`."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sizes", nargs="*", default=["tiny", "XS"], metavar="SIZE")
    parser.add_argument("--sheeprl-python", help="interpreter that has sheeprl==0.8.4 installed")
    parser.add_argument("--uncompiled", action="store_true", help="leave out sheeprl compiled")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contestant")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--windows", type=int, default=16)
    parser.add_argument("--length", type=int, default=64, help="steps of a window")
    parser.add_argument("--steps", type=int, default=20_000, help="steps stored for replay")
    parser.add_argument("--agents", nargs="*", default=[*AGENTS], choices=[*AGENTS])
    parser.add_argument("--scale", default="mini", choices=SCALES, help="of --agents")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="of --agents")
    parser.add_argument(
        "--precision", default="auto", choices=get_args(Precision), help="of --agents, as of a run"
    )
    parser.add_argument("--graphs", action="store_true", help="repeat a recorded update, on cuda")
    parser.add_argument("--small", nargs="*", default=SMALL, choices=SMALL)
    parser.add_argument("--against", type=Path, help="another checkout, for small updates of both")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder for the JSON")
    options = parser.parse_args()
    if options.device == "cuda":
        if not torch.cuda.is_available():
            parser.exit(2, "bench/update.py --device cuda: torch finds no graphics card here\n")
        options.sizes, options.small = [], []  # races of processors
    elif options.graphs:
        parser.error("--graphs needs --device cuda")

    if options.against is not None and not (options.against / "curious_replay").is_dir():
        parser.error(f"--against must be a checkout of this project, got {options.against}")
    priorities = priority_seconds(options)
    results: dict[str, Any] = {"priorities": priorities, "sizes": {}}
    for size in options.sizes:
        result = race(size, options)
        result["priority_share"] = priority_share(result["seconds"][OURS], priorities)
        results["sizes"][size] = result
        print(table(size, result, priorities), flush=True)
    if options.agents:
        results["agents"] = agent_rows(options)
        print(agent_table(results["agents"], options.scale), flush=True)
    results["small"] = {name: small_race(name, options) for name in options.small}
    for name, result in results["small"].items():
        print(small_table(name, result), flush=True)
    timing.write(options.out / "update.json", results)
    print(f"written to {options.out / 'update.json'}")


if __name__ == "__main__":
    main()
