"""The demo's world model: a picture in its mind that actions move and that looking corrects.

The state is a small map of features, [8, 8, channels], so that what is learned of a ball in one
place is known in all others. It learns in hundreds of updates what Dreamers need thousands for;
it draws nothing at random and has no rewards, as this world has neither chance nor rewards.

    move:   map = gate(convolutions of map, action and place)       without looking
    look:   map = gate(convolution of map and encoded picture)
    paint:  picture = transposed convolutions of map

A window is looked at for its first steps and predicted from the actions alone thereafter, in
training as in tests. Tensors are time first.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import DREAMER_V3, Hidden
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.interface import Arrays

MAP = 8
"""Places of the map, per side; pictures are four times as large."""
CHANNELS, DEPTH = 16, 12
"""Of the map, and between it and pictures."""
ACTIONS = 2
CLIP = 100.0
"""Largest norm of a gradient."""
KEEPS = -1.0
"""Bias of the gate of `move`: at first, a map mostly stays as it is."""


class WorldModel(nn.Module):
    """See the module."""

    place: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(Conv(3, DEPTH, 4, 2), Conv(DEPTH, CHANNELS, 4, 2))
        self.move = nn.Sequential(
            Conv(CHANNELS + ACTIONS + 2, 2 * CHANNELS, 3),
            Conv(2 * CHANNELS, 2 * CHANNELS, 3, output=True),
        )
        self.look = Conv(2 * CHANNELS, 2 * CHANNELS, 3, output=True)
        self.paint = nn.Sequential(
            Conv(CHANNELS, DEPTH, 4, 2, up=True), Conv(DEPTH, 3, 4, 2, up=True, output=True)
        )
        line = torch.linspace(-1, 1, MAP)
        self.place = nn.Buffer(torch.stack(torch.meshgrid(line, line, indexing="ij"), -1))

    def forward(self, image: Tensor, previous_action: Tensor, seen: int) -> Tensor:
        """Return pictures [T, B, H, W, 3] as the model has them; it looks at the first `seen`.

        image [T, B, H, W, 3] about 0, previous_action [T, B, 2]: the one that led to each step.
        """
        steps, rows = previous_action.shape[:2]
        looks = self.encode(image[:seen].flatten(0, 1)).reshape(seen, rows, MAP, MAP, CHANNELS)
        place = self.place.expand(rows, -1, -1, -1)
        told = previous_action[:, :, None, None].expand(-1, -1, MAP, MAP, -1)
        state = image.new_zeros(rows, MAP, MAP, CHANNELS)
        states = []
        for t in range(steps):
            state = gate(self.move(torch.cat([state, told[t], place], -1)), state, KEEPS)
            if t < seen:
                state = gate(self.look(torch.cat([state, looks[t]], -1)), state, 0.0)
            states.append(state)
        pictures: Tensor = self.paint(torch.stack(states).flatten(0, 1))
        return pictures.reshape(image.shape)


class Conv(nn.Module):
    """A convolution on [N, H, W, C]; `up` enlarges, `output` has neither norm nor activation."""

    def __init__(
        self, before: int, after: int, side: int, stride: int = 1, *, up: bool = False,
        output: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.stride, self.padding, self.up = stride, (side - 1) // 2, up
        shape = (before, after, side, side) if up else (after, before, side, side)
        weight = DREAMER_V3.fill_(torch.empty(shape))
        self.weight = nn.Parameter(weight.contiguous(memory_format=torch.channels_last))
        self.bias = nn.Parameter(torch.zeros(after)) if output else None
        self.finish = nn.Identity() if output else Hidden(after, DREAMER_V3)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's outputs, [N, H, W, before] -> [N, ..., after]."""
        convolve = F.conv_transpose2d if self.up else F.conv2d
        x = x.permute(0, 3, 1, 2)
        x = convolve(x, self.weight, self.bias, stride=self.stride, padding=self.padding)
        finished: Tensor = self.finish(x.permute(0, 2, 3, 1))
        return finished


def gate(proposed: Tensor, state: Tensor, bias: float) -> Tensor:
    """Move the state [..., C] towards a new one, as far as `proposed` [..., 2 C] says."""
    new, how_far = proposed.chunk(2, -1)
    return torch.lerp(state, torch.tanh(new), torch.sigmoid(how_far + bias))


class ModelTrainer:
    """A world model and its optimiser; a deep copy of it goes on where it is."""

    def __init__(self, seed: int, learning_rate: float, seen: int) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = WorldModel()
        self.optimiser = Optimiser(self.model, learning_rate, 1e-8, CLIP)
        self.seen = seen

    def update(self, batch: Arrays) -> dict[str, np.ndarray]:
        """Learn from windows [B, T, ...]; returns the signal "model": squared errors [B, T]."""
        image, previous_action = _load(batch)
        pictures = self.model(image, previous_action, self.seen)
        loss = (pictures - image).square().flatten(2).sum(-1)
        self.optimiser.step(loss.mean())
        return {"model": loss.detach().T.numpy()}

    @torch.no_grad()
    def dream(self, batch: Arrays) -> np.ndarray:
        """Return windows as the model sees and then predicts them, uint8 [B, T, H, W, 3]."""
        pictures = self.model(*_load(batch), self.seen) + 0.5
        dreamt: np.ndarray = (pictures.clamp(0, 1) * 255).round().byte().transpose(0, 1).numpy()
        return dreamt


def _load(batch: Arrays) -> tuple[Tensor, Tensor]:
    """Return pictures about 0 and previous actions, time first."""
    image, action = (
        torch.from_numpy(np.ascontiguousarray(batch[name].swapaxes(0, 1))).float()
        for name in ("image", "action")
    )
    return image / 255 - 0.5, torch.cat([torch.zeros_like(action[:1]), action[:-1]])
