"""Every agent learns from the same batches in one process, and in several that share them.

    python -m helpers.agents.sharing RANK RANKS MEETING_PLACE OUT

runs one of several; `learned` is what one alone has learned. Of each agent three updates are kept:
what they fed back, and all tensors after them.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import distributed

from curious_replay.agents.interface import NonFiniteError
from curious_replay.agents.spaces import Spaces
from curious_replay.run import Choice, preset
from curious_replay.run.loop.crew import Begin, Crew, Leader, join_in, orders, take_over
from curious_replay.run.saved_run import make_agent
from curious_replay.run.settings.config import Config
from helpers.agents.batches import make_batch, with_streams
from helpers.device.ours import OURS

WORLDS = {"discrete": "crafter", "continuous": "object-interaction"}
ACTIONS, WINDOWS, STEPS, UPDATES = 5, 4, 8, 3
AT_ONCE = {"model_after": 0, "actor_after": 0, "dropout": 0.0}  # where an agent has such settings
VARIANTS = {
    **{f"{name} {kind}": (name, kind, {}) for name in OURS for kind in WORLDS},
    "dreamerv3 some starts": ("dreamerv3", "discrete", {"starts": 0.5}),
    "dreamerv2 some starts": ("dreamerv2", "continuous", {"starts": 0.3125}),
    "dreamerv2 free nats": ("dreamerv2", "discrete", {"free_nats": 1.55}),
    "plan2explore normalised": ("plan2explore", "discrete", {"normalise": "on"}),
}
del VARIANTS["iris continuous"]


def settings(variant):
    name, kind, changes = VARIANTS[variant]
    made = preset(Choice(env=WORLDS[kind], agent=name, replay="curious", scale="debug"))
    known = {field: value for field, value in AT_ONCE.items() if hasattr(made.agent, field)}
    train = replace(made.train, batch_size=WINDOWS, batch_length=STEPS, threads=1, device="cpu")
    agent = replace(made.agent, **known, **changes)
    pixels = made.env.image_size
    spaces = Spaces(ACTIONS, discrete=kind == "discrete", image=(pixels, pixels))
    return replace(made, agent=agent, train=train), spaces


def batches(agent):
    shape = {"actions": ACTIONS, "size": agent.spaces.image[0], "discrete": agent.spaces.discrete}
    streams = {name: (each.windows, each.length) for name, each in agent.streams.items()}
    for seed in range(UPDATES):
        batch = with_streams(make_batch(WINDOWS, STEPS, seed=seed, **shape), streams, **shape)
        # Whatever is counted, the halves of the batch have different numbers of it.
        batch["is_first"][: WINDOWS // 2, ::2] = True
        for name in streams:
            batch[f"{name}/is_terminal"][0, -1] = True
        yield batch


def learned(variant, crew=None):
    """Feedback of each update, what of one more was not finite, and the agent's tensors then."""
    config, spaces = settings(variant)
    agent, crew = make_agent(config, spaces), crew or Crew()
    crew.check(agent, config)
    crew.begin(agent, config)
    found = [crew.update(agent, batch, ()) for batch in batches(agent)]
    batch = next(batches(agent))
    batch["reward"][-1, 3] = np.nan  # in a window that the leader does not have
    term = None
    try:
        crew.update(agent, batch, ())
    except NonFiniteError as error:
        term = error.term
    return found, term, {name: each.detach().clone() for name, each in agent.tensors().items()}


def follow(out):
    agents = []
    for order in orders():
        if isinstance(order, Begin):
            agents.append(make_agent(Config.from_json(order.config), order.spaces))
            take_over(agents[-1], order)
        else:
            join_in(agents[-1], order)
    torch.save([each.tensors() for each in agents], out)


def main(rank, ranks, place, out):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{place}", rank=int(rank), world_size=int(ranks))
    if rank != "0":
        follow(out)
        return
    leader = Leader()
    torch.save({variant: learned(variant, leader) for variant in VARIANTS}, out)
    leader.end()


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(Path, sys.argv[3:]))
