"""Episodes that show what an agent can do, without touching its training.

Evaluation has an environment and random numbers of its own, and begins both anew from its seed, so
nothing of it needs to be remembered from one evaluation to the next.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from curious_replay.agents.interface import Agent
from curious_replay.envs.vectors.pool import WorkerError
from curious_replay.envs.vectors.vector import RestartingVectorEnv
from curious_replay.run.loop.seeds import seed_of, torch_generator_of
from curious_replay.run.record.video import episode_video
from curious_replay.run.settings.config import Config
from curious_replay.run.worlds.environments import EnvFacts, make_envs
from curious_replay.run.worlds.transition import EpisodeStats, Transition, collect

Array = np.ndarray


@dataclass
class Episode:
    """What an episode came to, and its pictures if they were wanted."""

    values: dict[str, Any] = field(default_factory=dict)
    """return, length (steps), phase, and sums of what the environment logs."""
    pictures: list[Array] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)

    def video(self, frames_per_step: int) -> Iterator[Array]:
        """Return pictures with captions, uint8 [H, W, 3], one at a time."""
        frames = [index * frames_per_step for index in range(len(self.pictures))]
        return episode_video(np.stack(self.pictures), frames, self.phases, self.returns)


class Evaluation:
    """Evaluates one agent; its environment is made when it is first needed, and kept."""

    def __init__(self, agent: Agent, config: Config, facts: EnvFacts, render: bool = False) -> None:
        self.agent, self.config, self.facts = agent, config, facts
        self.render = render  # for videos of what the agent sees no picture of
        self._envs: RestartingVectorEnv | None = None

    def run(
        self,
        episodes: int,
        *,
        seed: int,
        phase: str | None = None,
        video: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> list[Episode] | None:
        """Play episodes in a phase, and record the first if asked to; None if `stop` said so."""
        envs = self._ready(phase)
        played = []
        for number in range(episodes):
            episode = self._play(envs, seed_of(seed, "episode", number), video, stop)
            if episode is None:
                return None
            played.append(episode)
            video = False
        return played

    @property
    def restarts(self) -> int:
        """How often its environment was restarted."""
        return 0 if self._envs is None else int(self._envs.restarts.sum())

    def close(self) -> None:
        """End the environment."""
        if self._envs is not None:
            self._envs.close()

    def _ready(self, phase: str | None) -> RestartingVectorEnv:
        """Return the environment, held in a phase if it has any.

        It is made anew if it is not alive any more.
        """
        if self._envs is not None and self.facts.has_phases:
            try:
                self._envs.set_phase(phase)
            except WorkerError:  # its process had nothing to do for hours, and may have been ended
                self._envs.close()
                self._envs = None
        if self._envs is None:
            self._envs = make_envs(self.config.choice.env, self.config.env, 1, self.render)
            if self.facts.has_phases:
                self._envs.set_phase(phase)
        return self._envs

    def _play(
        self, envs: RestartingVectorEnv, seed: int, video: bool, stop: Callable[[], bool]
    ) -> Episode | None:
        """Play one episode, cut after `--eval.max-steps`; return it, or None if stopped."""
        generator = torch_generator_of(seed, "policy")
        policy = self.agent.start(1)
        stats, episode = EpisodeStats(1, self.facts.logs), Episode()
        nothing = np.zeros(1, bool)
        observation, infos = envs.reset(seed=seed)
        transition = collect(observation, np.zeros(1), nothing, nothing, infos, self.facts.logs)
        for _ in range(self.config.eval.max_steps):
            self._note(episode, stats, transition, video, envs)
            seen = {**transition.observation, "is_first": transition.is_first}
            actions, policy = self.agent.act(policy, seen, generator, explore=False)
            outcome = envs.step(self.facts.actions.to_env(actions))
            transition = collect(*outcome, self.facts.logs)
            if stop():
                return None
            if transition.is_last[0]:
                break
        self._note(episode, stats, transition, video, envs)
        episode.values = stats.close(0, transition)
        return episode

    def _note(
        self,
        episode: Episode,
        stats: EpisodeStats,
        transition: Transition,
        video: bool,
        envs: RestartingVectorEnv,
    ) -> None:
        stats.add(transition)
        if video and (self.render or "image" in transition.observation):
            seen = envs.render() if self.render else transition.observation["image"]
            episode.pictures.append(seen[0])
            episode.returns.append(float(stats.returns[0]))
            episode.phases.append(transition.phases[0])
