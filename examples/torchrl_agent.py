"""Curious Replay in a TorchRL agent: one line more than uniform replay, the sampler.

A model learns how a ball rolls along a track when it is pushed, up to a wall. After a while the
wall falls, and behind it a push moves the ball the other way. How many updates does the model need
to learn that when TorchRL's buffer replays all slices alike, and how many when it does so
curiously?

    python examples/torchrl_agent.py

trains both ways and prints a table. It needs TorchRL: pip install "curious-replay[torchrl]"
"""

import argparse
import logging
import time
from collections.abc import Callable
from typing import Any

import torch
from tensordict import TensorDict
from torch import nn
from torchrl.data import LazyTensorStorage, SliceSampler, TensorDictReplayBuffer

from curious_replay import Curious
from curious_replay.torchrl import CuriousSampler

EPISODE, SLICES, LENGTH = 40, 16, 8  # steps, slices in a batch, steps in a slice
WALL = 0.5  # the track ends at -1 and 1
TEST_EVERY = 10  # updates
LEARNED = 1 / 3  # of the error behind the wall of a model that was never there

SAMPLERS: dict[str, Callable[[], Any]] = {
    "uniform": lambda: SliceSampler(slice_len=LENGTH, traj_key="episode"),
    "curious": lambda: CuriousSampler(Curious(), slice_len=LENGTH, traj_key="episode"),
}


def roll(ball: torch.Tensor, push: torch.Tensor, end: float) -> torch.Tensor:
    """Return where balls [..., 2] (place and speed) are after a push [..., 1]."""
    place, speed = ball[..., :1], ball[..., 1:]
    speed = 0.9 * speed + 0.05 * torch.where(place > WALL, -push, push)
    return torch.cat([(place + speed).clamp(-1, end), speed], -1)


def episode(number: int, end: float, generator: torch.Generator) -> TensorDict:
    """Return the steps [40] of a ball that is pushed at random."""
    ball = torch.rand(2, generator=generator) * torch.tensor([1.5, 0.1]) - torch.tensor([1.0, 0.05])
    pushes = torch.rand(EPISODE, 1, generator=generator) * 2 - 1
    balls = [ball]
    for push in pushes:
        balls.append(roll(balls[-1], push, end))
    path = torch.stack(balls)
    steps = {"ball": path[:-1], "push": pushes, ("next", "ball"): path[1:]}
    return TensorDict({**steps, "episode": torch.full((EPISODE,), number)}, [EPISODE])


def make_model() -> nn.Sequential:
    """Return a network that predicts how place and speed change."""
    return nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(),
                         nn.Linear(64, 2))  # fmt: skip


def errors(model: nn.Module, steps: TensorDict) -> Any:
    """Return the squared error of each step [N], in units of a push."""
    change = (steps["next", "ball"] - steps["ball"]) / 0.05
    predicted = model(torch.cat([steps["ball"], steps["push"]], -1))
    return (predicted - change).square().mean(-1)


def run(name: str, seed: int, before: int, after: int) -> list[float]:
    """Train for `before` updates, then let the wall fall and train for `after` more.

    Returns the error behind it at that moment and after every tenth update since, as a share of
    the first.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = make_model()
    optimiser = torch.optim.Adam(model.parameters(), 2e-3)
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(100_000),
        sampler=SAMPLERS[name](),
        batch_size=SLICES * LENGTH,
        priority_key="loss",
        generator=generator,
    )
    test = test_steps()
    scores: list[float] = []
    for update in range(before + after):
        if update >= before and (update - before) % TEST_EVERY == 0:
            scores.append(float(errors(model, test).mean().detach()))
        if update % 2 == 0:
            buffer.extend(episode(update // 2, WALL if update < before else 1.0, generator))
        batch = buffer.sample()
        loss = errors(model, batch)
        optimiser.zero_grad()
        loss.mean().backward()
        optimiser.step()
        batch["loss"] = loss.detach()
        buffer.update_tensordict_priority(batch)
    return [score / scores[0] for score in scores]


def test_steps() -> TensorDict:
    """Return steps [500] behind the wall."""
    generator = torch.Generator().manual_seed(10_000)
    place = WALL + (1 - WALL) * torch.rand(500, 1, generator=generator)
    speed = torch.rand(500, 1, generator=generator) * 0.2 - 0.1
    push = torch.rand(500, 1, generator=generator) * 2 - 1
    ball = torch.cat([place, speed], -1)
    return TensorDict({"ball": ball, "push": push, ("next", "ball"): roll(ball, push, 1.0)}, [500])


def updates_to_learn(scores: list[float]) -> int | None:
    """Return after how many updates the track behind the wall was known, None if it never was."""
    tests: Any = enumerate(scores)
    return next((TEST_EVERY * number for number, score in tests if score < LEARNED), None)


def main() -> None:
    """Train with both samplers, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--before", type=int, default=600, help="updates before the change")
    parser.add_argument("--after", type=int, default=600, help="updates after the change")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the network is too small to share
    logging.getLogger("torchrl").setLevel(logging.WARNING)  # it tells of each storage it makes
    print("updates until the error behind the wall is a third of what it was")
    print(f"{'replay':<10}" + "".join(f"{f'seed {s}':>10}" for s in range(options.seeds)))
    start = time.perf_counter()
    for name in SAMPLERS:
        print(f"{name:<10}", end="", flush=True)
        for seed in range(options.seeds):
            learned = updates_to_learn(run(name, seed, options.before, options.after))
            text = f"> {options.after}" if learned is None else str(learned)
            print(f"{text:>10}", end="", flush=True)
        print()
    print(f"({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
