"""DreamerV3 in its version of early 2023, the one that the paper prioritised replay for.

Top to bottom: the agent and one update of it, the world model and its loss, imagination and what
actor and critic learn from it. Tensors are time first: T replayed steps, H imagined ones.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from curious_replay.agents.blocks.actor import Actor, OneHotPolicy
from curious_replay.agents.blocks.convs import Decoder, Encoder
from curious_replay.agents.blocks.dense import DREAMER_V3, hidden_layers, mlp
from curious_replay.agents.blocks.heads import TwoHot, binary_loss, squared_error
from curious_replay.agents.blocks.latents import Categorical
from curious_replay.agents.blocks.maths import exact, symlog
from curious_replay.agents.blocks.memory import keep_freed_memory
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.returns import ReturnScale, lambda_returns, reach
from curious_replay.agents.blocks.rssm import Rssm, State
from curious_replay.agents.blocks.slow_copy import SlowCopy
from curious_replay.agents.dreamer_v3_config import SIZES, DreamerV3Config
from curious_replay.agents.interface import (
    Agent,
    Arrays,
    Feedback,
    NonFiniteError,
    PolicyState,
    Spaces,
)


class Replayed(NamedTuple):
    """A batch on its device, time first."""

    image: Tensor | None  # [T, B, H, W, 3], -0.5 to 0.5
    vector: Tensor | None  # [T, B, V], in symlog space
    previous_action: Tensor  # [T, B, A], the one that led here
    reward: Tensor  # [T, B]
    is_first: Tensor  # bool [T, B]
    goes_on: Tensor  # [T, B]: 1 - is_terminal


class Belief(NamedTuple):
    """What the world model makes of a batch."""

    states: State  # [T, B, ...], drawn from the posterior
    prior: Tensor  # [T, B, ...], outputs of the head that has not seen the step
    posterior: Tensor  # [T, B, ...], outputs of the head that has


class Imagined(NamedTuple):
    """Trajectories of H steps from N states, time first."""

    features: Tensor  # [H + 1, N, F]
    actions: Tensor  # [H + 1, N, A], chosen at each of the states
    outputs: Tensor  # [H + 1, N, ...], of the actor's network


class Lesson(NamedTuple):
    """What actor and critic met in imagination, for signals and logs."""

    rewards: Tensor  # [H, N], on arriving at states 1 to H
    values: Tensor  # [H + 1, N]
    metrics: dict[str, Tensor]


class DreamerV3(Agent):
    """A world model, and an actor and a critic that learn inside it."""

    def __init__(
        self, config: DreamerV3Config, spaces: Spaces, seed: int, device: str = "cpu"
    ) -> None:
        super().__init__(spaces, seed, device)
        keep_freed_memory()
        self.config = config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = WorldModel(config, spaces)
            self.behaviour = ActorCritic(config, spaces, self.model.features)
        self.to(self.device)
        self.optimisers = {
            "model_adam": Optimiser(
                self.model, config.model_lr, config.model_eps, config.model_clip
            ),
            **self.behaviour.make_optimisers(),
        }

    def update(self, batch: Arrays) -> Feedback:
        """Train the world model on the batch, then actor and critic from each of its states."""
        replayed = self._replayed(batch)
        noise = self.model.latent.noise(*replayed.reward.shape, generator=self.generator)
        with self._precision():
            belief = self.model.believe(replayed, noise)
            likelihoods = self.model.likelihood_losses(replayed, belief)
            kl, kl_loss = self.model.kl_loss(belief)
        likelihood = torch.stack([*likelihoods.values()]).sum(0)
        model = likelihood + kl_loss
        check_finite("model", {**likelihoods, "kl": kl})
        norm = self.optimisers["model_adam"].step(model.mean())
        check_finite("model", {"gradient": norm})

        start = State(*(part.detach().flatten(0, 1) for part in belief.states))
        with self._precision():
            lesson = self.behaviour.learn(
                self.model, start, replayed.goes_on.flatten(), self._reward, self.generator
            )
        signals = {
            "model": model,
            "likelihood": likelihood,
            "kl": kl,
            "td": self._td_error(replayed, start, lesson),
        }
        metrics = {f"model/{name}": loss.mean() for name, loss in likelihoods.items()}
        metrics |= {"model/kl": kl.mean(), "model/loss": model.mean(), "model/gradient": norm}
        metrics |= lesson.metrics
        return Feedback(
            {name: to_numpy(signal.T) for name, signal in signals.items()},
            dict(zip(metrics, torch.stack([*metrics.values()]).tolist(), strict=True)),
        )

    def _reward(self, imagined: Imagined) -> Tensor:
        """What the actor strives for: predicted rewards [H, N] of the states it arrives at."""
        return self.model.reward(imagined.features[1:])

    @torch.no_grad()
    def _td_error(self, replayed: Replayed, start: State, lesson: Lesson) -> Tensor:
        """Temporal-difference error [T, B] on arriving at each step, NaN where none led there."""
        values = lesson.values[0].view_as(replayed.reward)
        match self.config.td:
            case "imagined":
                rewards = lesson.rewards[0].view_as(values)[:-1]
            case "predicted":
                rewards = self.model.reward(start.feature).view_as(values)[:-1]
            case "replayed":
                rewards = replayed.reward[1:]
        discount = self.behaviour.discount * replayed.goes_on[1:]
        error = torch.full_like(values, torch.nan)
        error[1:] = rewards + discount * values[1:] - values[:-1]
        return error.masked_fill(replayed.is_first, torch.nan)

    def start(self, num_envs: int) -> PolicyState:
        """State of the model and the action that led to it, [num_envs, ...] each."""
        with torch.no_grad():
            deter, stoch = self.model.rssm.start(num_envs)
        action = torch.zeros(num_envs, self.spaces.actions, device=self.device)
        return {"deter": deter.clone(), "stoch": stoch.clone(), "action": action}

    @torch.no_grad()
    def act(
        self, state: PolicyState, observation: Arrays, generator: torch.Generator, explore: bool
    ) -> tuple[np.ndarray, PolicyState]:
        """Sample an action, also when it is evaluated: so does the published agent."""
        rows = len(observation["is_first"])
        is_first = torch.from_numpy(observation["is_first"]).to(self.device)
        noise = self.model.latent.noise(rows, generator=generator).to(self.device)
        with self._precision():
            embedding = self.model.embed(*self._observed(observation))
            states, _ = self.model.rssm.observe(
                embedding.unsqueeze(0),
                state["action"].unsqueeze(0),
                is_first.unsqueeze(0),
                noise.unsqueeze(0),
                State(state["deter"], state["stoch"]),
            )
            latest = State(states.deter[0], states.stoch[0])
            policy = self.behaviour.actor.policy(self.behaviour.actor(latest.feature))
        chances = self.behaviour.actor.noise(rows, generator=generator).to(self.device)
        action = policy.sample(chances).clamp(-1, 1)
        return to_numpy(action), {"deter": latest.deter, "stoch": latest.stoch, "action": action}

    @torch.no_grad()
    def open_loop(self, batch: Arrays, context: int) -> np.ndarray:
        """See `Agent.open_loop`; has its own generator, so that nothing else is disturbed."""
        replayed = self._replayed(batch)
        generator = torch.Generator(self.device).manual_seed(0)
        noise = self.model.latent.noise(*replayed.reward.shape, generator=generator)
        seen = self._replayed({name: array[:, :context] for name, array in batch.items()})
        states = self.model.believe(seen, noise[:context]).states
        features = [*states.feature]
        state = State(states.deter[-1], states.stoch[-1])
        for t in range(context, len(noise)):
            state = self.model.rssm.imagine(state, replayed.previous_action[t], noise[t])
            features.append(state.feature)
        picture = self.model.picture(torch.stack(features)) + 0.5
        return to_numpy((picture.clamp(0, 1) * 255).round().transpose(0, 1)).astype(np.uint8)

    def _replayed(self, batch: Arrays) -> Replayed:
        """Arrays [B, T, ...] of replay as tensors [T, B, ...] on the device."""
        flipped = {name: np.ascontiguousarray(x.swapaxes(0, 1)) for name, x in batch.items()}
        action = self._load(flipped["action"])
        return Replayed(
            *self._observed(flipped),
            previous_action=torch.cat([torch.zeros_like(action[:1]), action[:-1]]),
            reward=self._load(flipped["reward"]),
            is_first=self._load(flipped["is_first"]).bool(),
            goes_on=1 - self._load(flipped["is_terminal"]),
        )

    def _observed(self, fields: Arrays) -> tuple[Tensor | None, Tensor | None]:
        """Image and vector as the networks want them, [..., H, W, 3] and [..., V]."""
        image = vector = None
        if self.spaces.image is not None:
            image = self._load(fields["image"]) / 255 - 0.5
        if self.spaces.vector:
            vector = symlog(self._load(fields["vector"]))
        return image, vector

    def _load(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device).float()

    def _precision(self) -> AbstractContextManager[None]:
        """Arithmetic of the networks."""
        low = self.config.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=low)


class WorldModel(nn.Module):
    """Predicts what is seen, rewards and ends."""

    def __init__(self, config: DreamerV3Config, spaces: Spaces) -> None:
        super().__init__()
        self.config = config
        size, style = SIZES[config.size], DREAMER_V3
        self.latent = Categorical(size.latents, size.classes, config.unimix)
        self.features = size.deter + self.latent.size
        self.encoder = self.decoder = self.vector_encoder = self.vector_decoder = None
        embedding = 0
        if spaces.image is not None:
            self.encoder = Encoder(spaces.image[0], size.depth, style)
            self.decoder = Decoder(self.features, spaces.image[0], size.depth, style)
            embedding += self.encoder.size
        if spaces.vector:
            hidden = (size.vector_layers, size.vector_units)
            self.vector_encoder = hidden_layers(spaces.vector, *hidden, style)
            self.vector_decoder = mlp(self.features, *hidden, spaces.vector, style)
            embedding += size.vector_units
        self.rssm = Rssm(
            embedding,
            spaces.actions,
            size.deter,
            size.units,
            self.latent,
            style,
            learned_start=True,
        )
        shape = (self.features, size.layers, size.units)
        self.reward_head = mlp(*shape, config.bins, style, zero=True)
        self.continue_head = mlp(*shape, 1, style)

    def embed(self, image: Tensor | None, vector: Tensor | None) -> Tensor:
        """What is seen, as one vector: [..., H, W, 3] and / or [..., V] -> [..., E]."""
        parts = []
        if image is not None and self.encoder is not None:
            flat = self.encoder(image.flatten(0, -4))
            parts.append(flat.reshape(*image.shape[:-3], -1))
        if vector is not None and self.vector_encoder is not None:
            parts.append(self.vector_encoder(vector))
        return torch.cat(parts, -1)

    def believe(self, replayed: Replayed, noise: Tensor) -> Belief:
        """Follow the batch; `noise` [T, B, ...] is that of the latent."""
        embedding = self.embed(replayed.image, replayed.vector)
        states, posterior = self.rssm.observe(
            embedding, replayed.previous_action, replayed.is_first, noise
        )
        return Belief(states, self.rssm.prior(states.deter), posterior)

    def likelihood_losses(self, replayed: Replayed, belief: Belief) -> dict[str, Tensor]:
        """How badly the states explain what was seen, in nats (of unit variance), [T, B] each."""
        features = belief.states.feature
        losses = {}
        if replayed.image is not None:
            losses["image"] = squared_error(self.picture(features), replayed.image, axes=3)
        if replayed.vector is not None and self.vector_decoder is not None:
            losses["vector"] = squared_error(self.vector_decoder(features), replayed.vector, axes=1)
        losses["reward"] = TwoHot(self.reward_head(features)).loss(replayed.reward)
        losses["continue"] = binary_loss(self.continue_head(features)[..., 0], replayed.goes_on)
        return losses

    def kl_loss(self, belief: Belief) -> tuple[Tensor, Tensor]:
        """How far apart expectation and belief are, [T, B], and how much that costs, [T, B].

        One part of the cost moves the prior, a smaller one the posterior; neither does below the
        free nats.
        """
        config, kl = self.config, self.latent.kl
        dynamics = kl(belief.posterior.detach(), belief.prior)
        representation = kl(belief.posterior, belief.prior.detach())
        cost = config.dynamics_scale * dynamics.clamp(min=config.free_nats)
        cost = cost + config.representation_scale * representation.clamp(min=config.free_nats)
        return dynamics.detach(), cost

    def picture(self, features: Tensor) -> Tensor:
        """Predicted image [..., H, W, 3], -0.5 to 0.5, of features [..., F]."""
        if self.decoder is None:
            raise ValueError("this world model was made without images")
        pictures: Tensor = self.decoder(features.flatten(0, -2))
        return pictures.reshape(*features.shape[:-1], *pictures.shape[1:])

    def reward(self, features: Tensor) -> Tensor:
        """Predicted reward [...] on arriving at features [..., F]."""
        return TwoHot(self.reward_head(features)).mean

    def goes_on(self, features: Tensor) -> Tensor:
        """1 where the episode is predicted to go on, else 0: [..., F] -> [...]."""
        logit: Tensor = self.continue_head(features)[..., 0]
        return (logit > 0).to(exact(logit))


class ActorCritic(nn.Module):
    """An actor and a critic that learn from what they imagine."""

    def __init__(self, config: DreamerV3Config, spaces: Spaces, features: int) -> None:
        super().__init__()
        self.config = config
        self.discount = 1 - 1 / config.discount_horizon
        size, style = SIZES[config.size], DREAMER_V3
        shape = (features, size.layers, size.units)
        self.actor = Actor(
            *shape, spaces.actions, style, discrete=spaces.discrete, unimix=config.unimix
        )
        self.critic = mlp(*shape, config.bins, style, zero=True)
        self.slow_critic = SlowCopy(self.critic, config.slow_fraction)
        self.return_scale = ReturnScale(config.return_decay)

    def make_optimisers(self, prefix: str = "") -> dict[str, Optimiser]:
        """One for the actor, one for the critic."""
        eps, clip = self.config.actor_critic_eps, self.config.actor_critic_clip
        self.actor_adam = Optimiser(self.actor, self.config.actor_lr, eps, clip)
        self.critic_adam = Optimiser(self.critic, self.config.critic_lr, eps, clip)
        return {f"{prefix}actor_adam": self.actor_adam, f"{prefix}critic_adam": self.critic_adam}

    def learn(
        self,
        model: WorldModel,
        start: State,
        goes_on: Tensor,
        reward: Callable[[Imagined], Tensor],
        generator: torch.Generator,
    ) -> Lesson:
        """Imagine from `start` [N, ...] (`goes_on` [N] says which are no ends), and learn."""
        # Discrete actions learn by REINFORCE, which needs no gradient through the dynamics.
        with torch.set_grad_enabled(not self.actor.discrete):
            imagined = self.imagine(model, start, generator)
            rewards = reward(imagined)
            goes_on = torch.cat([goes_on.unsqueeze(0), model.goes_on(imagined.features[1:])])
        critic = TwoHot(self.critic(imagined.features))
        values = critic.mean
        returns = lambda_returns(
            rewards, self.discount * goes_on[1:], values, self.config.return_lambda
        )
        weights = reach(goes_on[:-1], self.discount)
        scale = self.return_scale.update(returns)

        advantage = (returns - values[:-1]) / scale
        # The graph of a discrete policy was not kept: once more, for all states together.
        outputs = (
            self.actor(imagined.features[:-1]) if self.actor.discrete else imagined.outputs[:-1]
        )
        policy = self.actor.policy(outputs)
        if isinstance(policy, OneHotPolicy):
            gain = policy.log_probability(imagined.actions[:-1]) * advantage.detach()
        else:
            gain = advantage
        actor_loss = -(weights * (gain + self.config.entropy * policy.entropy)).mean()
        check_finite("actor", {"loss": actor_loss})
        actor_norm = self.actor_adam.step(actor_loss, keep_graph=not self.actor.discrete)
        check_finite("actor", {"gradient": actor_norm})

        logits, seen = critic.logits[:-1], imagined.features[:-1].detach()
        with torch.no_grad():
            slow = TwoHot(self.slow_critic(seen)).mean
        critic = TwoHot(logits)
        critic_loss = (weights * (critic.loss(returns.detach()) + critic.loss(slow))).mean()
        critic_norm = self.critic_adam.step(critic_loss)
        check_finite("critic", {"gradient": critic_norm})
        self.slow_critic.follow(self.critic)
        metrics = {
            "actor/loss": actor_loss,
            "actor/gradient": actor_norm,
            "actor/entropy": policy.entropy.mean(),
            "actor/return": returns.mean(),
            "actor/return_scale": scale,
            "actor/reward": rewards.mean(),
            "critic/loss": critic_loss,
            "critic/gradient": critic_norm,
            "critic/value": values.mean(),
        }
        return Lesson(
            rewards.detach(), values.detach(), {k: v.detach() for k, v in metrics.items()}
        )

    def imagine(self, model: WorldModel, start: State, generator: torch.Generator) -> Imagined:
        """Act inside the model for H steps, from N states."""
        steps, rows = self.config.imagination, len(start.deter)
        latent_noise = model.latent.noise(steps, rows, generator=generator)
        action_noise = self.actor.noise(steps + 1, rows, generator=generator)
        state = start
        features, actions, outputs = [], [], []
        for t in range(steps + 1):
            features.append(state.feature)
            outputs.append(self.actor(features[-1].detach()))
            actions.append(self.actor.policy(outputs[-1]).sample(action_noise[t]))
            if t < steps:
                state = model.rssm.imagine(state, actions[-1], latent_noise[t])
        return Imagined(torch.stack(features), torch.stack(actions), torch.stack(outputs))


def check_finite(where: str, terms: dict[str, Tensor]) -> None:
    """Name the first of the terms that is not finite."""
    finite = torch.stack([torch.isfinite(term).all() for term in terms.values()]).tolist()
    for name, fine in zip(terms, finite, strict=True):
        if not fine:
            raise NonFiniteError(f"{where}/{name}")


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Copy to the host as float32."""
    return tensor.detach().float().cpu().numpy()
