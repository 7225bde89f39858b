"""DreamerPro: a DreamerV2 that predicts to which prototypes an image belongs, not its pixels.

Each window is seen twice, moved by a few pixels in different directions. A slow copy of the
encoder, the teacher, sorts the images of each view evenly to prototypes. Two predictions are to
agree with it: that of the encoder, from the other view of the same image, and that of the recurrent
state.

Actor and critic are those of an earlier DreamerV2 and see both views. Tensors are time first: T
replayed steps of B windows in each view, which are rows 0 to B - 1 and B to 2 B - 1.
"""

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.actor import ContinuousPolicy, SquashedPolicy
from curious_replay.agents.blocks.dense import output_layer
from curious_replay.agents.blocks.maths import to_float32
from curious_replay.agents.blocks.prototypes import Prototypes, assign, cross_entropy
from curious_replay.agents.blocks.rssm import State
from curious_replay.agents.blocks.shifts import translate
from curious_replay.agents.blocks.slow_copy import SlowCopy
from curious_replay.agents.configs.dreamer_pro import DreamerProConfig
from curious_replay.agents.dreamer import WorldModelOutputs
from curious_replay.agents.dreamer_v2 import ActorCritic, DreamerV2, V2Model, style_of
from curious_replay.agents.feedback import FiniteCheck, UpdateReport
from curious_replay.agents.interface import Arrays
from curious_replay.agents.spaces import Spaces
from curious_replay.agents.together import together
from curious_replay.agents.updates import Fields
from curious_replay.agents.world_model import Replayed, embed
from curious_replay.errors import UsageError

WARM_UP = 1  # steps of a window whose state knows too little to be compared with prototypes


class DreamerPro(DreamerV2):
    """A world model that is taught by a slow copy of its encoder, and an actor and a critic."""

    config: DreamerProConfig
    model: "ProModel"

    def __init__(
        self, config: DreamerProConfig, spaces: Spaces, seed: int, device: str = "cpu"
    ) -> None:
        if spaces.image is None:
            raise UsageError(
                "DreamerPro learns from images that are moved a little, and there are none to "
                "see: choose dreamerv2 or dreamerv3"
            )
        super().__init__(config, spaces, seed, device)
        self.teacher = Teacher(self.model, config.teacher_fraction).to(self.device)

    def make_model(self) -> "ProModel":
        """See `DreamerV2.make_model`."""
        return ProModel(self.config, self.spaces)

    def make_behaviour(self) -> "ProActorCritic":
        """See `Dreamer.make_behaviour`."""
        return ProActorCritic(self.config, self.spaces, self.model.features)

    def learn(self, batch: Fields, unread: Collection[str], known: Arrays | None) -> UpdateReport:
        """Train everything on two views of the batch; signals are the mean over both."""
        self.finite = FiniteCheck(self.device)
        views = self.two_views(self.load(batch, known))
        learned = self.train_world_model(views)
        outputs, td = self.train_actor_critic(views, learned.start, unread=unread)
        signals = {
            name: torch.stack(signal.chunk(2, 1)).mean(0)
            for name, signal in {**learned.signals, **td}.items()
        }
        return self.finite.report(signals, {**learned.metrics, **outputs.metrics})

    def two_views(self, replayed: Replayed) -> Replayed:
        """Return the batch twice, [T, 2 B, ...], each of its windows moved by some pixels."""
        twice: dict[str, Any] = {
            name: torch.cat([part, part], 1)
            for name, part in replayed._asdict().items()
            if isinstance(part, Tensor)
        }
        rows = twice["reward"].shape[1]
        places = together().draw(torch.rand, rows, size=2, generator=self.generator)
        pixels = (2 * places - 1) * self.config.shift
        return replayed._replace(**{**twice, "image": translate(twice["image"], pixels)})

    def train_world_model(self, replayed: Replayed) -> WorldModelOutputs:
        """Reduce the loss of the world model: prototypes, rewards, ends, and the KL."""
        config, model = self.config, self.model
        noise = model.latent.noise(*replayed.reward.shape, generator=self.generator)
        with self.autocast():
            embedding = model.embed(replayed.image, replayed.vector)
            belief = model.follow(replayed, embedding, noise)
            heads = model.likelihood_losses(replayed, belief)
            kl, kl_loss = model.kl_loss(belief)
            of_teacher = self.teacher.embed(replayed.image, replayed.vector)
        # Scores are divided by small numbers: half precision would not do.
        taught = self.teacher.project(to_float32(of_teacher))
        seen = model.project_seen(to_float32(embedding))
        felt = model.project_felt(belief.states.feature)
        swav, temporal = self.prototype_losses(seen, felt, taught)
        norm = config.norm_scale * (off_unit_length(seen) + off_unit_length(felt))
        heads["reward"] = config.reward_scale * heads["reward"]

        everywhere = torch.stack([norm, *heads.values()]).sum(0)
        loss = swav.mean() + temporal.mean() + everywhere.mean() + kl_loss
        terms = {"swav": swav, "temporal": temporal, "norm": norm, **heads, "kl": kl}
        # What the first steps of a window cost is not known in full.
        likelihood = everywhere + F.pad(swav + temporal, (0, 0, WARM_UP, 0), value=torch.nan)
        signals = {"model": likelihood + config.kl_scale * kl, "likelihood": likelihood, "kl": kl}
        learned = self.fit(belief, terms, signals, loss)
        model.prototypes.settle(self.finite.fine)
        self.teacher.follow(model, self.finite.fine)
        return learned

    def prototype_losses(self, seen: Tensor, felt: Tensor, taught: Tensor) -> tuple[Tensor, Tensor]:
        """Return how badly what is seen, and what the state is, predict the teacher's prototypes.

        All are points [T, 2 B, P]; losses are [T - WARM_UP, 2 B], in nats. What is seen in a view
        is to predict the targets of the other one, the state those of its own.
        """
        prototypes, temperature = self.model.prototypes, self.config.temperature
        seen, felt, taught = (prototypes(points[WARM_UP:]) for points in (seen, felt, taught))
        targets = torch.cat([self._targets(view) for view in taught.chunk(2, 1)], 1)
        of_other_view = torch.cat(targets.chunk(2, 1)[::-1], 1)
        swav = cross_entropy(of_other_view, seen, temperature)
        return swav, cross_entropy(targets, felt, temperature)

    def _targets(self, scores: Tensor) -> Tensor:
        """Return the shares of the images of a view in all prototypes, [T, B, K]."""
        every = together().gather(scores, 1)
        shares = assign(every.flatten(0, 1), self.config.sinkhorn_eps)
        return together().part(shares.view_as(every), 1)

    def begin(self, replayed: Replayed, start: State) -> tuple[State, Tensor]:
        """Return the states where imagination begins, and which of these N are no ends, [N].

        If ends are predicted, it does not begin at the last step of a window.
        """
        cont = replayed.cont.flatten()
        if self.model.discount_head is None:
            return start, cont
        last = replayed.reward.shape[1]
        return State(*(part[:-last] for part in start)), cont[:-last]


class ProModel(V2Model):
    """Predicts prototypes, rewards and, if asked to, ends."""

    def __init__(self, config: DreamerProConfig, spaces: Spaces) -> None:
        super().__init__(config, spaces, decode=False)
        style = style_of(config.widths)
        self.prototypes = Prototypes(
            config.prototypes, config.prototype_size, config.frozen_updates
        )
        self.project_seen = output_layer(self.embedding, config.prototype_size, style)
        self.project_felt = output_layer(self.features, config.prototype_size, style)

    def seeing(self) -> dict[str, nn.Module]:
        """Return the networks that make points of what is seen, by name."""
        names = ("encoder", "vector_encoder", "project_seen")
        networks = {name: getattr(self, name) for name in names}
        return {name: network for name, network in networks.items() if network is not None}


class Teacher(nn.Module):
    """Slow copies of all that makes points of what is seen."""

    def __init__(self, model: ProModel, fraction: float) -> None:
        super().__init__()
        self.copies = nn.ModuleDict(
            {
                name: SlowCopy(network, fraction, fresh=False)
                for name, network in model.seeing().items()
            }
        )

    @torch.no_grad()
    def embed(self, image: Tensor | None, vector: Tensor | None) -> Tensor:
        """Embed what is seen as one vector [..., E], as `WorldModel.embed` does."""
        copies = dict(self.copies.items())
        return embed(image, vector, copies["encoder"], copies.get("vector_encoder"))

    @torch.no_grad()
    def project(self, embedding: Tensor) -> Tensor:
        """Return the points [..., P] of what was embedded, [..., E]."""
        points: Tensor = self.copies["project_seen"](embedding)
        return points

    def follow(self, model: ProModel, fine: Tensor) -> None:
        """Move a little towards the networks of `model`, if all is `fine`."""
        for name, network in model.seeing().items():
            copy = self.copies[name]
            assert isinstance(copy, SlowCopy)
            copy.follow(network, fine)


class ProActorCritic(ActorCritic):
    """Takes the return of the state where an action is chosen for what the action brought."""

    continuous: type[ContinuousPolicy] = SquashedPolicy

    def first_discounts(self, predicted: Tensor, cont: Tensor) -> Tensor:
        """Return the discounts that the head predicts, but 0 at ends: nothing is gained after."""
        return predicted * cont

    def credit(self, returns: Tensor, values: Tensor, critic: Tensor) -> tuple[Tensor, Tensor]:
        """See `ActorCritic.credit`; what was expected is by the critic that learns."""
        return returns, critic


def off_unit_length(points: Tensor) -> Tensor:
    """Return the square of how far the lengths of points [..., P] are from 1, [...]."""
    lengths: Tensor = torch.linalg.vector_norm(points, dim=-1)
    return (lengths - 1).square()
