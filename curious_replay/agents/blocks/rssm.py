"""The recurrent state-space model: a state with a deterministic and a stochastic part.

One step:   x     = hidden layer of (stochastic part, action)
            deter = GRU(x, deter)
            prior = head of deter                     what the model expects
            post  = head of deter and embedding       what it believes after seeing
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import NORM_EPS, Dense, Style, output_layer
from curious_replay.agents.blocks.latents import Categorical
from curious_replay.agents.blocks.maths import to_float32
from curious_replay.agents.blocks.shortcuts.lookup import OneHotFeatures, look_up
from curious_replay.agents.blocks.shortcuts.shared_weight import SharedWeight


class State(NamedTuple):
    """Where the model thinks it is; any leading axes."""

    deter: Tensor  # [..., deter]
    stoch: Tensor  # [..., latent.size]

    @property
    def feature(self) -> Tensor:
        """What heads and policies see."""
        return torch.cat([self.deter, self.stoch], -1)


class Latent(Protocol):
    """A kind of stochastic state, made from what a head puts out."""

    size: int  # numbers of a value
    outputs: int  # numbers a head must put out

    def noise(self, *shape: int, generator: torch.Generator) -> Tensor:
        """Draw the noise that `sample` needs for states of `shape`."""

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Draw a value [..., size], with gradients into the outputs."""

    def mode(self, outputs: Tensor) -> Tensor:
        """Return the most likely value [..., size]."""

    def mean(self, outputs: Tensor) -> Tensor:
        """Return the mean of what `sample` draws, [..., size]."""

    def kl(self, left: Tensor, right: Tensor) -> Tensor:
        """Return KL(left || right) in nats [...], of outputs [..., outputs]."""


class Rssm(nn.Module):
    """See the module. `learned_start`: the state before the first step is learned, else zeros."""

    def __init__(
        self,
        embedding: int,
        actions: int,
        deter: int,
        units: int,
        latent: Latent,
        style: Style,
        *,
        learned_start: bool,
    ) -> None:
        super().__init__()
        self.deter, self.latent = deter, latent
        self.inputs = Dense(latent.size + actions, units, style)
        self.gru = GruCell(units, deter, style)
        self.prior_hidden = Dense(deter, units, style)
        self.prior_output = output_layer(units, latent.outputs, style)
        self.post_hidden = Dense(deter + embedding, units, style)
        self.post_output = output_layer(units, latent.outputs, style)
        self.first = nn.Parameter(torch.zeros(deter)) if learned_start else None

    def start(self, rows: int) -> State:
        """Return the state before anything was seen, [rows, ...]."""
        if self.first is None:
            zeros = self.inputs.weight.new_zeros
            return State(zeros(rows, self.deter), zeros(rows, self.latent.size))
        deter = torch.tanh(self.first).expand(rows, -1)
        return State(deter, self.latent.mode(self.prior(deter[:1])).expand(rows, -1))

    def prior(self, deter: Tensor) -> Tensor:
        """Return the outputs [..., latent.outputs] of the prior: what the model expects."""
        outputs: Tensor = self.prior_output(self.prior_hidden(deter))
        return outputs

    def imagine(self, state: State, action: Tensor, noise: Tensor | None) -> State:
        """Return the state one step later, without seeing.

        action [N, A], noise [N, ...] of the latent; None: its mode.
        """
        x = self.inputs(torch.cat([state.stoch, bounded(action)], -1))
        deter = self.gru(x, state.deter)
        return State(deter, self._draw(self.prior(deter), noise))

    @torch.no_grad()
    def imagine_quickly(
        self, state: OneHotFeatures, action: Tensor, noise: Tensor
    ) -> OneHotFeatures:
        """Imagine a step as `imagine` does, with `Categorical` latents and without gradients."""
        assert isinstance(self.latent, Categorical)
        weight = self.inputs.weight
        of_stoch, of_action = weight[:, : state.size], weight[:, state.size :]
        product = look_up(state.ones, of_stoch).addmm_(bounded(action), of_action.T)
        deter = self.gru(self.inputs.finish(product), state.deter)
        return OneHotFeatures(deter, self.latent.draw_ones(self.prior(deter), noise), state.size)

    def observe(
        self,
        embedding: Tensor,
        action: Tensor,
        is_first: Tensor,
        noise: Tensor | None,
        state: State | None = None,
        begins: Sequence[bool] | None = None,
    ) -> tuple[State, Tensor]:
        """Follow what was seen, from `state`, and from the start wherever `is_first`.

        embedding [T, B, E], action [T, B, A] that led to each step, is_first bool [T, B],
        noise [T, B, ...] of the latent, None for its mode; `begins` [T] says in which steps
        `is_first` is true anywhere, if the host knows. Returns states [T, B, ...] and what the
        posterior head says, [T, B, latent.outputs].

        Products that need no state are made for all steps before the loop, and gradients of the
        weights after it; the prior of all steps is one call of `prior`, left to the caller.
        """
        steps, rows = is_first.shape
        size, width = self.latent.size, self.deter
        action = bounded(action) * ~is_first.unsqueeze(-1)
        inputs = SharedWeight(
            self.inputs.weight[:, :size], F.linear(action, self.inputs.weight[:, size:])
        )
        gru = SharedWeight(self.gru.weight, self.gru.bias.expand(steps, rows, -1))
        post_hidden = SharedWeight(
            self.post_hidden.weight[:, :width],
            F.linear(embedding, self.post_hidden.weight[:, width:]),
        )
        post_output = SharedWeight(
            self.post_output.weight, self.post_output.bias.expand(steps, rows, -1)
        )
        start = self.start(rows)
        deter, stoch = start if state is None else state
        deters, stochs, posts = [], [], []
        for t in range(steps):
            if begins is None or begins[t]:
                fresh = is_first[t].unsqueeze(-1)
                deter = torch.where(fresh, start.deter, deter)
                stoch = torch.where(fresh, start.stoch, stoch)
            x = self.inputs.finish(inputs(stoch))
            deter = self.gru.gates(gru(torch.cat([deter, x], -1)), deter)
            post = post_output(self.post_hidden.finish(post_hidden(deter)))
            stoch = self._draw(post, None if noise is None else noise[t])
            deters.append(deter)
            stochs.append(stoch)
            posts.append(post)
        return State(torch.stack(deters), torch.stack(stochs)), torch.stack(posts)

    def _draw(self, outputs: Tensor, noise: Tensor | None) -> Tensor:
        return self.latent.mode(outputs) if noise is None else self.latent.sample(outputs, noise)


class GruCell(nn.Module):
    """Gated recurrent unit with a norm over all three gates."""

    def __init__(self, inputs: int, deter: int, style: Style) -> None:
        super().__init__()
        self.weight = nn.Parameter(style.fill_(torch.empty(3 * deter, deter + inputs)))
        zeros = torch.zeros(3 * deter)
        self.bias = nn.Parameter(zeros) if style.bias else nn.Buffer(zeros, persistent=False)
        self.norm = nn.LayerNorm(3 * deter, eps=NORM_EPS)

    def forward(self, x: Tensor, deter: Tensor) -> Tensor:
        """Return the next deter, [N, inputs], [N, deter] -> [N, deter]."""
        return self.gates(F.linear(torch.cat([deter, x], -1), self.weight, self.bias), deter)

    def gates(self, product: Tensor, deter: Tensor) -> Tensor:
        """Return the next deter [N, D], from the product with the weights [N, 3 D]."""
        reset, candidate, update = self.norm(to_float32(product)).chunk(3, -1)
        candidate = torch.tanh(torch.sigmoid(reset) * candidate)
        return torch.lerp(deter, candidate, torch.sigmoid(update - 1))


def bounded(action: Tensor) -> Tensor:
    """Return the actions, those beyond 1 brought back to it, element by element."""
    return action / action.detach().abs().clamp(min=1)
