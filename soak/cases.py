"""What is run: agents, environments and replay rules at the smallest scale, with much going on."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.replay_config import REPLAYS

# Each with options that let several episodes end within a run.
ENVIRONMENTS = {
    "toy/count": ("--env.length", "13"),
    "control/cartpole_balance": ("--env.episode-frames", "30", "--env.camera", "ray"),
    "toy/two-rooms": ("--env.length", "11"),
    "crafter": ("--env.length", "15"),
    "toy/mirror": ("--env.length", "12"),
    "object-interaction": ("--env.episode-frames", "40", "--env.camera", "ray"),
}
CHOOSES_ONLY = ("iris",)  # agents that need one of several actions
NUMBERED = ("control/cartpole_balance", "object-interaction")  # worlds that need numbers instead
VIDEOLESS = ("dreamerpro",)  # agents that predict no images
ALWAYS = (
    "--scale", "debug", "--train.prefill", "16", "--train.log-every", "5", "--train.save-every",
    "10", "--train.threads", "1", "--replay.capacity", "64", "--eval.every", "15",
    "--eval.max-steps", "8", "--record.snapshot-every", "20",
)  # fmt: skip
STEPS = 80


@dataclass(frozen=True)
class Case:
    """One run: by its seed it is the same each time."""

    agent: str
    environment: str
    replay: str
    num_envs: int
    processes: bool
    storage: str
    seed: int
    steps: int = STEPS

    def arguments(self, folder: Path) -> list[str]:
        """The command line, without `curious`; it begins the run in the folder, or goes on."""
        video = () if self.agent in VIDEOLESS else ("--record.video-every", "30")
        return [
            "train", "--env", self.environment, "--agent", self.agent, "--replay", self.replay,
            "--seed", str(self.seed), "--logdir", str(folder), "--resume", *ALWAYS, *video,
            *ENVIRONMENTS[self.environment], "--env.num-envs", str(self.num_envs),
            f"--env.{'' if self.processes else 'no-'}processes", "--train.steps", str(self.steps),
            "--replay.storage", self.storage,
        ]  # fmt: skip

    def longer(self, steps: int) -> "Case":
        """The same with more to do."""
        return replace(self, steps=steps)

    def __str__(self) -> str:
        where = "processes" if self.processes else "one process"
        return (
            f"{self.agent}, {self.environment} x {self.num_envs} in {where}, {self.replay}, "
            f"steps in {self.storage}, seed {self.seed}"
        )


def cases(agents: Sequence[str], rng: random.Random) -> Iterator[Case]:
    """Cases without end: each agent in turn, and with each of them all worlds and rules in time."""
    for agent in agents:
        if agent not in AGENTS:
            raise ValueError(f"--agents must be among {', '.join(AGENTS)}, got {agent!r}")
    pairs = {agent: _pairs(agent, rng) for agent in agents}
    for turn in itertools.count():
        for agent in agents:
            environment, rule = pairs[agent][turn % len(pairs[agent])]
            yield Case(
                agent=agent,
                environment=environment,
                replay=rule,
                num_envs=rng.choice((1, 2)),
                processes=rng.random() < 1 / 3,
                storage=rng.choice(("memory", "disk")),
                seed=rng.randrange(2**31),
            )


def _pairs(agent: str, rng: random.Random) -> list[tuple[str, str]]:
    """All worlds that fit an agent with all rules, in some order."""
    fitting = [w for w in ENVIRONMENTS if agent not in CHOOSES_ONLY or w not in NUMBERED]
    pairs = list(itertools.product(fitting, REPLAYS))
    rng.shuffle(pairs)
    return pairs
