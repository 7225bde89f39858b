"""IRIS's world model: a transformer that reads what was seen and done, and tells what comes next.

A step is K tokens of its picture and one of the action that was chosen there. From what came
before, the model predicts each token of a picture, and with the first one the reward received on
arriving there and whether that ended the episode. Of a first step, all tokens but the first.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.latents import draw
from curious_replay.agents.blocks.maths import to_float32
from curious_replay.agents.blocks.tokens.tokenizer import PLACES
from curious_replay.agents.blocks.tokens.transformer import Transformer, initialise
from curious_replay.agents.configs.iris import Size
from curious_replay.agents.together import together

REWARDS, ENDS = 3, 2  # classes: negative, none, positive; goes on, ends
BLOCK = PLACES + 1  # tokens of a step


class Costs(NamedTuple):
    """What it cost to predict each step, in nats, [B, T] each; 0 where nothing was predicted."""

    tokens: Tensor  # summed over the picture
    reward: Tensor
    end: Tensor

    def loss(self, is_first: Tensor) -> Tensor:
        """Return the mean over predicted tokens, plus the mean over predicted rewards and ends."""
        leads = (~is_first).sum()
        tokens = is_first.numel() * (PLACES - 1) + together().mean(leads)
        steps = together().counted(leads)
        return self.tokens.sum() / tokens + (self.reward + self.end).sum() / steps


class DreamStep(NamedTuple):
    """What N dreamed actions lead to."""

    tokens: Tensor  # int64 [N, K], of the next picture
    reward: Tensor  # [N]: -1, 0 or 1
    ends: Tensor  # [N]: 1 where the episode ends, else 0


class TokenModel(nn.Module):
    """Embeddings, transformer and three heads."""

    def __init__(self, size: Size, actions: int, context: int) -> None:
        super().__init__()
        width = size.width
        self.context = context
        self.tokens = nn.Embedding(size.codes, width)
        self.actions = nn.Embedding(actions, width)
        self.positions = nn.Embedding(context * BLOCK, width)
        self.transformer = Transformer(size.layers, size.heads, width)
        self.token_head = _head(width, size.codes)
        self.reward_head = _head(width, REWARDS)
        self.end_head = _head(width, ENDS)
        initialise(self, size.initial)

    @property
    def linear_weights(self) -> set[str]:
        """Names of the parameters that decay."""
        return {
            f"{name}.weight" for name, part in self.named_modules() if isinstance(part, nn.Linear)
        }

    def costs(
        self,
        tokens: Tensor,
        actions: Tensor,
        rewards: Tensor,
        ends: Tensor,
        is_first: Tensor,
        dropout: float = 0.0,
    ) -> Costs:
        """Read windows of T steps and predict each from those before it in the same episode.

        tokens    int64 [B, T, K]
        actions   int64 [B, T]     chosen at each step
        rewards   int64 [B, T]     class of the reward received on arriving
        ends      int64 [B, T]     1 where arriving ended the episode
        is_first  bool [B, T]
        """
        said = self.read(tokens, actions, is_first, dropout)
        # Who predicts a picture: the action before it the first token, each token the next one.
        after_action = said[:, :, -1].roll(1, 1)
        before = torch.cat([after_action.unsqueeze(2), said[:, :, : PLACES - 1]], 2)
        cost = _cross_entropy(self.token_head(before), tokens)
        leads = ~is_first
        first, others = cost[..., 0] * leads, cost[..., 1:].sum(-1)
        return Costs(
            first + others,
            _cross_entropy(self.reward_head(after_action), rewards) * leads,
            _cross_entropy(self.end_head(after_action), ends) * leads,
        )

    def read(
        self, tokens: Tensor, actions: Tensor, is_first: Tensor, dropout: float = 0.0
    ) -> Tensor:
        """Return the transformer's outputs at every token of windows, [B, T, K + 1, W].

        An episode that begins within a window is read as if the window had begun with it.
        """
        rows, steps = actions.shape
        text = torch.cat([self.tokens(tokens), self.actions(actions).unsqueeze(2)], 2)
        episode = is_first.cumsum(1)
        step = torch.arange(steps, device=actions.device).expand_as(actions)
        began = torch.where(is_first, step, 0).cummax(1).values
        within = torch.arange(BLOCK, device=actions.device)
        text = text + self.positions((step - began).unsqueeze(-1) * BLOCK + within)
        of_token = episode.repeat_interleave(BLOCK, 1)
        look = (of_token.unsqueeze(1) == of_token.unsqueeze(2)).tril()
        said: Tensor = self.transformer(text.flatten(1, 2), look, dropout=dropout)
        return said.view(rows, steps, BLOCK, -1)


class Dream:
    """Steps one after another, as the model expects them, from one picture that was seen.

    The model remembers what it has read. When that fills its context, it begins again with the
    present picture.
    """

    def __init__(self, model: TokenModel, tokens: Tensor) -> None:
        self.model = model
        self.tokens = tokens  # int64 [N, K], of the present picture
        self.cache = model.transformer.make_cache(len(tokens), model.context * BLOCK)
        self._unread = tokens  # the last part of them, which the model did not read yet

    @torch.no_grad()
    def step(self, actions: Tensor, noise: Tensor | None) -> DreamStep:
        """Do `actions`, int64 [N]; what follows is drawn by uniform `noise` [N, K + 2].

        Without noise it is the likeliest.
        """
        model, cache = self.model, self.cache
        if cache.size + self._unread.shape[1] + PLACES > cache.room:
            cache.clear()
            self._unread = self.tokens
        chances = [None] * (PLACES + 2) if noise is None else [*noise.T.contiguous()]
        text = torch.cat([model.tokens(self._unread), model.actions(actions).unsqueeze(1)], 1)
        said = self._read(text)
        reward = _choose(model.reward_head(said), chances[0])
        ends = _choose(model.end_head(said), chances[1])
        tokens = [_choose(model.token_head(said), chances[2])]
        for chance in chances[3:]:
            said = self._read(model.tokens(tokens[-1]).unsqueeze(1))
            tokens.append(_choose(model.token_head(said), chance))
        self.tokens = torch.stack(tokens, 1)
        self._unread = self.tokens[:, -1:]
        return DreamStep(self.tokens, (reward - 1).float(), ends.float())

    def _read(self, text: Tensor) -> Tensor:
        """Return the model's output at the last of the new tokens, [N, n, W] -> [N, W]."""
        read = self.cache.size
        text = text + self.model.positions.weight[read : read + text.shape[1]]
        said: Tensor = self.model.transformer(text, cache=self.cache)
        return said[:, -1]


def reward_class(reward: Tensor) -> Tensor:
    """Return 0 for a negative reward, 1 for none, 2 for a positive one, int64 [...]."""
    return torch.sign(reward).long() + 1


def _choose(logits: Tensor, chance: Tensor | None) -> Tensor:
    if chance is None:
        return logits.argmax(-1)
    return draw(F.softmax(to_float32(logits), -1), chance)


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy in nats, [..., C] and int64 [...] -> [...]."""
    flat = F.cross_entropy(to_float32(logits).flatten(0, -2), target.flatten(), reduction="none")
    return flat.view(target.shape)


def _head(width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs))
