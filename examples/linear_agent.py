"""An agent of your own, for `curious train`: a linear world model, and one step of foresight.

The model predicts what is seen next, and the reward, from what is seen now and what is done. The
policy does what promises the most reward at once. All that an agent owes is here: memory of a
policy, actions, updates that say how badly each step was predicted, and its settings.

    curious train --import examples/linear_agent.py --env CartPole-v1 --agent linear
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import curious_replay as cr
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.interface import (
    Agent,
    Arrays,
    Feedback,
    NonFiniteError,
    PolicyState,
)
from curious_replay.agents.spaces import Spaces
from curious_replay.bounds import Positive, Share


@dataclass(frozen=True)
class LinearConfig:
    """Settings: each is an option of the command line, as --agent.lr."""

    lr: Positive = 1e-2
    """Learning rate."""
    exploration: Share = 0.1
    """Share of random actions while collecting."""


class Linear(Agent):
    """Sees numbers, has discrete actions."""

    def __init__(self, config: LinearConfig, spaces: Spaces, seed: int, device: str) -> None:
        super().__init__(spaces, seed, device)
        if not spaces.discrete or not spaces.vector:
            raise cr.UsageError("the agent linear needs discrete actions and numbers to see")
        self.config = config
        with torch.random.fork_rng(devices=[]):  # whatever else is drawn, the seed decides
            torch.manual_seed(seed)
            self.model = nn.Linear(spaces.vector + spaces.actions, spaces.vector + 1)
        self.to(self.device)
        self.optimisers["adam"] = Optimiser(self.model, config.lr, eps=1e-8, clip=100.0)

    def start(self, num_envs: int) -> PolicyState:
        """The policy remembers nothing."""
        return {}

    @torch.no_grad()
    def act(
        self, state: PolicyState, observation: Arrays, generator: torch.Generator, explore: bool
    ) -> tuple[np.ndarray, PolicyState]:
        """The best action by the model [N, A]; now and then any other, while exploring."""
        seen, actions = self._load(observation["vector"]), torch.eye(self.spaces.actions)
        rewards = [self._predict(seen, a.expand(len(seen), -1))[:, -1].cpu() for a in actions]
        best = torch.stack(rewards).argmax(0)
        if explore:
            chance, other = torch.rand(2, len(seen), generator=generator)
            anything = (other * self.spaces.actions).long()
            best = torch.where(chance < self.config.exploration, anything, best)
        return actions[best].numpy(), state

    def update(self, batch: Arrays, unread: Collection[str] = ()) -> Feedback:
        """Learn to predict each step [B, T] from the one before it."""
        seen, action, reward = (self._load(batch[name]) for name in ("vector", "action", "reward"))
        predicted = self._predict(seen[:, :-1], action[:, :-1])
        target = torch.cat([seen, reward[..., None]], -1)[:, 1:]
        # The first step of an episode, and of a window, follows from nothing.
        known = ~torch.from_numpy(batch["is_first"][:, 1:]).to(self.device)
        loss = (predicted - target).square().sum(-1) * known
        norm = self.optimisers["adam"].step(loss.mean())
        if not torch.isfinite(norm):
            raise NonFiniteError("the loss of the model")
        model = nn.functional.pad(loss.detach(), (1, 0)).cpu().numpy()
        return Feedback({"model": model}, {"model/loss": float(model.mean())})

    def open_loop(self, batch: Arrays, context: int) -> np.ndarray:
        """It sees no images, so it predicts none: `predicts_images=False` below."""
        raise NotImplementedError("the agent linear predicts no images")

    def _predict(self, seen: Tensor, action: Tensor) -> Tensor:
        """What is seen next, and the reward on arriving there: [..., V + 1]."""
        predicted: Tensor = self.model(torch.cat([seen, action.to(self.device)], -1))
        return predicted


def preset(family: str, choice: cr.Choice) -> dict[str, dict[str, Any]]:
    """What differs from the defaults, by family of environments, and by scale of `choice`."""
    return {
        "train": {"steps": 2000, "batch_length": 16, "prefill": 100, "ratio": 16.0},
        "replay": {"capacity": 10_000},
        "env": {"processes": False},
    }


cr.register_agent("linear", LinearConfig, Linear, preset, predicts_images=False)
