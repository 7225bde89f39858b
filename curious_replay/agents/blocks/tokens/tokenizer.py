"""Pictures as a few symbols: an autoencoder whose code is a grid of tokens (VQ-VAE).

The encoder halves a picture until 4 x 4 places are left and describes each by a vector; the
nearest vector of a codebook stands for it from then on. 64 pixels shrink 64 > 32 > 16 > 8 > 4.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.convs import SMALLEST, stages_of
from curious_replay.agents.blocks.latents import straight_through
from curious_replay.agents.blocks.maths import exactly, to_float32

PLACES = SMALLEST * SMALLEST  # tokens of a picture
ATTENTIVE = (16, 8)  # resolutions in pixels at which places look at each other
NORM_EPS = 1e-6


class Seen(NamedTuple):
    """What the tokenizer makes of N pictures."""

    picture: Tensor  # [N, H, W, 3], about -1 to 1
    codes: Tensor  # [N, PLACES, E], of the encoder
    quantised: Tensor  # [N, PLACES, E], nearest of the codebook
    tokens: Tensor  # int64 [N, PLACES]


class Tokenizer(nn.Module):
    """Encoder, codebook and decoder. Pictures are [N, H, W, 3] from -1 to 1."""

    def __init__(
        self, pixels: int, channels: int, groups: int, blocks: int, codes: int, code: int
    ) -> None:
        super().__init__()
        sides = [pixels >> stage for stage in range(stages_of(pixels) + 1)]
        shape = (channels, groups)
        self.encoder = nn.Sequential(
            _conv(3, channels),
            *_levels(sides, blocks, _Shrink, *shape),
            *_middle(*shape),
            *_normed_conv(channels, code, groups),
            nn.Conv2d(code, code, 1),
        )
        self.codebook = nn.Parameter(torch.empty(codes, code).uniform_(-1 / codes, 1 / codes))
        self.decoder = nn.Sequential(
            nn.Conv2d(code, code, 1),
            _conv(code, channels),
            *_middle(*shape),
            *_levels(sides[::-1], blocks + 1, _Grow, *shape),
            *_normed_conv(channels, 3, groups),
        )

    def forward(self, picture: Tensor) -> Seen:
        """Look at pictures; gradients pass through the choice of a code to the encoder."""
        codes = self._encode(picture)
        tokens = nearest(codes, self.codebook)
        quantised = self.codebook[tokens]
        rebuilt = self._decode(straight_through(quantised.detach(), codes))
        return Seen(rebuilt, codes, quantised, tokens)

    @torch.no_grad()
    def read(self, picture: Tensor) -> Tensor:
        """Return the tokens int64 [N, PLACES] of pictures."""
        return nearest(self._encode(picture), self.codebook)

    @torch.no_grad()
    def draw(self, tokens: Tensor) -> Tensor:
        """Return the pictures [N, H, W, 3], within -1 and 1, of tokens int64 [N, PLACES]."""
        return self._decode(self.codebook[tokens]).clamp(-1, 1)

    def _encode(self, picture: Tensor) -> Tensor:
        codes: Tensor = self.encoder(picture.permute(0, 3, 1, 2))
        return to_float32(codes).flatten(2).transpose(1, 2)

    def _decode(self, codes: Tensor) -> Tensor:
        grid = codes.transpose(1, 2).reshape(len(codes), -1, SMALLEST, SMALLEST)
        picture: Tensor = self.decoder(grid)
        return to_float32(picture).permute(0, 2, 3, 1)


def nearest(codes: Tensor, codebook: Tensor) -> Tensor:
    """Return which of `codebook` [K, E] is nearest to each of `codes` [..., E]: int64 [...]."""
    # The square of a code itself is the same for all of the codebook.
    with exactly(codes):  # codes that are near to each other would be mistaken
        distances = codebook.square().sum(-1) - 2 * codes @ codebook.T
    return distances.argmin(-1)


def codebook_losses(codes: Tensor, quantised: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean squares that draw the codebook to the encoder's codes, and vice versa."""
    return (codes.detach() - quantised).square().mean(), (
        codes - quantised.detach()
    ).square().mean()


class _Norm(nn.GroupNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(to_float32(x)).to(x.dtype)


class _Residual(nn.Module):
    """Two convolutions beside a way past them."""

    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        shape = (channels, channels, groups)
        self.layers = nn.Sequential(*_normed_conv(*shape), *_normed_conv(*shape))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y


class _Attention(nn.Module):
    """All places look at each other, beside a way past that."""

    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.norm = _Norm(groups, channels, eps=NORM_EPS)
        self.look = nn.Conv2d(channels, 3 * channels, 1)
        self.output = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        places = self.look(self.norm(x)).flatten(2).transpose(1, 2)
        query, key, value = places.unsqueeze(1).chunk(3, -1)  # one head: [N, 1, places, channels]
        found = F.scaled_dot_product_attention(query, key, value)
        y: Tensor = self.output(found.squeeze(1).transpose(1, 2).reshape(x.shape))
        return x + y


class _Shrink(nn.Module):
    """Half as many pixels per side; the border is padded on the right and below only."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(F.pad(x, (0, 1, 0, 1)))
        return y


class _Grow(nn.Module):
    """Twice as many."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = _conv(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return y


def _conv(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1)


def _levels(
    sides: list[int], blocks: int, between: type[_Shrink | _Grow], channels: int, groups: int
) -> list[nn.Module]:
    """Return residual blocks at each resolution, and what leads from one to the next."""
    layers: list[nn.Module] = []
    for index, side in enumerate(sides):
        if index:
            layers.append(between(channels))
        for _ in range(blocks):
            layers.append(_Residual(channels, groups))
            if side in ATTENTIVE:
                layers.append(_Attention(channels, groups))
    return layers


def _middle(channels: int, groups: int) -> list[nn.Module]:
    shape = (channels, groups)
    return [_Residual(*shape), _Attention(*shape), _Residual(*shape)]


def _normed_conv(inputs: int, outputs: int, groups: int) -> list[nn.Module]:
    """Return a norm over groups of channels, a swish and a convolution."""
    return [_Norm(groups, inputs, eps=NORM_EPS), nn.SiLU(), _conv(inputs, outputs)]
