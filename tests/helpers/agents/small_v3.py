"""A small DreamerV3 for each kind of world, and batches of its steps."""

import dataclasses

from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.dreamer_v3 import DreamerV3
from curious_replay.agents.spaces import Spaces
from helpers.agents.batches import make_batch

DEBUG = DreamerV3Config(size="debug", imagination=4)
KINDS = {
    "discrete": (Spaces(4, discrete=True, image=(32, 32)), {}),
    "continuous": (Spaces(2, discrete=False, image=(32, 32)), {"actions": 2, "discrete": False}),
    "vector": (Spaces(4, discrete=True, image=None, vector=5), {"size": 0, "vector": 5}),
    "both": (Spaces(4, discrete=True, image=(32, 32), vector=5), {"vector": 5}),
}


def make(kind="discrete", seed=0, **changes):
    spaces, _ = KINDS[kind]
    return DreamerV3(dataclasses.replace(DEBUG, **changes), spaces, seed)


def batch_of(kind="discrete", **kwargs):
    return make_batch(**KINDS[kind][1], **kwargs)
