"""Steps environments with a policy and stores what happens.

Each round has two halves. `send` looks at what the environments show, lets the policy choose,
stores the step (observation, what led here, and the action chosen now), and hands the actions to
the environments. `receive` waits for what they show next. Between the two the environments work on
their own, so this is when the agent is trained; what they do does not depend on it, so the order
of events is always the same. Everything that is counted or recorded is so in `send`.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from curious_replay.agents.interface import Agent, PolicyState
from curious_replay.envs.vectors.vector import RestartingVectorEnv
from curious_replay.replay import ReplayBuffer
from curious_replay.run.loop.seeds import generator_of, seed_of, torch_generator_of
from curious_replay.run.worlds.environments import EnvFacts
from curious_replay.run.worlds.transition import EpisodeStats, Transition, collect, stores_when

Array = np.ndarray
Ended = Callable[[dict[str, Any]], None]
"""Is told of each episode that ends: return, length, environment, phase, sums of logs."""


@dataclass
class Counters:
    """How far a run is. Frames are counted over all environments."""

    frame: int = 0
    step: int = 0
    update: int = 0
    episode: int = 0


class Driver:
    """The environments of a run, the policy's memory of them, and where their steps go."""

    def __init__(
        self,
        envs: RestartingVectorEnv,
        facts: EnvFacts,
        agent: Agent,
        replay: ReplayBuffer,
        counters: Counters,
        ended: Ended,
        *,
        seed: int,
        prefill: int,
        frames_per_step: int,
    ) -> None:
        self.envs, self.facts, self.agent, self.replay = envs, facts, agent, replay
        self.counters, self.ended = counters, ended
        self.seed, self.prefill, self.frames_per_step = seed, prefill, frames_per_step
        self.policy: PolicyState = agent.start(envs.num_envs)
        self.generator = torch_generator_of(seed, "policy")
        self.random = generator_of(seed, "prefill")
        self.phases = [*facts.phases]
        """Names of the phases seen so far, and of those known before: `log_phase` counts them."""
        self.waiting = False
        self._begin(0)

    @property
    def phase(self) -> str:
        """The present phase, as the first environment shows it."""
        return self.transition.phases[0]

    def send(self, chosen: Callable[[], None] = lambda: None) -> int:
        """Choose actions, store the step, and let the environments work; returns decisions made.

        `chosen` is called in between. Where choosing fails, nothing has changed.
        """
        transition = self.transition
        actions = self._choose()
        chosen()
        deciding = (
            ~transition.is_last
        )  # after the last step of an episode there is nothing to decide
        self.replay.add(
            {
                **transition.observation,
                "action": actions * deciding[:, None].astype(np.float32),
                "reward": transition.reward,
                "is_first": transition.is_first,
                "is_last": transition.is_last,
                "is_terminal": transition.is_terminal,
                **transition.logs,
                **self._when(),
            }
        )
        self._count_episodes()
        self.envs.step_async(self.facts.actions.to_env(actions))
        self.waiting = True
        decisions = int(deciding.sum())
        self.counters.step += decisions
        return decisions

    def receive(self) -> None:
        """Wait for what the actions led to."""
        observation, rewards, terminated, truncated, infos = self.envs.step_wait()
        self.waiting = False
        self._take(collect(observation, rewards, terminated, truncated, infos, self.facts.logs))

    def get_state(self) -> dict[str, Any]:
        """Return all but the policy's memory: strings, numbers and arrays."""
        return {
            "envs": self.envs.get_state() if self.facts.can_save else None,
            "transition": asdict(self.transition),
            "stats": self.stats.get_state(),
            "phases": self.phases,
            "random": self.random.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_state()`; environments without a state begin a new episode there."""
        self.random.bit_generator.state = state["random"]
        self.phases = list(state.get("phases", self.phases))  # older checkpoints do not tell
        if state["envs"] is None:
            self._begin(self.counters.step, self.counters.frame)
            self.stats.interval = state["stats"]["interval"]
            return
        self.envs.set_state(state["envs"])
        self.transition = Transition(**state["transition"])
        self.stats.set_state(state["stats"])

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the policy's memory and random state."""
        policy = {f"policy.{name}": value for name, value in self.policy.items()}
        return {**policy, "generator": self.generator.get_state()}

    def load_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Go on from `tensors()`."""
        for name, value in self.policy.items():
            # A copy lies in memory as new tensors do. Products of matrices round differently where
            # it begins elsewhere, as it does within a file.
            self.policy[name] = tensors[f"policy.{name}"].to(value, copy=True)
        self.generator.set_state(tensors["generator"])

    def _begin(self, number: int, frame: int = 0) -> None:
        """Open an episode everywhere, in the phase of `frame` where there are phases."""
        num_envs = self.envs.num_envs
        observation, infos = self.envs.reset(seed=seed_of(self.seed, "env", number))
        if frame and "frame" in infos:  # a reset with a seed goes back to frame 0
            self.envs.call("set_frame", frame)
            observation, infos = self.envs.reset()
        nothing = np.zeros(num_envs, bool)
        self.stats = EpisodeStats(num_envs, self.facts.logs)
        reward = np.zeros(num_envs)
        self._take(collect(observation, reward, nothing, nothing, infos, self.facts.logs))

    def _choose(self) -> Array:
        """Choose actions float32 [N, A]: random ones at first, then the policy's."""
        transition = self.transition
        if self.counters.step < self.prefill:
            return self.facts.actions.random(self.random, self.envs.num_envs)
        seen = {**transition.observation, "is_first": transition.is_first}
        before = self.generator.get_state()
        try:
            actions, self.policy = self.agent.act(self.policy, seen, self.generator, explore=True)
        except torch.OutOfMemoryError:
            self.generator.set_state(before)
            raise
        return actions

    def _take(self, transition: Transition) -> None:
        self.transition = transition
        # Each environment counts its own frames times their number: the mean is the true total.
        frames, steps = transition.frames, self.counters.step * self.frames_per_step
        self.counters.frame = steps if frames is None else int(frames.sum()) // len(frames)

    def _when(self) -> dict[str, Array]:
        """Return frame and phase of the step, [N] each; {} if replay began without them."""
        if not stores_when(self.replay):
            return {}
        frames, phases = self.transition.frames, self.transition.phases
        self.phases += [name for name in dict.fromkeys(phases) if name not in self.phases]
        return {
            "log_frame": np.full(len(phases), self.counters.frame) if frames is None else frames,
            "log_phase": np.array([self.phases.index(name) for name in phases], np.int32),
        }

    def _count_episodes(self) -> None:
        self.stats.add(self.transition)
        for env in np.flatnonzero(self.transition.is_last).tolist():
            self.counters.episode += 1
            self.ended(self.stats.close(env, self.transition))
