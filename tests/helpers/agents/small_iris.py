"""A small IRIS, its batches, and what of it has learned."""

import dataclasses

import torch

from curious_replay.agents.configs.iris import IrisConfig
from curious_replay.agents.iris import Iris
from curious_replay.agents.spaces import Spaces
from helpers.agents.batches import make_batch, with_streams

SPACES = Spaces(4, discrete=True, image=(32, 32))
DEBUG = IrisConfig(
    size="debug", context=8, pictures=4, starts=3, burn_in=2, imagination=3,
    model_after=0, actor_after=0,
)  # fmt: skip
PARTS = ("tokenizer", "model", "actor_critic")


def make(seed=0, **changes):
    return Iris(dataclasses.replace(DEBUG, **changes), SPACES, seed)


def batch_for(agent, rows=3, steps=8, seed=0, **kwargs):
    streams = {name: (each.windows, each.length) for name, each in agent.streams.items()}
    return with_streams(make_batch(rows, steps, seed=seed, **kwargs), streams, **kwargs)


def parameters(module):
    return {name: value.detach().clone() for name, value in module.named_parameters()}


def differ(before, module):
    return any(not torch.equal(before[name], value) for name, value in module.named_parameters())


def changed_parts(agent, act):
    before = {part: parameters(getattr(agent, part)) for part in PARTS}
    act()
    return {part for part in PARTS if differ(before[part], getattr(agent, part))}


def random_tokens(*shape, below=8, seed=0):
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(seed))
