"""A process that torchrun started beside the one that has the run: it learns as that one says."""

import signal

from curious_replay.agents.interface import Agent
from curious_replay.run.loop.crew import Begin, connected, join_in, orders, take_over
from curious_replay.run.saved_run import make_agent
from curious_replay.run.settings.config import Config
from curious_replay.run.training import prepare_torch


def follow() -> None:
    """Learn until the leader says that it is done, or is gone."""
    agent: Agent | None = None
    with connected():
        # Whoever stops all processes stops the leader, which saves and then lets this one go.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        for order in orders():
            if isinstance(order, Begin):
                config = Config.from_json(order.config)
                prepare_torch(config)
                agent = make_agent(config, order.spaces)
                take_over(agent, order)
            else:
                assert agent is not None, "the leader begins before it learns"
                join_in(agent, order)
