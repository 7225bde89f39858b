"""Curious Replay in an agent of your own.

A world model, here a small recurrent network in plain PyTorch, learns a stream of steps: a walker
on a ring of cells, moved left or right by its action. After a while a lamp is sometimes on, and
under the lamp the walker moves the other way round. How many updates does the model need to learn
the new rule when it replays all steps alike, and how many when it replays curiously?

    python examples/own_agent.py

trains both ways, prints a table and saves a plot. The lines marked with R are the replay.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from curious_replay.replay import Curious, ReplayBuffer, Rule, Uniform  # R

mpl.use("Agg")
import matplotlib.pyplot as plt

CELLS, ENVS, EPISODE, LENGTH, BATCH = 12, 4, 32, 16, 16
STEPS_PER_UPDATE = 8  # of each environment
TEST_EVERY = 5  # updates
LEARNED = 0.95  # of the moves under the lamp are predicted right


@dataclass
class Ring:
    """Walkers on rings of cells, one for each environment."""

    rng: np.random.Generator
    envs: int = ENVS
    lamp_chance: float = 0.0  # of an episode with the lamp on

    def __post_init__(self) -> None:
        self.time = 0
        self.cell = np.zeros(self.envs, np.int64)
        self.lamp = np.zeros(self.envs, np.int64)

    def step(self) -> dict[str, np.ndarray]:
        """Return the current observation and the random action chosen there; then move on."""
        first = self.time % EPISODE == 0
        if first:
            self.cell = self.rng.integers(0, CELLS, self.envs)
            self.lamp = (self.rng.random(self.envs) < self.lamp_chance).astype(np.int64)
        action = self.rng.integers(0, 3, self.envs)  # left, stay, right
        last = self.time % EPISODE == EPISODE - 1
        step = {
            "cell": self.cell,
            "lamp": self.lamp,
            "action": action,
            "is_first": np.full(self.envs, first),
            "is_last": np.full(self.envs, last),
            "is_terminal": np.zeros(self.envs, bool),
        }
        move = (action - 1) * np.where(self.lamp == 1, -1, 1)
        self.cell = (self.cell + move) % CELLS
        self.time += 1
        return step


class WorldModel(nn.Module):
    """Predicts the next cell from all that came before it."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.core = nn.GRU(CELLS + 2 + 3, width, batch_first=True)
        self.head = nn.Linear(width, CELLS)

    def forward(self, batch: dict[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss [B, T] of each step and whether it was predicted right [B, T].

        Windows lie inside one episode. Nothing is known before their first step: it has loss 0.
        """
        cell, lamp, action = (
            functional.one_hot(torch.from_numpy(batch[name]), count).float()
            for name, count in (("cell", CELLS), ("lamp", 2), ("action", 3))
        )
        states, _ = self.core(torch.cat([cell, lamp, action], -1))
        logits = self.head(states[:, :-1])
        target = torch.from_numpy(batch["cell"])[:, 1:]
        loss = functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
        right = logits.argmax(-1) == target
        return functional.pad(loss, (1, 0)), functional.pad(right, (1, 0))


def windows_under_the_lamp(count: int) -> dict[str, np.ndarray]:
    """Windows [count, T] in which the lamp is on, to test the model with."""
    ring = Ring(np.random.default_rng(10_000), count, lamp_chance=1.0)
    steps = [ring.step() for _ in range(LENGTH)]
    return {name: np.stack([step[name] for step in steps], 1) for name in steps[0]}


def run(rule: Rule, seed: int, before: int, after: int) -> list[float]:
    """Train for `before` updates, then switch the lamp on and train for `after` more.

    Returns how many of the moves under the lamp are predicted right, after every fifth of these.
    """
    torch.manual_seed(seed)
    ring = Ring(np.random.default_rng(seed))
    model = WorldModel()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    buffer = ReplayBuffer(200_000, LENGTH, ENVS, rule, cross_episodes=False, seed=seed)  # R
    test, scores = windows_under_the_lamp(48), []
    for update in range(before + after):
        if update == before:
            ring.lamp_chance = 0.25
        for _ in range(STEPS_PER_UPDATE):
            buffer.add(ring.step())  # R
        if not buffer.ready:  # R
            continue
        batch = buffer.sample(BATCH)  # R
        loss, _ = model(batch)
        optimiser.zero_grad()
        loss.mean().backward()
        optimiser.step()
        buffer.update(batch.ids, {"model": loss.detach().numpy()})  # R
        if update >= before and (update - before + 1) % TEST_EVERY == 0:
            with torch.no_grad():
                scores.append(float(model(test)[1][:, 1:].float().mean()))
    return scores


def updates_to_learn(scores: list[float]) -> int | None:
    """Return after how many updates the new rule was known, None if it never was."""
    tests = enumerate(scores, start=1)
    return next((TEST_EVERY * number for number, score in tests if score >= LEARNED), None)


def plot(curves: dict[str, list[list[float]]], path: Path) -> None:
    """Draw the share of right predictions against updates, one line a seed."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    colours = {"uniform": "#7f7f7f", "curious": "#c2185b"}
    for name, runs in curves.items():
        updates = TEST_EVERY * np.arange(1, len(runs[0]) + 1)
        for scores in runs:
            axes.plot(updates, scores, color=colours[name], alpha=0.25, linewidth=0.8)
        mean = np.mean(runs, axis=0)
        axes.plot(updates, mean, color=colours[name], linewidth=2.2, label=f"{name} replay")
    axes.axhline(LEARNED, color="black", linewidth=0.8, linestyle=":")
    axes.annotate("learned", (0, LEARNED), xytext=(2, 3), textcoords="offset points", fontsize=9)
    axes.set(
        xlabel="updates since the rule changed",
        ylabel="moves under the new rule\npredicted right",
        ylim=(0, 1.03),
        xlim=(0, None),
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Train with both rules, print a table, save a plot."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--before", type=int, default=600, help="updates before the change")
    parser.add_argument("--after", type=int, default=500, help="updates after the change")
    parser.add_argument("--plot", type=Path, default=Path("out/own_agent.png"))
    options = parser.parse_args()
    torch.set_num_threads(1)  # the network is too small to share
    rules: dict[str, Callable[[], Rule]] = {"uniform": Uniform, "curious": Curious}
    curves: dict[str, list[list[float]]] = {name: [] for name in rules}
    print("updates until 95 % of the moves under the new rule are predicted right")
    print(f"{'replay':<10}" + "".join(f"{f'seed {s}':>10}" for s in range(options.seeds)))
    start = time.perf_counter()
    for name, rule in rules.items():
        print(f"{name:<10}", end="", flush=True)
        for seed in range(options.seeds):
            curves[name].append(run(rule(), seed, options.before, options.after))
            learned = updates_to_learn(curves[name][-1])
            text = f"> {options.after}" if learned is None else str(learned)
            print(f"{text:>10}", end="", flush=True)
        print()
    plot(curves, options.plot)
    print(f"plot: {options.plot}   ({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
