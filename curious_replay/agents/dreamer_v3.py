"""DreamerV3 in its version of early 2023, the one that the paper prioritised replay for.

Top to bottom: the course of an update, the world model and its loss, imagination and what actor
and critic learn from it. Tensors are time first: T replayed steps, H imagined ones.
"""

from collections.abc import Collection

import torch
from torch import Tensor

from curious_replay.agents.blocks.actor import Actor, OneHotPolicy
from curious_replay.agents.blocks.dense import DREAMER_V3, mlp
from curious_replay.agents.blocks.heads import TwoHotHead, binary_loss, squared_error
from curious_replay.agents.blocks.latents import Categorical
from curious_replay.agents.blocks.maths import to_float32
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.returns import (
    ReturnScale,
    imagination_weights,
    lambda_returns,
    td_errors,
)
from curious_replay.agents.blocks.rssm import Rssm, State
from curious_replay.agents.blocks.shortcuts.lookup import Features
from curious_replay.agents.blocks.slow_copy import SlowCopy
from curious_replay.agents.configs.dreamer_v3 import SIZES, DreamerV3Config
from curious_replay.agents.dreamer import (
    ActorCriticOutputs,
    Behaviour,
    Dreamer,
    Imagined,
    Reward,
    WorldModelOutputs,
)
from curious_replay.agents.feedback import FiniteCheck
from curious_replay.agents.spaces import Spaces
from curious_replay.agents.world_model import Belief, Replayed, WorldModel


class DreamerV3(Dreamer):
    """A world model, and an actor and a critic that learn inside it."""

    model: "V3Model"
    behaviour: "ActorCritic"

    def __init__(
        self, config: DreamerV3Config, spaces: Spaces, seed: int, device: str = "cpu"
    ) -> None:
        super().__init__(spaces, seed, device)
        self.config = config
        self.starts = config.starts
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = V3Model(config, spaces)
            self.behaviour = self.make_behaviour()
        self.to(self.device)
        self.optimisers = {
            "model_adam": Optimiser(
                self.model, config.model_lr, config.model_eps, config.model_clip
            ),
            **self.behaviour.make_optimisers(),
        }

    def make_behaviour(self) -> "ActorCritic":
        """See `Dreamer.make_behaviour`."""
        return ActorCritic(self.config, self.spaces, self.model.features)

    def train_world_model(self, replayed: Replayed) -> WorldModelOutputs:
        """Reduce the loss of the world model: likelihoods of what was seen, and the KL."""
        noise = self.model.latent.noise(*replayed.reward.shape, generator=self.generator)
        with self.autocast():
            belief = self.model.believe(replayed, noise)
            likelihoods = self.model.likelihood_losses(replayed, belief)
            kl, kl_loss = self.model.kl_loss(belief)
        likelihood = torch.stack([*likelihoods.values()]).sum(0)
        model = likelihood + kl_loss
        signals = {"model": model, "likelihood": likelihood, "kl": kl}
        return self.fit(belief, {**likelihoods, "kl": kl}, signals, loss=model.mean())

    def train_actor_critic(
        self,
        replayed: Replayed,
        start: State,
        behaviour: Behaviour | None = None,
        reward: Reward | None = None,
        unread: Collection[str] = (),
    ) -> tuple[ActorCriticOutputs, dict[str, Tensor]]:
        """Let actor and critic learn to reach rewards, of states that they arrive at."""
        learner = behaviour or self.behaviour
        assert isinstance(learner, ActorCritic)
        arriving = self._reward if reward is None else lambda imagined: reward(imagined)[1:]
        some, cont = self.draw_starts(start, replayed.cont.flatten())
        with self.autocast():
            before = None
            if self.foresees(unread):
                before = learner.first_steps(self.model, start, arriving, self.generator)
            outputs = learner.learn(self.model, some, cont, arriving, self.generator, self.finite)
        if before is None and self.starts < 1:
            return outputs, {}
        return outputs, {"td": self._td_error(replayed, start, before or outputs)}

    def _reward(self, imagined: Imagined) -> Tensor:
        """Return the actor's rewards [H, N]: those predicted of the states it arrives at."""
        return self.model.reward(imagined.features[1:])

    @torch.no_grad()
    def _td_error(self, replayed: Replayed, start: State, outputs: ActorCriticOutputs) -> Tensor:
        """Return the temporal-difference error [T, B] on arriving at each step; see `td_errors`."""
        values = outputs.values[0].view_as(replayed.reward)
        match self.config.td:
            case "imagined":
                rewards = outputs.rewards[0].view_as(values)[:-1]
            case "predicted":
                rewards = self.model.reward(start.feature).view_as(values)[:-1]
            case "replayed":
                rewards = replayed.reward[1:]
        discounts = self.behaviour.discount * replayed.cont
        return td_errors(rewards, discounts, values, replayed.is_first)


class V3Model(WorldModel):
    """Predicts what is seen, rewards and ends."""

    def __init__(self, config: DreamerV3Config, spaces: Spaces) -> None:
        super().__init__()
        self.config = config
        size, style = SIZES[config.size], DREAMER_V3
        latent = Categorical(size.latents, size.classes, config.unimix)
        features = size.deter + latent.size
        self.head_shape = (size.layers, size.units, style)
        embedding = self.make_observers(
            spaces, features, size.depth, size.vector_layers, size.vector_units, style
        )
        self.rssm = Rssm(
            embedding,
            spaces.actions,
            size.deter,
            size.units,
            latent,
            style,
            learned_start=True,
        )
        shape = (features, size.layers, size.units)
        self.reward_head = TwoHotHead(*shape, config.bins, style)
        self.continue_head = mlp(*shape, 1, style)

    def likelihood_losses(self, replayed: Replayed, belief: Belief) -> dict[str, Tensor]:
        """Return the losses by name: how badly the states explain what was seen.

        They are in nats (of unit variance), [T, B] each.
        """
        features = belief.states.feature
        losses = {}
        if replayed.image is not None:
            losses["image"] = squared_error(self.picture(features), replayed.image, axes=3)
        if replayed.vector is not None and self.vector_decoder is not None:
            losses["vector"] = squared_error(self.vector_decoder(features), replayed.vector, axes=1)
        losses["reward"] = self.reward_head(features).loss(replayed.reward)
        losses["continue"] = binary_loss(self.continue_head(features)[..., 0], replayed.cont)
        return losses

    def kl_loss(self, belief: Belief) -> tuple[Tensor, Tensor]:
        """Return the KL divergence of posterior and prior, [T, B], and what it costs, [T, B].

        One part of the cost moves the prior, a smaller one the posterior; neither does below the
        free nats.
        """
        config, kl = self.config, self.latent.kl
        dynamics = kl(belief.posterior.detach(), belief.prior)
        representation = kl(belief.posterior, belief.prior.detach())
        cost = config.dynamics_scale * dynamics.clamp(min=config.free_nats)
        cost = cost + config.representation_scale * representation.clamp(min=config.free_nats)
        return dynamics.detach(), cost

    def reward(self, features: Features) -> Tensor:
        """Return the predicted reward [...] on arriving at features [..., F]."""
        mean: Tensor = self.reward_head(features).mean
        return mean

    def cont(self, features: Features) -> Tensor:
        """Return 1 where the episode is predicted to go on, else 0: [..., F] -> [...]."""
        logit: Tensor = self.continue_head(features)[..., 0]
        return (logit > 0).to(to_float32(logit))


class ActorCritic(Behaviour):
    """An actor and a critic that learn from what they imagine."""

    def __init__(self, config: DreamerV3Config, spaces: Spaces, features: int) -> None:
        super().__init__(config.imagination)
        self.config = config
        self.discount = 1 - 1 / config.discount_horizon
        size, style = SIZES[config.size], DREAMER_V3
        shape = (features, size.layers, size.units)
        self.actor = Actor(
            *shape, spaces.actions, style, discrete=spaces.discrete, unimix=config.unimix
        )
        self.critic = TwoHotHead(*shape, config.bins, style)
        self.slow_critic = SlowCopy(self.critic, config.slow_fraction)
        self.return_scale = ReturnScale(config.return_decay)

    def make_optimisers(self, prefix: str = "") -> dict[str, Optimiser]:
        """See `Behaviour.make_optimisers`."""
        eps, clip = self.config.actor_critic_eps, self.config.actor_critic_clip
        self.actor_adam = Optimiser(self.actor, self.config.actor_lr, eps, clip)
        self.critic_adam = Optimiser(self.critic, self.config.critic_lr, eps, clip)
        return {f"{prefix}actor_adam": self.actor_adam, f"{prefix}critic_adam": self.critic_adam}

    @torch.no_grad()
    def first_steps(
        self, model: V3Model, start: State, reward: Reward, generator: torch.Generator
    ) -> ActorCriticOutputs:
        """Return the rewards of one step from N states, and their values; nothing is learned."""
        rewards = self.foresee(model, start, reward, generator, steps=1)
        return ActorCriticOutputs(rewards, self.critic(start.feature).mean.unsqueeze(0), {})

    def learn(
        self,
        model: V3Model,
        start: State,
        cont: Tensor,
        reward: Reward,
        generator: torch.Generator,
        finite: FiniteCheck,
    ) -> ActorCriticOutputs:
        """Imagine from `start` [N, ...] (`cont` [N] says which are no ends), and learn."""
        imagined = self.imagine(model, start, generator)
        with torch.set_grad_enabled(not self.actor.discrete):
            rewards = reward(imagined)
            cont = torch.cat([cont.unsqueeze(0), model.cont(imagined.features[1:])])
        critic = self.critic(imagined.features[:-1])  # it learns nothing of the last state
        values = torch.cat([critic.mean, self.critic(imagined.features[-1:]).mean])
        returns = lambda_returns(
            rewards, self.discount * cont[1:], values, self.config.return_lambda
        )
        weights = imagination_weights(cont[:-1], self.discount)
        finite.check("actor", {"return": returns})  # one that is not would stay in the scale
        scale = self.return_scale.update(returns, finite.fine)

        advantage = (returns - values[:-1]) / scale
        policy = self.actor.policy(imagined.outputs)
        if isinstance(policy, OneHotPolicy):
            gain = policy.log_probability(imagined.actions[:-1]) * advantage.detach()
        else:
            gain = advantage
        actor_loss = -(weights * (gain + self.config.entropy * policy.entropy)).mean()
        finite.check("actor", {"loss": actor_loss})
        keep_graph = not self.actor.discrete
        actor_norm = finite.step("actor", self.actor_adam, actor_loss, keep_graph=keep_graph)

        with torch.no_grad():
            slow = self.slow_critic(imagined.features[:-1]).mean
        critic_loss = (weights * critic.loss(returns.detach(), slow)).mean()
        critic_norm = finite.step("critic", self.critic_adam, critic_loss)
        self.slow_critic.follow(self.critic, finite.fine)
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
        return ActorCriticOutputs(
            rewards.detach(), values.detach(), {k: v.detach() for k, v in metrics.items()}
        )
