"""A small world model in plain JAX: arrays of NumPy out of replay, arrays of JAX back into it.

A walker steps around a ring of 12 places. Half way through the training a lamp is switched on now
and then, and under the lamp all moves are mirrored. The model learns to predict the next place.

    pip install jax
    python examples/jax_loop.py      # a few seconds

Lines that end with `# R` are all that replay takes.
"""

import argparse
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from curious_replay.replay import Curious, ReplayBuffer  # R

PLACES, ENVS, LENGTH, BATCH, HIDDEN = 12, 4, 16, 16, 64
STEPS_PER_UPDATE = 4  # of each environment
INPUTS = PLACES + 3 + 1  # where the walker is, its move, the lamp
Params = dict[str, Any]


class Ring:
    """Walkers that move by -1, 0 or 1, mirrored under the lamp."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.lamp_chance = rng, 0.0
        self.place = rng.integers(PLACES, size=ENVS)
        self.first = True

    def step(self) -> dict[str, np.ndarray]:
        """Return the next step of all walkers, and what they do next, [ENVS] each."""
        action = self.rng.integers(3, size=ENVS)
        lamp = self.rng.random(ENVS) < self.lamp_chance
        step = {
            "place": self.place,
            "action": action,
            "lamp": lamp,
            "is_first": np.full(ENVS, self.first),
            "is_last": np.zeros(ENVS, bool),
            "is_terminal": np.zeros(ENVS, bool),
        }
        self.place = (self.place + np.where(lamp, 1 - action, action - 1)) % PLACES
        self.first = False
        return step


def begin(key: jax.Array) -> Params:
    """Return the weights of a network with one hidden layer."""
    one, two = jax.random.split(key)
    return {
        "hidden": jax.random.normal(one, (INPUTS, HIDDEN)) / INPUTS**0.5,
        "out": jax.random.normal(two, (HIDDEN, PLACES)) / HIDDEN**0.5,
    }


def losses(params: Params, place: Any, action: Any, lamp: Any) -> tuple[jax.Array, jax.Array]:
    """Return how badly each next place is predicted, and whether it was right, [B, T - 1]."""
    inputs = (jax.nn.one_hot(place, PLACES), jax.nn.one_hot(action, 3), lamp[..., None])
    x = jnp.concatenate([part[:, :-1].astype(jnp.float32) for part in inputs], -1)
    logits = jax.nn.relu(x @ params["hidden"]) @ params["out"]
    target = place[:, 1:, None]
    loss = -jnp.take_along_axis(jax.nn.log_softmax(logits), target, -1)[..., 0]
    return loss, logits.argmax(-1) == target[..., 0]


@partial(jax.jit, static_argnames="rate")
def update(
    params: Params, momentum: Params, batch: dict[str, Any], rate: float = 0.3
) -> tuple[Params, Params, jax.Array, jax.Array]:
    """Make one step of gradient descent; returns weights, momentum, losses and what was right."""

    def mean_loss(params: Params) -> tuple[jax.Array, Any]:
        loss, right = losses(params, batch["place"], batch["action"], batch["lamp"])
        return loss.mean(), (loss, right)

    slope, (loss, right) = jax.grad(mean_loss, has_aux=True)(params)
    momentum = jax.tree.map(lambda m, s: 0.9 * m + s, momentum, slope)
    params = jax.tree.map(lambda p, m: p - rate * m, params, momentum)
    return params, momentum, loss, right


def run(updates: int, seed: int = 0) -> tuple[float, float]:
    """Train for some updates, the lamp being used in the second half of them.

    Returns the share of right predictions in the last tenth of each half; of the second, of moves
    under the lamp.
    """
    ring, params = Ring(np.random.default_rng(seed)), begin(jax.random.key(seed))
    momentum = jax.tree.map(jnp.zeros_like, params)
    buffer = ReplayBuffer(50_000, LENGTH, ENVS, Curious(), seed=seed)  # R
    batches = buffer.prefetch(BATCH)  # R
    scores: tuple[list[float], list[float]] = ([], [])
    for number in range(updates):
        half = int(number >= updates / 2)
        ring.lamp_chance = 0.25 * half
        for _ in range(STEPS_PER_UPDATE):
            buffer.add(ring.step())  # R
        if not buffer.ready:  # R
            continue
        batch = next(batches)  # R
        inputs = {name: batch[name] for name in ("place", "action", "lamp")}
        params, momentum, loss, right = update(params, momentum, inputs)
        buffer.update(batch.ids[:, 1:], {"model": loss})  # R
        if (number % (updates / 2)) >= 0.45 * updates:
            counts = batch["lamp"][:, :-1] if half else np.ones((BATCH, LENGTH - 1), bool)
            scores[half].append(float(np.asarray(right)[counts].mean()))
    batches.close()  # R
    return float(np.mean(scores[0])), float(np.mean(scores[1]))


def main() -> None:
    """Train, and print how often the next place was predicted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    before, under = run(options.updates, options.seed)
    print("next places predicted right (chance: 0.33)")
    print(f"{'before the lamp':<20}{before:.2f}\n{'under the lamp':<20}{under:.2f}")


if __name__ == "__main__":
    main()
