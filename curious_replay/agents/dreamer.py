"""What all Dreamers share: batches as tensors, acting, looking ahead, and the course of an update.

First the world model trains on a batch of replayed steps. Then actor and critic train inside it,
from all or some of the states it believes to have been in. Tensors are time first: T replayed
steps, H imagined ones.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from curious_replay.agents.blocks.actor import Actor
from curious_replay.agents.blocks.latents import Categorical
from curious_replay.agents.blocks.maths import symlog
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.rssm import State
from curious_replay.agents.blocks.shortcuts.lookup import Features, OneHotFeatures, pays, stack
from curious_replay.agents.feedback import FiniteCheck, UpdateReport, to_numpy
from curious_replay.agents.interface import Arrays, PolicyState
from curious_replay.agents.spaces import Spaces
from curious_replay.agents.together import together
from curious_replay.agents.updates import DeviceAgent, Fields
from curious_replay.agents.world_model import Belief, Replayed, WorldModel
from curious_replay.errors import UsageError


class Imagined(NamedTuple):
    """Trajectories of H steps from N states, time first."""

    features: Features  # [H + 1, N, F]
    actions: Tensor  # [H + 1, N, A], chosen at each of the states
    outputs: Tensor  # [H, N, ...], of the actor's network, of all actions but the last


class WorldModelOutputs(NamedTuple):
    """What the world model learned from a batch."""

    belief: Belief
    signals: dict[str, Tensor]  # [T, B] each: "model", "likelihood", "kl"
    metrics: dict[str, Tensor]

    @property
    def start(self) -> State:
        """All states of the batch, [T * B, ...], for imagination to begin from."""
        return State(*(part.detach().flatten(0, 1) for part in self.belief.states))


class ActorCriticOutputs(NamedTuple):
    """What actor and critic met in imagination, for signals and logs."""

    rewards: Tensor  # [H, N], of states 1 to H (DreamerV3) or 0 to H - 1 (DreamerV2)
    values: Tensor  # [H + 1, N]
    metrics: dict[str, Tensor]


Reward = Callable[[Imagined], Tensor]
"""What an actor strives for: numbers of imagined states, [H, N], or [H + 1, N] of all of them."""


class Behaviour(nn.Module, ABC):
    """An actor and what judges it; subclasses say how they learn from what they imagine."""

    actor: Actor

    def __init__(self, imagination: int) -> None:
        super().__init__()
        self.imagination = imagination

    @abstractmethod
    def make_optimisers(self, prefix: str = "") -> dict[str, Optimiser]:
        """Return optimisers of actor and critic, one each, by names that begin with `prefix`."""

    def imagine(
        self,
        model: WorldModel,
        start: State,
        generator: torch.Generator,
        steps: int | None = None,
    ) -> Imagined:
        """Act inside the model from N states, for `steps` or else H steps.

        Discrete actions learn by REINFORCE, which needs no gradient through the dynamics: there,
        autograd follows the actor only.
        """
        learns, rows = torch.is_grad_enabled(), len(start.deter)
        steps = steps or self.imagination
        latent_noise = model.latent.noise(steps, rows, generator=generator)
        action_noise = self.actor.noise(steps + 1, rows, generator=generator)
        state: State | OneHotFeatures = start
        step: Callable[..., State | OneHotFeatures] = model.rssm.imagine
        latent = model.latent
        if self.actor.discrete and isinstance(latent, Categorical) and pays(start.deter):
            state = OneHotFeatures(start.deter, latent.ones(start.stoch), latent.size)
            step = model.rssm.imagine_quickly
        features: list[Features] = []
        actions, outputs = [], []
        for t in range(steps + 1):
            features.append(state.feature)
            # By REINFORCE nothing is learned of the last action: no return follows it.
            with torch.set_grad_enabled(learns and (t < steps or not self.actor.discrete)):
                outputs.append(self.actor(features[-1].detach()))
            actions.append(self.actor.policy(outputs[-1]).sample(action_noise[t]))
            if t < steps:
                with torch.set_grad_enabled(learns and not self.actor.discrete):
                    state = step(state, actions[-1], latent_noise[t])
        return Imagined(stack(features), torch.stack(actions), torch.stack(outputs[:-1]))

    @torch.no_grad()
    def foresee(
        self,
        model: WorldModel,
        start: State,
        reward: Reward,
        generator: torch.Generator,
        steps: int,
    ) -> Tensor:
        """Return the `reward` of some steps from N states, [steps, N].

        It takes nothing out of the generator: whether it was asked decides nothing else.
        """
        return reward(self.imagine(model, start, generator.clone_state(), steps))


class Dreamer(DeviceAgent):
    """A world model, and something that acts and learns inside it."""

    model: WorldModel
    behaviour: Behaviour
    starts = 1.0
    """Share of the states of a batch that imagination begins from."""
    samples_always = True
    """Whether actions are drawn also where the policy is evaluated; else the likeliest is taken."""

    def __init__(self, spaces: Spaces, seed: int, device: str) -> None:
        super().__init__(spaces, seed, device)
        self.finite = FiniteCheck(self.device)
        """What the present update has met."""

    @abstractmethod
    def make_behaviour(self) -> Behaviour:
        """Make an actor and critic such as this agent's own, with new weights."""

    @abstractmethod
    def train_world_model(self, replayed: Replayed) -> WorldModelOutputs:
        """Let the world model learn from a batch."""

    @abstractmethod
    def train_actor_critic(
        self,
        replayed: Replayed,
        start: State,
        behaviour: Behaviour | None = None,
        reward: Reward | None = None,
        unread: Collection[str] = (),
    ) -> tuple[ActorCriticOutputs, dict[str, Tensor]]:
        """Let actor and critic learn in imagination. Returns also the signal "td" [T, B].

        By default these are the agent's own, and strive for the rewards that its model predicts;
        another `reward` gives numbers [H + 1, N] of all imagined states. The signal is left out if
        it is `unread` and would have to be imagined for nothing else.
        """

    @property
    def fields(self) -> Collection[str]:
        """See `DeviceAgent.fields`."""
        seen = {"image": self.spaces.image, "vector": self.spaces.vector}
        observed = [name for name, there in seen.items() if there]
        return [*observed, "action", "reward", "is_first", "is_terminal"]

    def learn(self, batch: Fields, unread: Collection[str], known: Arrays | None) -> UpdateReport:
        """Train the world model on the batch, then actor and critic from its states."""
        self.finite = FiniteCheck(self.device)
        replayed = self.load(batch, known)
        learned = self.train_world_model(replayed)
        outputs, td = self.train_actor_critic(replayed, learned.start, unread=unread)
        metrics = {**learned.metrics, **outputs.metrics}
        return self.finite.report({**learned.signals, **td}, metrics)

    def check_sharing(self, processes: int, windows: int, length: int) -> None:
        """See `Agent.check_sharing`."""
        count = self._starts_of(windows * length)
        if count % processes:
            raise UsageError(
                f"--agent.starts {self.starts} lets imagination begin from {count} states, which "
                f"{processes} processes cannot share evenly: choose another, as 1.0"
            )

    def use_graphs(self, unread: Collection[str]) -> None:
        """See `Agent.use_graphs`."""
        self.refuse_foresight(unread)
        super().use_graphs(unread)

    def refuse_foresight(self, unread: Collection[str]) -> None:
        """Refuse graphs where numbers are drawn from a copy of the generator; see `foresee`."""
        if self.foresees(unread):
            raise UsageError(
                f"--train.graphs: --agent.starts {self.starts} with the signal td cannot be "
                "recorded, as it draws random numbers twice: use --agent.starts 1.0, a rule that "
                "does not read td (without --record.keep-at), or leave out --train.graphs"
            )

    def foresees(self, unread: Collection[str]) -> bool:
        """Say whether first steps are imagined for "td" alone: `starts` leaves some states out."""
        return self.starts < 1 and "td" not in unread

    def draw_starts(self, start: State, cont: Tensor) -> tuple[State, Tensor]:
        """Draw where imagination begins: some of N states, none twice, and their `cont`."""
        others = together()
        rows = len(cont) * others.ranks
        count = self._starts_of(rows)
        if count == rows:
            return start, cont
        order = torch.randperm(rows, generator=self.generator, device=self.generator.device)
        picked = others.part(order[:count], 0)
        deter, stoch, cont = (others.gather(each, 0)[picked] for each in (*start, cont))
        return State(deter, stoch), cont

    def _starts_of(self, rows: int) -> int:
        return max(1, round(self.starts * rows))

    def fit(
        self,
        belief: Belief,
        terms: dict[str, Tensor],
        signals: dict[str, Tensor],
        loss: Tensor,
    ) -> WorldModelOutputs:
        """Reduce the world model's `loss`, a scalar, and say what it was made of.

        terms    by name, of any shape
        signals  [T, B] each: "likelihood", "kl" and "model", which is all of what a step cost
        """
        self.finite.check("model", terms)
        norm = self.finite.step("model", self.optimisers["model_adam"], loss)
        metrics = {f"model/{name}": value.detach().mean() for name, value in terms.items()}
        metrics |= {"model/loss": loss.detach(), "model/gradient": norm}
        return WorldModelOutputs(belief, signals, metrics)

    def start(self, num_envs: int) -> PolicyState:
        """Return the model's first state and the action that led to it, [num_envs, ...] each."""
        with torch.no_grad():
            deter, stoch = self.model.rssm.start(num_envs)
        action = torch.zeros(num_envs, self.spaces.actions, device=self.device)
        return {"deter": deter.clone(), "stoch": stoch.clone(), "action": action}

    def act(
        self, state: PolicyState, observation: Arrays, generator: torch.Generator, explore: bool
    ) -> tuple[np.ndarray, PolicyState]:
        """See `Agent.act`."""
        sample = explore or self.samples_always
        return self.act_as(self.behaviour.actor, state, observation, generator, sample)

    @torch.no_grad()
    def act_as(
        self,
        actor: Actor,
        state: PolicyState,
        observation: Arrays,
        generator: torch.Generator,
        sample: bool,
    ) -> tuple[np.ndarray, PolicyState]:
        """Let `actor` choose actions [N, A]: drawn from its policy, or the likeliest ones."""
        rows = len(observation["is_first"])
        is_first = torch.from_numpy(observation["is_first"]).to(self.device)
        noise = self.model.latent.noise(rows, generator=generator).to(self.device)
        with self.autocast():
            embedding = self.model.embed(*self.observed(observation))
            states, _ = self.model.rssm.observe(
                embedding.unsqueeze(0),
                state["action"].unsqueeze(0),
                is_first.unsqueeze(0),
                noise.unsqueeze(0),
                State(state["deter"], state["stoch"]),
                begins=[bool(observation["is_first"].any())],
            )
            latest = State(states.deter[0], states.stoch[0])
            policy = actor.policy(actor(latest.feature))
        chances = actor.noise(rows, generator=generator).to(self.device)
        action = (policy.sample(chances) if sample else policy.mode).clamp(-1, 1)
        return to_numpy(action), {"deter": latest.deter, "stoch": latest.stoch, "action": action}

    @torch.no_grad()
    def open_loop(self, batch: Arrays, context: int) -> np.ndarray:
        """See `Agent.open_loop`; latents are the most likely ones, so that nothing is drawn."""
        replayed = self.load(batch)
        shown = {name: array[:, :context] for name, array in batch.items()}
        seen = self.load(shown, known=shown)
        states = self.model.believe(seen, None).states
        features = [*states.feature]
        state = State(states.deter[-1], states.stoch[-1])
        for action in replayed.previous_action[context:]:
            state = self.model.rssm.imagine(state, action, None)
            features.append(state.feature)
        picture = self.model.picture(torch.stack(features)) + 0.5
        return to_numpy((picture.clamp(0, 1) * 255).round().transpose(0, 1)).astype(np.uint8)

    def load(self, batch: Fields, known: Arrays | None = None) -> Replayed:
        """Return fields [B, T, ...] of replay as tensors [T, B, ...] on the device.

        See `DeviceAgent.learn` for `known`.
        """
        flipped = {name: batch[name].swapaxes(0, 1) for name in self.fields}
        action = self._load(flipped["action"])
        return Replayed(
            *self.observed(flipped),
            previous_action=torch.cat([torch.zeros_like(action[:1]), action[:-1]]),
            reward=self._load(flipped["reward"]),
            is_first=self._load(flipped["is_first"]).bool(),
            cont=1 - self._load(flipped["is_terminal"]),
            begins=None if known is None else [bool(step.any()) for step in known["is_first"].T],
        )

    def observed(self, fields: Fields) -> tuple[Tensor | None, Tensor | None]:
        """Return image and vector as the networks want them, [..., H, W, 3] and [..., V]."""
        image = vector = None
        if self.spaces.image is not None:
            image = self._load(fields["image"]).div_(255).sub_(0.5)
        if self.spaces.vector:
            vector = self.scale_vector(self._load(fields["vector"]))
        return image, vector

    def scale_vector(self, vector: Tensor) -> Tensor:
        """Return observed numbers [..., V] as the networks want them."""
        return symlog(vector)
