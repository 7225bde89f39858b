"""How long a run will take here, from a few updates of an agent that is then thrown away.

Of an expensive update only one window and two are tried: what a further window costs is the
difference. Time for the environments is not counted.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch

from curious_replay.agents.interface import Agent
from curious_replay.agents.spaces import Spaces
from curious_replay.replay import Batch
from curious_replay.run.saved_run import make_agent
from curious_replay.run.settings.config import Config
from curious_replay.run.settings.env_config import SimulatedConfig
from curious_replay.run.worlds.environments import inspect_env

Clock = Callable[[], float]
CHEAP = 0.25
"""Seconds of an update of one window, up to which whole batches are tried."""
WAITING = ("model_after", "actor_after")
"""Settings of agents whose parts begin to learn one after the other."""
HOUR, DAY = 3600.0, 86400.0


def seconds_per_update(config: Config, spaces: Spaces, clock: Clock) -> float:
    """Return what an update takes by a clock, with the device, precision and threads of the run.

    It is NaN of an agent that cannot learn from steps of noise, which is no reason to stop.
    """
    try:
        return _measure(config, spaces, clock)
    except Exception:  # an agent of the user's may ask for anything
        return math.nan
    finally:
        gc.collect()  # the parameters of a large agent: they and its optimisers know one another


def _measure(config: Config, spaces: Spaces, clock: Clock) -> float:
    waiting = {f.name: 0 for f in fields(config.agent) if f.name in WAITING}
    with _threads(config.train.threads):
        agent = make_agent(replace(config, agent=replace(config.agent, **waiting)), spaces)
        windows, length = config.train.batch_size, config.train.batch_length
        _time(agent, 1, length, clock)  # the first one compiles and imports
        one = _time(agent, 1, length, clock)
        if one <= CHEAP or windows == 1:
            return min(_time(agent, windows, length, clock) for _ in range(2))
        another = max(_time(agent, 2, length, clock) - one, 0.0)
        return one + (windows - 1) * another


def likely_spaces(config: Config) -> Spaces:
    """Return what the agent will see and do; of a simulator, which starts slowly, without it."""
    if isinstance(config.env, SimulatedConfig):
        pixels = config.env.image_size
        return Spaces(actions=6, discrete=False, image=(pixels, pixels))
    return inspect_env(config.choice.env, config.env).spaces


def warning(config: Config, spaces: Spaces) -> str:
    """Return what to say before a run of published size on a CPU."""
    updates = config.updates()
    # What else the machine does meanwhile does not count.
    threads = config.train.threads or torch.get_num_threads()
    seconds = seconds_per_update(config, spaces, time.process_time) / threads * updates
    return (
        f"warning: --scale paper is meant for a graphics card; on this CPU the {updates:,} updates "
        f"of this run take about {in_words(seconds)}. --scale mini is made for it"
    )


def in_words(seconds: float) -> str:
    """Return a time to be waited for: 40 minutes, 7 hours, 1,200 days."""
    if math.isnan(seconds):
        return "very long"
    for unit, name in ((DAY, "days"), (HOUR, "hours")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {name}"
    return f"{max(seconds / 60, 1):.0f} minutes"


def _time(agent: Agent, windows: int, length: int, clock: Clock) -> float:
    ids = np.arange(windows * length).reshape(windows, length)
    batch = Batch(_noise(agent.spaces, windows, length), ids, np.ones(windows))
    for name, stream in agent.streams.items():
        of_stream = _noise(agent.spaces, stream.windows, stream.length)
        batch |= {f"{name}/{key}": value for key, value in of_stream.items()}
    begun = clock()
    agent.update(batch)  # what it reports is on the CPU: a graphics card has ended its work, too
    return clock() - begun


def _noise(spaces: Spaces, windows: int, length: int) -> Mapping[str, np.ndarray]:
    """Return steps [windows, length] of noise, as replay gives them."""
    random, shape = np.random.default_rng(0), (windows, length)
    batch: dict[str, Any] = {
        "action": random.uniform(-1, 1, (*shape, spaces.actions)).astype(np.float32),
        "reward": np.zeros(shape, np.float32),
        **{name: np.zeros(shape, bool) for name in ("is_first", "is_last", "is_terminal")},
    }
    if spaces.discrete:
        batch["action"] = np.eye(spaces.actions, dtype=np.float32)[batch["action"].argmax(-1)]
    if spaces.image is not None:
        batch["image"] = random.integers(0, 256, (*shape, *spaces.image, 3), np.uint8)
    if spaces.vector:
        batch["vector"] = random.standard_normal((*shape, spaces.vector), np.float32)
    return batch


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
