"""A transformer that looks back only, and a cache of what it has read.

Read all at once, or piece by piece with the cache: what it says is the same.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.maths import product_dtype
from curious_replay.agents.together import together


class Cache:
    """Keys and values of the tokens read so far, with room for `room` of them."""

    def __init__(self, layers: int, rows: int, heads: int, room: int, like: Tensor) -> None:
        width = like.shape[-1] // heads
        self.room = room
        self.size = 0  # tokens read
        shape = (layers, 2, rows, heads, room, width)
        self._kept = like.new_empty(shape, dtype=product_dtype(like))

    def append(self, layer: int, new: Tensor) -> tuple[Tensor, Tensor]:
        """Keep keys and values of new tokens, [2, N, heads, n, width]; returns those of all."""
        end = self.size + new.shape[3]
        if end > self.room:
            raise ValueError(f"{end} tokens do not fit into a cache of {self.room}")
        kept = self._kept[layer]
        kept[..., self.size : end, :] = new
        return kept[0, :, :, :end], kept[1, :, :, :end]

    def clear(self) -> None:
        """Forget all tokens."""
        self.size = 0


class Transformer(nn.Module):
    """Layers of attention and of two dense layers, each after a norm and beside a way past it."""

    def __init__(self, layers: int, heads: int, width: int) -> None:
        super().__init__()
        self.heads = heads
        self.layers = nn.ModuleList(_Layer(heads, width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(
        self,
        x: Tensor,
        look: Tensor | None = None,
        cache: Cache | None = None,
        dropout: float = 0.0,
    ) -> Tensor:
        """Read tokens [N, L, W]; returns as much about each.

        `look`, bool [N, L, L], says which tokens (columns) each one (row) may look at; by default
        all up to itself, those in the `cache` included. Dropout draws from PyTorch's global
        generator: see `seeded`.
        """
        if look is not None:
            look = look.unsqueeze(1)  # the same for all heads
        elif x.shape[1] > 1:  # one token may look at all there are
            look = causal(x.shape[1], 0 if cache is None else cache.size, x.device)
        x = F.dropout(x, dropout, training=dropout > 0)
        for number, layer in enumerate(self.layers):
            x = layer(x, look, cache, number, dropout)
        if cache is not None:
            cache.size += x.shape[1]
        finished: Tensor = self.norm(x)
        return finished

    def make_cache(self, rows: int, room: int) -> Cache:
        """Return an empty cache for `rows` texts of at most `room` tokens."""
        return Cache(len(self.layers), rows, self.heads, room, self.norm.weight.detach())


class _Layer(nn.Module):
    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.attention_output = nn.Linear(width, width)
        self.dense_norm = nn.LayerNorm(width)
        self.dense = nn.Linear(width, 4 * width)
        self.dense_output = nn.Linear(4 * width, width)

    def forward(
        self, x: Tensor, look: Tensor | None, cache: Cache | None, number: int, dropout: float
    ) -> Tensor:
        y = self._attend(self.attention_norm(x), look, cache, number, dropout)
        x = x + self._drop(y, dropout)
        y = self.dense_output(F.gelu(self.dense(self.dense_norm(x))))
        return x + self._drop(y, dropout)

    def _attend(
        self, x: Tensor, look: Tensor | None, cache: Cache | None, number: int, dropout: float
    ) -> Tensor:
        by_head = self.attention(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = by_head  # [N, heads, L, w] each
        if cache is not None:
            key, value = cache.append(number, by_head[1:])
        found = F.scaled_dot_product_attention(query, key, value, look, dropout)
        y: Tensor = self.attention_output(found.transpose(1, 2).flatten(2))
        return y

    @staticmethod
    def _drop(x: Tensor, dropout: float) -> Tensor:
        return F.dropout(x, dropout, training=dropout > 0)


def causal(new: int, read: int, device: torch.device) -> Tensor:
    """Return the causal mask, bool [new, read + new].

    It says whether each of `new` tokens may look at each of `read` + `new`.
    """
    return torch.ones(new, read + new, dtype=torch.bool, device=device).tril(read)


@torch.no_grad()
def initialise(module: nn.Module, std: float) -> None:
    """Draw normal weights for all dense layers and embeddings in `module`, set biases to 0."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=std)
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)


@contextmanager
def seeded(generator: torch.Generator) -> Iterator[None]:
    """Let PyTorch's global generator be one that `generator` decides on, and as before after it.

    It is another one in each of several processes that learn together.
    """
    device, others = generator.device, together()
    if device.type == "cpu":
        seed = int(torch.randint(2**62, (), generator=generator))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed + others.rank)
            yield
        return
    # What is drawn would have to be read from the device; the state of generators is with the host.
    seed = zlib.crc32(generator.get_state().numpy().tobytes())
    torch.rand((), generator=generator, device=device)  # the next state is another one
    with torch.random.fork_rng(devices=[device], device_type=device.type):
        torch.get_device_module(device).manual_seed(seed + others.rank)
        yield
