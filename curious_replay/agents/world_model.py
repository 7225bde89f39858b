"""World models of Dreamers: what they are told, what they believe, and the networks in between.

Tensors are time first: T replayed steps of B windows.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from curious_replay.agents.blocks.convs import Decoder, Encoder
from curious_replay.agents.blocks.dense import Style, hidden_layers, mlp
from curious_replay.agents.blocks.rssm import Latent, Rssm, State
from curious_replay.agents.spaces import Spaces


class Replayed(NamedTuple):
    """A batch on its device, time first."""

    image: Tensor | None  # [T, B, H, W, 3], -0.5 to 0.5
    vector: Tensor | None  # [T, B, V], as `scale_vector` makes them
    previous_action: Tensor  # [T, B, A], the one that led here
    reward: Tensor  # [T, B]
    is_first: Tensor  # bool [T, B]
    cont: Tensor  # [T, B]: 1 - is_terminal
    begins: list[bool] | None  # [T]: whether any row is_first, if the host decides by it


class Belief(NamedTuple):
    """What the world model makes of a batch."""

    states: State  # [T, B, ...], drawn from the posterior
    prior: Tensor  # [T, B, ...], outputs of the head that has not seen the step
    posterior: Tensor  # [T, B, ...], outputs of the head that has
    embedding: Tensor  # [T, B, E], of what was seen


class WorldModel(nn.Module):
    """Encoders, recurrent core and decoders; subclasses make them and add their heads and losses.

    What is not observed has neither encoder nor decoder.
    """

    rssm: Rssm
    head_shape: tuple[int, int, Style]
    """Hidden layers of a head, their width, and how they look."""
    embedding: int
    """Numbers that describe what is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder: nn.Module | None = None
        self.decoder: nn.Module | None = None
        self.vector_encoder: nn.Module | None = None
        self.vector_decoder: nn.Module | None = None

    def make_observers(
        self,
        spaces: Spaces,
        features: int,
        depth: int,
        vector_layers: int,
        vector_units: int,
        style: Style,
        *,
        valid: bool = False,
        decode: bool = True,
    ) -> int:
        """Make encoders and, where wanted, decoders of what is observed; returns `embedding`."""
        self.embedding = 0
        if spaces.image is not None:
            pixels = spaces.image[0]
            self.encoder = Encoder(pixels, depth, style, valid=valid)
            if decode:
                self.decoder = Decoder(features, pixels, depth, style, valid=valid)
            self.embedding += self.encoder.size
        if spaces.vector:
            hidden = (vector_layers, vector_units)
            self.vector_encoder = hidden_layers(spaces.vector, *hidden, style)
            if decode:
                self.vector_decoder = mlp(features, *hidden, spaces.vector, style)
            self.embedding += vector_units
        return self.embedding

    @property
    def latent(self) -> Latent:
        """The stochastic part of the state."""
        return self.rssm.latent

    @property
    def features(self) -> int:
        """Numbers that describe a state."""
        return self.rssm.deter + self.latent.size

    def embed(self, image: Tensor | None, vector: Tensor | None) -> Tensor:
        """Embed what is seen as one vector: [..., H, W, 3] and / or [..., V] -> [..., E]."""
        return embed(image, vector, self.encoder, self.vector_encoder)

    def believe(self, replayed: Replayed, noise: Tensor | None) -> Belief:
        """Follow the batch; `noise` [T, B, ...] is that of the latent."""
        return self.follow(replayed, self.embed(replayed.image, replayed.vector), noise)

    def follow(self, replayed: Replayed, embedding: Tensor, noise: Tensor | None) -> Belief:
        """Follow the batch, of which what was seen has this `embedding` [T, B, E]."""
        states, posterior = self.rssm.observe(
            embedding,
            replayed.previous_action,
            replayed.is_first,
            noise,
            begins=replayed.begins,
        )
        return Belief(states, self.rssm.prior(states.deter), posterior, embedding)

    def picture(self, features: Tensor) -> Tensor:
        """Return the predicted image [..., H, W, 3], -0.5 to 0.5, of features [..., F]."""
        if self.decoder is None:
            raise ValueError("this world model was made without a decoder of images")
        pictures: Tensor = self.decoder(features.flatten(0, -2))
        return pictures.reshape(*features.shape[:-1], *pictures.shape[1:])


def embed(
    image: Tensor | None,
    vector: Tensor | None,
    encoder: nn.Module | None,
    vector_encoder: nn.Module | None,
) -> Tensor:
    """Embed what is seen as one vector: [..., H, W, 3] and / or [..., V] -> [..., E]."""
    parts = []
    if image is not None and encoder is not None:
        flat = encoder(image.flatten(0, -4))
        parts.append(flat.reshape(*image.shape[:-3], -1))
    if vector is not None and vector_encoder is not None:
        parts.append(vector_encoder(vector))
    return torch.cat(parts, -1)
