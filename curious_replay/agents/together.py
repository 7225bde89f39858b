"""Processes that learn from one batch together, each from some of its windows.

Most of what an update computes is about single windows. What is about all of them is asked for
here, and so every process ends up with the same weights, those that one process with the whole
batch would have, to rounding:

    gradients    are averaged (`average`); losses are means, or sums over a count of all (`counted`)
    statistics   of the batch are made from all of it (`mean`, `gather`)
    random numbers  are drawn for the whole batch, by every process from the same generator, and
                 each takes those of its windows (`draw`)

A process that is alone has all windows, and for it nothing of this does anything. `together` says
who learns with this process just now: outside of an update it is alone, whoever else there is.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, distributed


class Together:
    """A process that is alone."""

    ranks = 1
    """How many processes there are."""
    rank = 0
    """Which of them this is."""

    def average(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the means of gradients over all processes."""
        return gradients

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean of numbers, [...], over all processes.

        Its gradient is that of the process's own numbers: gradients are averaged later.
        """
        return x

    def counted(self, count: Tensor) -> Tensor:
        """Return what to divide a sum by, for the mean over processes to be that over a count.

        `count` is a scalar, of what is summed here; if nothing is anywhere, it counts as one.
        """
        return count.clamp(min=1)

    def gather(self, x: Tensor, axis: int) -> Tensor:
        """Return the rows of all processes, along an `axis` in which windows change fastest."""
        return x

    def part(self, x: Tensor, axis: int, windows: int | None = None) -> Tensor:
        """Return this process's rows of all, as `gather` has put them together.

        `windows` of each process, if they are not those of the batch.
        """
        return x

    def draw(
        self,
        kind: Callable[..., Tensor],
        *shape: int,
        size: int,
        generator: torch.Generator,
        windows: int | None = None,
    ) -> Tensor:
        """Draw random numbers [*shape, size] by `kind`; the last axis of `shape` is that of rows.

        See `part` for `windows`.
        """
        return kind(*shape, size, generator=generator, device=generator.device)

    def agree(self, fine: bool) -> bool:
        """Return whether something that the host knows is fine in all processes."""
        return fine


class Several(Together):
    """One of several processes, each with so many `windows` of the batch, in order of their ranks.

    They talk by the process group of torch.distributed, which has to be there.
    """

    def __init__(self, windows: int) -> None:
        self.ranks, self.rank = distributed.get_world_size(), distributed.get_rank()
        self.windows = windows

    def average(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        """See `Together.average`; all of them travel at once."""
        flat = self._sum(torch.cat([each.flatten() for each in gradients])).div_(self.ranks)
        means = torch.split_with_sizes(flat, [each.numel() for each in gradients])
        # Fused Adam takes the memory of all it is given to be in one order, channels-last or not.
        return [
            torch.empty_like(each).copy_(mean.view(each.shape))
            for each, mean in zip(gradients, means, strict=True)
        ]

    def mean(self, x: Tensor) -> Tensor:
        """See `Together.mean`."""
        everywhere = self._sum(x.detach().float().clone()).div_(self.ranks)
        return everywhere + (x - x.detach()) if x.requires_grad else everywhere

    def counted(self, count: Tensor) -> Tensor:
        """See `Together.counted`."""
        return self._sum(count.float().clone()).clamp(min=1) / self.ranks

    def gather(self, x: Tensor, axis: int) -> Tensor:
        """See `Together.gather`; no gradient passes."""
        own = x.detach().contiguous()
        found = [torch.empty_like(own) for _ in range(self.ranks)]
        distributed.all_gather(found, own)
        inner = self._windows(x.shape[axis])
        parts = [torch.unflatten(each, axis, (-1, inner)) for each in found]
        return torch.stack(parts, axis + 1).flatten(axis, axis + 2)

    def part(self, x: Tensor, axis: int, windows: int | None = None) -> Tensor:
        """See `Together.part`."""
        inner = windows or self._windows(x.shape[axis] // self.ranks)
        split = torch.unflatten(x, axis, (-1, self.ranks, inner))
        return split.select(axis + 1, self.rank).flatten(axis, axis + 1).contiguous()

    def draw(
        self,
        kind: Callable[..., Tensor],
        *shape: int,
        size: int,
        generator: torch.Generator,
        windows: int | None = None,
    ) -> Tensor:
        """See `Together.draw`."""
        whole = (*shape[:-1], shape[-1] * self.ranks, size)
        drawn = kind(*whole, generator=generator, device=generator.device)
        return self.part(drawn, len(shape) - 1, windows)

    def agree(self, fine: bool) -> bool:
        """See `Together.agree`."""
        return bool(self._sum(torch.tensor(int(not fine))) == 0)

    def _windows(self, rows: int) -> int:
        """Return how many of `rows` follow one another; some picked ones have no windows."""
        return self.windows if rows % self.windows == 0 else rows

    def _sum(self, x: Tensor) -> Tensor:
        distributed.all_reduce(x)
        return x


_now = Together()


def together() -> Together:
    """Return those that this process learns with just now, for an update to ask."""
    return _now


@contextmanager
def learning(others: Together) -> Iterator[None]:
    """Let the update in here be one of several processes."""
    global _now  # noqa: PLW0603  # as there is one process group, so there is one of these
    before, _now = _now, others
    try:
        yield
    finally:
        _now = before
