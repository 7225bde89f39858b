"""Short runs with the fake agent, for tests."""

import io
from dataclasses import replace

from rich.console import Console

from curious_replay.run import Choice, preset, train
from curious_replay.run.loop.learner import Learner
from helpers import fake_agent  # noqa: F401  # makes the agent known


def config(name="toy/count", rule="curious", seed=0, **groups):
    """The fake agent's preset, with changes: config(train={"steps": 10})."""
    made = preset(Choice(env=name, agent="fake", replay=rule, scale="debug"), seed)
    changed = {name: replace(getattr(made, name), **values) for name, values in groups.items()}
    return replace(made, **changed)


def run(settings, folder, **kwargs):
    """Train without a word; returns the outcome."""
    return train(settings, folder, console=Console(file=io.StringIO()), **kwargs)


class Killed(BaseException):
    """Stands for a kill: nothing of ours catches it."""


def kill_at_update(monkeypatch, number):
    """Let the process 'die' in the middle of the loop, before this update of it."""
    real = Learner.update
    calls = iter(range(1_000_000))

    def update(self):
        if next(calls) == number:
            raise Killed
        real(self)

    monkeypatch.setattr(Learner, "update", update)


def lines(folder):
    """What a run recorded and must record again, bit for bit."""
    names = ("metrics.jsonl", "episodes.jsonl")
    snapshots = sorted((folder / "snapshots").glob("*"))
    return {
        **{name: (folder / name).read_bytes() for name in names},
        **{path.name: path.read_bytes() for path in snapshots},
    }
