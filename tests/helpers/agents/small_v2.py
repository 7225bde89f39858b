"""A small DreamerV2 of each kind."""

import dataclasses

from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
from curious_replay.agents.dreamer_v2 import DreamerV2
from curious_replay.agents.spaces import Spaces

DISCRETE = DreamerV2Config(size="debug-D", imagination=4)
CONTINUOUS = DreamerV2Config(
    size="debug-G", imagination=4, discount=0.99, discount_head=False, reward_transform="none"
)
SPACES = {
    "discrete": Spaces(4, discrete=True, image=(32, 32)),
    "continuous": Spaces(2, discrete=False, image=(32, 32)),
}


def make(kind="discrete", seed=0, **changes):
    config = DISCRETE if kind == "discrete" else CONTINUOUS
    return DreamerV2(dataclasses.replace(config, **changes), SPACES[kind], seed)
