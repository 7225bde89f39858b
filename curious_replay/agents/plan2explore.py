"""Plan2Explore: a Dreamer that goes where its models of the next state disagree.

It adds to a Dreamer, V2 or V3, an ensemble of models that predict the next step from a state and an
action, and a second actor and critic that learn, inside the same world model, to
reach states where the ensemble disagrees. That actor collects; the Dreamer's own keeps learning
from predicted rewards and is the one that is evaluated. Where there are no rewards the latter may
be left out: then the explorer is evaluated too.
"""

from collections.abc import Collection

import numpy as np
import torch
from torch import Tensor

from curious_replay.agents.blocks.ensemble import Ensemble, disagreement
from curious_replay.agents.blocks.heads import normal_loss, squared_error
from curious_replay.agents.blocks.maths import to_float32
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.returns import RunningDeviation
from curious_replay.agents.blocks.rssm import State, bounded
from curious_replay.agents.blocks.shortcuts.lookup import as_tensor
from curious_replay.agents.configs.plan2explore import Plan2ExploreConfig, Plan2ExploreV3Config
from curious_replay.agents.dreamer import (
    ActorCriticOutputs,
    Dreamer,
    Imagined,
    WorldModelOutputs,
)
from curious_replay.agents.dreamer_v2 import DreamerV2
from curious_replay.agents.dreamer_v3 import DreamerV3
from curious_replay.agents.feedback import FiniteCheck, UpdateReport
from curious_replay.agents.interface import Arrays, PolicyState
from curious_replay.agents.precision import Precision
from curious_replay.agents.spaces import Spaces
from curious_replay.agents.together import together
from curious_replay.agents.updates import DeviceAgent, Fields
from curious_replay.agents.world_model import Belief, Replayed

SECOND = 1 << 40  # added to the seed for what this agent adds, so that it begins differently


class Plan2Explore(DeviceAgent):
    """A Dreamer with an ensemble and an actor and critic that explore."""

    dreamer: Dreamer

    def __init__(
        self,
        config: Plan2ExploreConfig | Plan2ExploreV3Config,
        spaces: Spaces,
        seed: int,
        device: str = "cpu",
    ) -> None:
        super().__init__(spaces, seed, device)
        self.config = config
        if isinstance(config, Plan2ExploreV3Config):
            self.dreamer = DreamerV3(config.dreamer, spaces, seed, device)
        else:
            self.dreamer = DreamerV2(config.dreamer, spaces, seed, device)
        self.generator = self.dreamer.generator  # one for both
        model, settings = self.dreamer.model, config.ensemble
        layers, units, style = model.head_shape
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed + SECOND)
            self.ensemble = Ensemble(
                settings.members,
                model.features + spaces.actions,
                layers if settings.layers is None else settings.layers,
                units if settings.units is None else settings.units,
                model.embedding if settings.target == "embedding" else model.latent.size,
                style,
            )
            self.explorer = self.dreamer.make_behaviour()
        self.deviation = RunningDeviation() if config.normalise == "on" else None
        self.to(self.device)
        self.optimisers = {
            **self.dreamer.optimisers,
            "ensemble_adam": Optimiser(
                self.ensemble,
                settings.lr,
                settings.eps,
                settings.clip,
                decay=settings.decay,
                raw_epsilon=settings.adam == "tensorflow",
            ),
            **self.explorer.make_optimisers("explore_"),
        }

    def compute_in(self, precision: Precision) -> None:
        """See `Agent.compute_in`."""
        self.dreamer.compute_in(precision)
        super().compute_in(precision)

    def use_graphs(self, unread: Collection[str]) -> None:
        """See `Agent.use_graphs`."""
        self.dreamer.refuse_foresight(unread)
        super().use_graphs(unread)

    @property
    def has_task(self) -> bool:
        """Whether the Dreamer's own actor and critic learn; else they keep their first weights."""
        return self.config.task_actor == "on"

    @property
    def remarks(self) -> dict[str, str]:
        """Whose evaluation a run shows, where it is not the task actor's."""
        return {} if self.has_task else {"evaluated": "the exploring policy: no task actor learns"}

    def check_sharing(self, processes: int, windows: int, length: int) -> None:
        """See `Agent.check_sharing`."""
        self.dreamer.check_sharing(processes, windows, length)

    @property
    def fields(self) -> Collection[str]:
        """See `DeviceAgent.fields`."""
        return self.dreamer.fields

    def learn(self, batch: Fields, unread: Collection[str], known: Arrays | None) -> UpdateReport:
        """Train world model, actor and critic of the Dreamer, then ensemble and explorer.

        The signal "td" is that of the explorer's critic, which always learns.
        """
        finite = self.dreamer.finite = FiniteCheck(self.device)
        replayed = self.dreamer.load(batch, known)
        learned = self.dreamer.train_world_model(replayed)
        metrics = dict(learned.metrics)
        if self.has_task:
            # Of the task's critic nobody reads the signal.
            outputs, _ = self.dreamer.train_actor_critic(replayed, learned.start, unread={"td"})
            metrics |= outputs.metrics
        metrics |= self.train_ensemble(replayed, learned)
        with finite.named("explore_"):
            exploration, td = self._explore(replayed, learned.start, unread)
        metrics |= {f"explore_{name}": value for name, value in exploration.metrics.items()}
        return finite.report({**learned.signals, **td}, metrics)

    def train_ensemble(self, replayed: Replayed, learned: WorldModelOutputs) -> dict[str, Tensor]:
        """Let the ensemble learn to predict each step of a batch from the state before it.

        It learns from what the world model believes, which does not learn from it.
        """
        states, led_here = learned.belief.states, replayed.previous_action
        actions = led_here[1:] if self.config.alignment == "correct" else led_here[:-1]
        inputs = torch.cat([states.feature[:-1].detach(), actions], -1)
        target = self._to_come(learned.belief)[1:].detach().flatten(0, 1)
        with self.autocast():
            predictions = self.ensemble(inputs.flatten(0, 1))
        loss = normal_loss if self.config.ensemble.loss == "normal" else squared_error
        losses = loss(predictions, target, axes=1).sum(0)  # of all members
        # No step leads from the end of an episode to the beginning of the next.
        leads = ~replayed.is_first[1:].flatten()
        mean = (losses * leads).sum() / together().counted(leads.sum())
        finite = self.dreamer.finite
        finite.check("ensemble", {"loss": mean})
        norm = finite.step("ensemble", self.optimisers["ensemble_adam"], mean)
        metrics = {"ensemble/loss": mean.detach(), "ensemble/gradient": norm}
        if self.deviation is not None:
            self.deviation.update(disagreement(predictions.detach()), leads, finite.fine)
            metrics["ensemble/deviation"] = self.deviation.value
        return metrics

    def _to_come(self, belief: Belief) -> Tensor:
        """Return what the ensemble learns to predict of each step of a batch, [T, B, ...]."""
        if self.config.ensemble.target == "embedding":
            return to_float32(belief.embedding)
        if self.config.ensemble.target == "mean":
            return self.dreamer.model.latent.mean(belief.posterior)
        return belief.states.stoch

    def novelty(self, imagined: Imagined) -> Tensor:
        """Return the disagreement [H + 1, N] at imagined states, which the explorer strives for."""
        actions = imagined.actions
        if self.config.alignment == "released":
            actions = torch.cat([torch.zeros_like(actions[:1]), actions[:-1]])
        inputs = torch.cat([as_tensor(imagined.features), bounded(actions)], -1)
        predictions = self.ensemble(inputs.flatten(0, 1))
        apart = disagreement(predictions).view(inputs.shape[:2])
        if self.deviation is not None:
            apart = apart / self.deviation.value
        return self.config.intrinsic_scale * apart

    def _explore(
        self, replayed: Replayed, start: State, unread: Collection[str] = ()
    ) -> tuple[ActorCriticOutputs, dict[str, Tensor]]:
        """Train the exploring actor and critic."""
        return self.dreamer.train_actor_critic(replayed, start, self.explorer, self.novelty, unread)

    def start(self, num_envs: int) -> PolicyState:
        """See `Agent.start`."""
        return self.dreamer.start(num_envs)

    def act(
        self, state: PolicyState, observation: Arrays, generator: torch.Generator, explore: bool
    ) -> tuple[np.ndarray, PolicyState]:
        """See `Agent.act`: the explorer acts, and the Dreamer's own actor where it is evaluated.

        If no task is learned, the explorer is evaluated, with actions drawn as when it collects.
        """
        if self.has_task and not explore:
            return self.dreamer.act(state, observation, generator, explore)
        return self.dreamer.act_as(self.explorer.actor, state, observation, generator, sample=True)

    def open_loop(self, batch: Arrays, context: int) -> np.ndarray:
        """See `Agent.open_loop`."""
        return self.dreamer.open_loop(batch, context)
