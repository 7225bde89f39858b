"""An agent that learns next to nothing, quickly, and whose every number depends on its past.

It stands for any agent in tests of the training loop: it has parameters, an optimiser, a memory
and random numbers, reports all signals, and any change of batches, order or state shows in its
metrics at once. Importing this module makes it known as "fake".
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import nn

from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.interface import Agent, Feedback, NonFiniteError
from curious_replay.bounds import Within
from curious_replay.run.settings.agents import register_agent


@dataclass(frozen=True)
class FakeConfig:
    """Settings."""

    lr: Annotated[float, Within(1e-30, 1.0)] = 1e-2
    """Learning rate."""
    fail_at: int = -1
    """Update at which a loss is infinite."""
    fail_again_at: int = -1
    """Another one."""
    fail_for: int = 1
    """Updates in a row that fail."""


class FakeAgent(Agent):
    def __init__(self, config, spaces, seed, device="cpu"):
        super().__init__(spaces, seed, device)
        self.config = config
        inputs = (3 if spaces.image else 0) + spaces.vector
        start = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(inputs, spaces.actions, generator=start))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.optimisers["all"] = Optimiser(self, config.lr, 1e-8, 10.0)

    def start(self, num_envs):
        return {"memory": torch.zeros(num_envs, self.spaces.actions)}

    def _features(self, batch):
        parts = []
        if self.spaces.image:
            parts.append(torch.as_tensor(batch["image"].mean((-3, -2)) / 255, dtype=torch.float32))
        if self.spaces.vector:
            parts.append(torch.as_tensor(batch["vector"]))
        return torch.cat(parts, -1)

    @torch.no_grad()
    def act(self, state, observation, generator, explore):
        keep = torch.as_tensor(~observation["is_first"], dtype=torch.float32)[:, None]
        memory = 0.9 * state["memory"] * keep + self._features(observation) @ self.weight
        scores = memory
        if explore:
            scores = memory + torch.randn(memory.shape, generator=generator)
        if self.spaces.discrete:
            actions = nn.functional.one_hot(scores.argmax(-1), self.spaces.actions).float()
        else:
            actions = torch.tanh(scores)
        return actions.numpy(), {"memory": memory}

    def update(self, batch, unread=()):
        self.calls += 1
        for fail in (self.config.fail_at, self.config.fail_again_at):
            if fail >= 0 and fail < int(self.calls) <= fail + self.config.fail_for:
                raise NonFiniteError("the reward loss")
        features = self._features(batch)
        noise = torch.randn(features.shape[:2], generator=self.generator)
        predicted = (features @ self.weight).mean(-1)
        target = torch.as_tensor(batch["reward"]) * 0.01
        loss = (predicted - target + 0.1 * noise) ** 2
        norm = self.optimisers["all"].step(loss.mean())
        loss = loss.detach()
        model = loss.numpy().astype(np.float32)
        td = (model - 0.5).astype(np.float32)
        td[:, 0] = np.nan
        signals = {"model": model, "likelihood": 2 * model, "kl": model / 2, "td": td}
        metrics = {
            "loss": float(loss.mean()),
            "grad_norm": float(norm),
            "ids": float(batch.ids.mean()),
            "weight": float(self.weight.detach().sum()),
        }
        return Feedback(signals, metrics)

    def open_loop(self, batch, context):
        return np.roll(batch["image"], 1, axis=1)


def _preset(family, choice):
    return {
        "env": {"processes": False, "image_size": 32},
        "train": {
            "steps": 200,
            "ratio": 4.0,
            "batch_size": 2,
            "batch_length": 4,
            "prefill": 20,
            "log_every": 20,
            "save_every": 50,
            "save_minutes": 0.0,
        },
        "replay": {"capacity": 150},
        "eval": {"every": 0, "max_steps": 10},
        "record": {"video_every": 0, "video_context": 2, "tensorboard": False},
    }


register_agent("fake", FakeConfig, FakeAgent, _preset)
