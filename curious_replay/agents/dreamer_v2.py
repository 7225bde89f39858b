"""DreamerV2, with Gaussian latents or with categorical ones.

Top to bottom: the course of an update, the world model and its loss, what actor and critic learn
from imagination. Tensors are time first: T replayed steps, H imagined ones.
"""

from collections.abc import Collection

import torch
from torch import Tensor, nn

from curious_replay.agents.blocks.actor import (
    Actor,
    ContinuousPolicy,
    OneHotPolicy,
    TruncatedPolicy,
)
from curious_replay.agents.blocks.dense import DREAMER_V2, DREAMER_V2_NORM, Style, mlp
from curious_replay.agents.blocks.heads import binary_loss, normal_loss
from curious_replay.agents.blocks.latents import Categorical, Gaussian
from curious_replay.agents.blocks.maths import to_float32
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.returns import discounted_reach, lambda_returns, td_errors
from curious_replay.agents.blocks.rssm import Latent, Rssm, State
from curious_replay.agents.blocks.shortcuts.lookup import Features
from curious_replay.agents.blocks.slow_copy import TargetCopy
from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config, Size
from curious_replay.agents.dreamer import (
    ActorCriticOutputs,
    Behaviour,
    Dreamer,
    Imagined,
    Reward,
    WorldModelOutputs,
)
from curious_replay.agents.feedback import FiniteCheck
from curious_replay.agents.interface import Arrays
from curious_replay.agents.spaces import Spaces
from curious_replay.agents.together import together
from curious_replay.agents.updates import Fields
from curious_replay.agents.world_model import Belief, Replayed, WorldModel


class DreamerV2(Dreamer):
    """A world model, and an actor and a critic that learn inside it."""

    model: "V2Model"
    behaviour: "ActorCritic"
    samples_always = False

    def __init__(
        self, config: DreamerV2Config, spaces: Spaces, seed: int, device: str = "cpu"
    ) -> None:
        super().__init__(spaces, seed, device)
        self.config = config
        self.starts = config.starts
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = self.make_model()
            self.behaviour = self.make_behaviour()
        self.to(self.device)
        self.optimisers = {
            "model_adam": make_optimiser(self.model, config.model_lr, config),
            **self.behaviour.make_optimisers(),
        }

    def make_model(self) -> "V2Model":
        """Make a world model with new weights."""
        return V2Model(self.config, self.spaces)

    def make_behaviour(self) -> "ActorCritic":
        """See `Dreamer.make_behaviour`."""
        return ActorCritic(self.config, self.spaces, self.model.features)

    def load(self, batch: Fields, known: Arrays | None = None) -> Replayed:
        """See `Dreamer.load`; rewards are transformed here, once for all that learn from them."""
        replayed = super().load(batch, known)
        if self.config.reward_transform == "tanh":
            replayed = replayed._replace(reward=replayed.reward.tanh())
        return replayed

    def scale_vector(self, vector: Tensor) -> Tensor:
        """Return observed numbers [..., V] as they are."""
        return vector

    def train_world_model(self, replayed: Replayed) -> WorldModelOutputs:
        """Reduce the loss of the world model: likelihoods of what was seen, and the KL."""
        noise = self.model.latent.noise(*replayed.reward.shape, generator=self.generator)
        with self.autocast():
            belief = self.model.believe(replayed, noise)
            likelihoods = self.model.likelihood_losses(replayed, belief)
            kl, kl_loss = self.model.kl_loss(belief)
        likelihood = torch.stack([*likelihoods.values()]).sum(0)
        model = likelihood + self.config.kl_scale * kl
        signals = {"model": model, "likelihood": likelihood, "kl": kl}
        loss = likelihood.mean() + kl_loss
        return self.fit(belief, {**likelihoods, "kl": kl}, signals, loss)

    def train_actor_critic(
        self,
        replayed: Replayed,
        start: State,
        behaviour: Behaviour | None = None,
        reward: Reward | None = None,
        unread: Collection[str] = (),
    ) -> tuple[ActorCriticOutputs, dict[str, Tensor]]:
        """Let actor and critic learn to reach rewards, of states that they leave."""
        learner = behaviour or self.behaviour
        assert isinstance(learner, ActorCritic)
        leaving = self._reward if reward is None else lambda imagined: reward(imagined)[:-1]
        every, cont = self.begin(replayed, start)
        with self.autocast():
            some = self.draw_starts(every, cont)
            before = None
            if self.foresees(unread):
                before = learner.foresee(self.model, every, leaving, self.generator, steps=2)
            outputs = learner.learn(self.model, *some, leaving, self.generator, self.finite)
            if before is None and self.starts < 1:
                return outputs, {}
            with torch.no_grad():
                values = learner.value(start.feature).view_as(replayed.reward)
        met = outputs if before is None else outputs._replace(rewards=before)
        return outputs, {"td": self._td_error(replayed, met, values)}

    def begin(self, replayed: Replayed, start: State) -> tuple[State, Tensor]:
        """Return the states where imagination begins, and which of these N are no ends, [N]."""
        return start, replayed.cont.flatten()

    def _reward(self, imagined: Imagined) -> Tensor:
        """Return the actor's rewards [H, N]: those predicted of the states it leaves."""
        return self.model.reward(imagined.features[:-1])

    def _td_error(self, replayed: Replayed, outputs: ActorCriticOutputs, values: Tensor) -> Tensor:
        """Return the temporal-difference error [T, B] on arriving at each step; see `td_errors`.

        `values` [T, B] are those of the critic after its update. The published error, "predicted",
        has the discount of the step that is left, so it takes no notice of ends.
        """
        discounts = self.config.discount * replayed.cont
        match self.config.td:
            case "predicted":
                rewards = outputs.rewards[0]
                discounts = torch.full_like(values, self.config.discount)
            case "imagined":
                rewards = outputs.rewards[1]
            case "replayed":
                rewards = replayed.reward[1:]
        # Imagination begins at all steps of a window, or at all but the last.
        rewards = rewards.view(-1, values.shape[1])[: len(values) - 1]
        return td_errors(rewards, discounts, values, replayed.is_first)


class V2Model(WorldModel):
    """Predicts what is seen, rewards and, if asked to, ends."""

    def __init__(self, config: DreamerV2Config, spaces: Spaces, *, decode: bool = True) -> None:
        super().__init__()
        self.config = config
        size, style = config.widths, style_of(config.widths)
        latent: Latent = Gaussian(size.latents)
        if size.classes:
            latent = Categorical(size.latents, size.classes, unimix=0.0)
        features = size.deter + latent.size
        self.head_shape = (size.layers, size.units, style)
        embedding = self.make_observers(
            spaces, features, size.depth, size.layers, size.units, style,
            valid=True, decode=decode,
        )  # fmt: skip
        self.rssm = Rssm(
            embedding,
            spaces.actions,
            size.deter,
            size.hidden,
            latent,
            style,
            learned_start=False,
        )
        shape = (features, size.layers, size.units, 1, style)
        self.reward_head = mlp(*shape)
        self.discount_head = mlp(*shape) if config.discount_head else None

    def likelihood_losses(self, replayed: Replayed, belief: Belief) -> dict[str, Tensor]:
        """Return the losses by name: how badly the states explain what was seen.

        They are in nats, [T, B] each.
        """
        features = belief.states.feature
        losses = {}
        if replayed.image is not None and self.decoder is not None:
            losses["image"] = normal_loss(self.picture(features), replayed.image, axes=3)
        if replayed.vector is not None and self.vector_decoder is not None:
            losses["vector"] = normal_loss(self.vector_decoder(features), replayed.vector, axes=1)
        if self.config.grad_heads == "observed":
            features = features.detach()
        losses["reward"] = normal_loss(
            self.reward_head(features), replayed.reward.unsqueeze(-1), axes=1
        )
        if self.discount_head is not None:
            # The target is soft: what the head predicts is the discount itself.
            losses["discount"] = binary_loss(
                self.discount_head(features)[..., 0], self.config.discount * replayed.cont
            )
        return losses

    def kl_loss(self, belief: Belief) -> tuple[Tensor, Tensor]:
        """Return the KL divergence of posterior and prior, [T, B], and what it costs, a scalar.

        The larger part of the cost moves the prior, the rest the posterior; neither does while
        the mean over the batch is below the free nats.
        """
        config, kl = self.config, self.latent.kl
        dynamics = kl(belief.posterior.detach(), belief.prior)
        representation = kl(belief.posterior, belief.prior.detach())
        means = (together().mean(each.mean()) for each in (dynamics, representation))
        prior, posterior = (mean.clamp(min=config.free_nats) for mean in means)
        cost = config.kl_balance * prior + (1 - config.kl_balance) * posterior
        return dynamics.detach(), config.kl_scale * cost

    def reward(self, features: Features) -> Tensor:
        """Return the predicted reward [...] of features [..., F]."""
        return to_float32(self.reward_head(features)[..., 0])

    def discounts(self, features: Features) -> Tensor:
        """Return the discounts [...] of the value of the state after features [..., F]."""
        if self.discount_head is None:
            return self.rssm.inputs.weight.new_full(features.shape[:-1], self.config.discount)
        return torch.sigmoid(to_float32(self.discount_head(features)[..., 0]))


class ActorCritic(Behaviour):
    """An actor and a critic that learn from what they imagine."""

    continuous: type[ContinuousPolicy] = TruncatedPolicy

    def __init__(self, config: DreamerV2Config, spaces: Spaces, features: int) -> None:
        super().__init__(config.imagination)
        self.config = config
        size = config.widths
        shape, style = (features, size.layers, size.units), style_of(size)
        self.actor = Actor(
            *shape, spaces.actions, style,
            discrete=spaces.discrete, unimix=0.0, continuous=self.continuous,
        )  # fmt: skip
        self.critic = mlp(*shape, 1, style)
        self.target_critic = TargetCopy(self.critic, config.target_every)

    def make_optimisers(self, prefix: str = "") -> dict[str, Optimiser]:
        """See `Behaviour.make_optimisers`."""
        self.actor_adam = make_optimiser(self.actor, self.config.actor_lr, self.config)
        self.critic_adam = make_optimiser(self.critic, self.config.critic_lr, self.config)
        return {f"{prefix}actor_adam": self.actor_adam, f"{prefix}critic_adam": self.critic_adam}

    def value(self, features: Tensor) -> Tensor:
        """Return the critic's value [...] of features [..., F]."""
        return to_float32(self.critic(features)[..., 0])

    def learn(
        self,
        model: V2Model,
        start: State,
        cont: Tensor,
        reward: Reward,
        generator: torch.Generator,
        finite: FiniteCheck,
    ) -> ActorCriticOutputs:
        """Imagine from `start` [N, ...] (`cont` [N] says which are no ends), and learn.

        States are 0 to H. Returns and the critic's targets are of states 0 to H - 1.
        """
        imagined = self.imagine(model, start, generator)
        features = imagined.features
        with torch.set_grad_enabled(not self.actor.discrete):
            rewards = reward(imagined)
            discounts = model.discounts(features[:-1])
            if model.discount_head is not None:
                first = self.first_discounts(discounts[0], cont)
                discounts = torch.cat([first.unsqueeze(0), discounts[1:]])
            values = to_float32(self.target_critic(features)[..., 0])
            returns = lambda_returns(rewards, discounts, values, self.config.return_lambda)
        weights = discounted_reach(discounts.detach())

        critic = self.critic(features[:-1].detach())
        gain, baseline = self.credit(returns, values, to_float32(critic[..., 0]).detach())
        count = len(gain)
        policy = self.actor.policy(imagined.outputs[:count])
        if isinstance(policy, OneHotPolicy):
            gain = policy.log_probability(imagined.actions[:count]) * (gain - baseline)
        actor_loss = -(weights[:count] * (gain + self.config.entropy * policy.entropy)).mean()
        finite.check("actor", {"loss": actor_loss})
        actor_norm = finite.step("actor", self.actor_adam, actor_loss)

        loss = normal_loss(critic, returns.detach().unsqueeze(-1), axes=1)
        critic_loss = (weights * loss).mean()
        critic_norm = finite.step("critic", self.critic_adam, critic_loss)
        self.target_critic.follow(self.critic, finite.fine)
        metrics = {
            "actor/loss": actor_loss,
            "actor/gradient": actor_norm,
            "actor/entropy": policy.entropy.mean(),
            "actor/return": returns.mean(),
            "actor/reward": rewards.mean(),
            "critic/loss": critic_loss,
            "critic/gradient": critic_norm,
            "critic/value": critic.mean(),
        }
        return ActorCriticOutputs(
            rewards.detach(), values.detach(), {k: v.detach() for k, v in metrics.items()}
        )

    def first_discounts(self, predicted: Tensor, cont: Tensor) -> Tensor:
        """Return the true discounts [N], as known of the states where imagination begins."""
        return self.config.discount * cont

    def credit(self, returns: Tensor, values: Tensor, critic: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the first actions brought, and what was expected before, [H - 1, N] each.

        An action counts from the state it leads to: the return of that state is its own. What was
        expected is by the target critic, `values` [H + 1, N]; `critic` [H, N] is by the other one.
        """
        return returns[1:], values[:-2]


def style_of(size: Size) -> Style:
    """Return the style of layers in networks of this size."""
    return DREAMER_V2_NORM if size.norm else DREAMER_V2


def make_optimiser(module: nn.Module, lr: float, config: DreamerV2Config) -> Optimiser:
    """Return Adam for `module`, as the settings want it."""
    return Optimiser(
        module,
        lr,
        config.eps,
        config.clip,
        decay=config.decay,
        raw_epsilon=config.adam == "tensorflow",
    )
