"""All agents in bench/update.py: seconds of an update of each, prepared as `curious train` does."""

import argparse
import gc
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import torch
from update_peers import ACTIONS, random_batch, timed

from curious_replay.agents.spaces import Spaces
from curious_replay.run import Choice, Config, preset
from curious_replay.run.saved_run import make_agent
from curious_replay.run.training import prepare_torch

BEGUN = {"iris": {"model_after": 0, "actor_after": 0}}  # no part waits for the others
WORLDS = {"crafter": True, "object-interaction": False}  # whether actions are discrete
DIMENSIONS = 6  # of continuous actions
WARM_UPS = 5
"""The first updates compile, choose algorithms, and ask the system for memory again and again."""


def agent_rows(options: argparse.Namespace) -> dict[str, Any]:
    """Measure each agent in both kinds of world; a row without seconds had too little memory."""
    wanted = [
        (name, world)
        for name, (world, discrete) in itertools.product(options.agents, WORLDS.items())
        if name != "iris" or discrete  # its actions are words
    ]
    # Other load of a CPU comes and goes, and is to slow down all agents alike, so they take turns.
    # The memory of a card may be too small for more than one at a time.
    groups = [wanted] if options.device == "cpu" else [[each] for each in wanted]
    rows: dict[str, Any] = {}
    for group in groups:
        rows |= take_turns(group, options)
        gc.collect()  # parts of an agent may know one another
        torch.cuda.empty_cache()
    return rows


def take_turns(
    group: Sequence[tuple[str, str]], options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Let agents, given by name and world, make an update in each round; returns their rows."""
    rows: dict[str, dict[str, Any]] = {}
    left: dict[str, Iterator[float]] = {}
    for name, world in group:
        row = f"{name}, {world}"
        rows[row] = {"turns": []}
        left[row] = updates(settings_of(name, world, options), WORLDS[world], rows[row])
    for _ in range(options.rounds):
        for name, seconds in [*left.items()]:
            try:
                rows[name]["turns"].append(next(seconds))
            except torch.OutOfMemoryError as error:
                rows[name]["out_of_memory"] = str(error)
                del left[name]
    for name in left:
        rows[name]["seconds"] = median(rows[name]["turns"])
    return rows


def settings_of(name: str, world: str, options: argparse.Namespace) -> Config:
    """Return the settings of a run of this agent, of which all parts have begun to learn."""
    made = preset(Choice(env=world, agent=name, scale=options.scale))
    wanted = {key: getattr(options, key) for key in ("device", "precision", "threads", "graphs")}
    agent = replace(made.agent, **BEGUN.get(name, {}))
    return replace(made, agent=agent, train=replace(made.train, **wanted))


def updates(config: Config, discrete: bool, row: dict[str, Any]) -> Iterator[float]:
    """Make an agent, tell its row what it is, and yield the seconds of one update after another."""
    pixels, actions = config.env.image_size, ACTIONS if discrete else DIMENSIONS
    shape = config.train.batch_size, config.train.batch_length
    row |= {"batch": shape, "pixels": pixels}
    prepare_torch(config)
    agent = make_agent(config, Spaces(actions, discrete=discrete, image=(pixels, pixels)))
    total = sum(p.numel() for p in agent.parameters() if p.requires_grad)
    row |= {"parameters": total, "precision": agent.precision}
    if config.train.graphs:
        agent.use_graphs(())
    batch = random_batch(*shape, actions, pixels)
    for stream, wanted in agent.streams.items():
        more = random_batch(wanted.windows, wanted.length, actions, pixels)
        batch |= {f"{stream}/{field}": array for field, array in more.items()}
    for _ in range(WARM_UPS if config.train.graphs else 1):  # the first allocates, one is recorded
        agent.update(batch)
    update = timed(partial(agent.update, batch))
    while True:
        yield update()["seconds"]


def agent_table(rows: Mapping[str, Any], scale: str) -> str:
    """All agents, in words."""
    lines = [f"One update of each agent at {scale} scale", f"{'seconds':>50}{'batch':>10}"]
    for name, row in rows.items():
        seconds = f"{row['seconds']:.3f}" if "seconds" in row else "out of memory"
        batch, facts = "{}x{}".format(*row["batch"]), f"{row['pixels']} pixels"
        if "parameters" in row:  # there was memory for the agent itself
            facts = f"{row['parameters']:,} parameters, {facts}, {row['precision']}"
        lines.append(f"{name:<36}{seconds:>14}{batch:>10}  {facts}")
    return "\n".join([*lines, ""])
