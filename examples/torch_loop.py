"""A recurrent world model in plain PyTorch that begins each window where it left off.

A lamp shows one of four colours at the first step of an episode and is dark ever after; at each
step the model is to name that colour. Episodes last 40 steps and windows 8, so most windows do not
show the colour. A model that begins windows with an empty state can only guess there. One that
begins with the state it had, which is stored with the steps and written back after each update,
learns to carry the colour through the whole episode.

    python examples/torch_loop.py      # both, in about half a minute

Lines that end with `# R` are all that replay takes. `--device cuda` trains on a graphics card, with
batches gathered in page-locked memory.
"""

import argparse

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from curious_replay.replay import Batch, ReplayBuffer  # R

COLOURS = 4
ENVS, EPISODE, LENGTH, BATCH = 4, 40, 8, 16
STEPS_PER_UPDATE = 4  # of each environment
HIDDEN = 32
Step = dict[str, np.ndarray]


class Lamps:
    """Four lamps, their episodes being out of step."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.time = rng.integers(EPISODE, size=ENVS)
        self.colour = rng.integers(COLOURS, size=ENVS)

    def step(self) -> Step:
        """Return the next step of all lamps: what is seen, and what is to be named, [4]."""
        self.time = (self.time + 1) % EPISODE
        first = self.time == 0
        self.colour = np.where(first, self.rng.integers(COLOURS, size=ENVS), self.colour)
        return {
            "seen": np.where(first, self.colour, COLOURS),  # COLOURS: it is dark
            "colour": self.colour,
            "is_first": first,
            "is_last": self.time == EPISODE - 1,
            "is_terminal": np.zeros(ENVS, bool),
        }


class WorldModel(nn.Module):
    """Names the colour from all that was seen so far."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Embedding(COLOURS + 1, HIDDEN)
        self.cell = nn.GRUCell(HIDDEN, HIDDEN)
        self.name = nn.Linear(HIDDEN, COLOURS)

    def step(self, seen: Tensor, is_first: Tensor, state: Tensor) -> Tensor:
        """Return the state [N, HIDDEN] after one more step."""
        state = torch.where(is_first[:, None], 0.0, state)
        new: Tensor = self.cell(self.seen(seen), state)
        return new

    def forward(self, batch: Batch, begin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return states [B, T - 1, HIDDEN], losses and whether names were right, [B, T - 1].

        `begin` [B, HIDDEN] are the states at the first step of each window.
        """
        states = [begin]
        for t in range(1, LENGTH):
            states.append(self.step(batch["seen"][:, t], batch["is_first"][:, t], states[-1]))
        after = torch.stack(states[1:], 1)
        names, colour = self.name(after), batch["colour"][:, 1:]
        loss = functional.cross_entropy(names.transpose(1, 2), colour, reduction="none")
        return after, loss, names.argmax(-1) == colour


def run(updates: int, seed: int = 0, *, keep: bool = True, device: str = "cpu") -> float:
    """Train for some updates, with states kept in replay or not.

    Returns the share of right names in windows that do not show the colour, in the last tenth.
    """
    torch.manual_seed(seed)
    lamps, model = Lamps(np.random.default_rng(seed)), WorldModel().to(device)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    buffer = ReplayBuffer(10_000, LENGTH, ENVS, seed=seed, online=True)  # R
    batches = buffer.prefetch(BATCH, pin=device != "cpu")  # R
    state, scores = torch.zeros(ENVS, HIDDEN, device=device), []
    for update in range(updates):
        for _ in range(STEPS_PER_UPDATE):
            step = lamps.step()
            seen, is_first = (torch.as_tensor(step[n], device=device) for n in ("seen", "is_first"))
            with torch.no_grad():
                state = model.step(seen, is_first, state)
            buffer.add({**step, "state": state})  # R
        if not buffer.ready:  # R
            continue
        batch = next(batches).torch(device)  # R
        begin = batch["state"][:, 0] if keep else torch.zeros(BATCH, HIDDEN, device=device)
        states, loss, right = model(batch, begin)
        optimiser.zero_grad()
        loss.mean().backward()
        optimiser.step()
        buffer.update(batch.ids[:, 1:], {"model": loss})  # R
        if keep:
            buffer.write(batch.ids[:, 1:], {"state": states})  # R
        if update >= 0.9 * updates:
            shown = batch["is_first"][:, 1:].cumsum(1) > 0
            scores.append(float(right[~shown].float().mean()))
    batches.close()  # R
    return sum(scores) / len(scores)


def main() -> None:
    """Train with and without states in replay, and print how often the colour was named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the network is too small to share
    print("colours named right where the window does not show them (chance: 0.25)")
    for name, keep in (("states kept in replay", True), ("empty states", False)):
        score = run(options.updates, options.seed, keep=keep, device=options.device)
        print(f"{name:<24}{score:.2f}")


if __name__ == "__main__":
    main()
