"""What agents hand to the host after an update, and what they refuse to hand on.

A host that reads a number waits until the device has made it, and the device then waits for what
the host tells it next. So nothing is read before the end of an update, and all of it at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from curious_replay.agents.blocks.maths import is_finite
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.interface import Feedback, NonFiniteError
from curious_replay.agents.together import together


@dataclass(frozen=True)
class UpdateReport:
    """What an update has to say, in one row of numbers that is still on the device."""

    numbers: Tensor
    """float32: a flag for each term, 1 where it is finite, then metrics, then signals."""
    terms: list[str]
    metrics: list[str]
    signals: dict[str, torch.Size]
    """Shapes [T, B]."""

    def read(self) -> Feedback:
        """Bring everything to the host in one copy: signals [B, T], and metrics as numbers.

        Raises `NonFiniteError` with the first of the terms that were not finite.
        """
        counts = [len(self.terms), len(self.metrics), *(s.numel() for s in self.signals.values())]
        flags, values, *rows = np.split(to_numpy(self.numbers), np.cumsum(counts)[:-1])
        if not flags.all():
            raise NonFiniteError(self.terms[flags.argmin()])
        return Feedback(
            {
                name: row.reshape(shape).T
                for (name, shape), row in zip(self.signals.items(), rows, strict=True)
            },
            dict(zip(self.metrics, values.tolist(), strict=True)),
        )


class FiniteCheck:
    """Whether the numbers of one update are finite: judged on the device, told at the end.

    What is not finite changes nothing, and neither does what comes after it in the update.
    """

    def __init__(self, device: torch.device) -> None:
        self.fine = torch.ones((), dtype=torch.bool, device=device)
        """bool, a scalar on the device: whether everything was finite so far."""
        self._names: list[str] = []
        self._flags: list[Tensor] = []
        self._scales: dict[str, Tensor] = {}  # of float16
        self._prefix = ""

    def check(self, where: str, terms: Mapping[str, Tensor]) -> None:
        """Judge terms of any shape."""
        sums = torch.stack([term.detach().sum() for term in terms.values()])
        self._note(where, terms, is_finite(together().mean(sums)))

    def step(
        self, where: str, optimiser: Optimiser, loss: Tensor, *, keep_graph: bool = False
    ) -> Tensor:
        """Reduce `loss`, a scalar, if all is fine; returns the norm of its gradient.

        One that is not finite is excused while a smaller loss scale may help: then only this step
        is left out.
        """
        scale = optimiser.loss_scale
        excused = None if scale is None else scale.excuses()
        norm = optimiser.step(loss, self.fine, keep_graph=keep_graph)
        finite = is_finite(norm)
        if scale is not None and excused is not None:
            self._scales[f"{self._prefix}{where}/loss_scale"] = scale.factor
            finite = finite | excused
        self._note(where, ["gradient"], finite.view(1))
        return norm

    def _note(self, where: str, names: Iterable[str], flags: Tensor) -> None:
        """Note whether what each name stands for is finite, bool [n]."""
        self._names += [f"{self._prefix}{where}/{name}" for name in names]
        self._flags.append(flags)
        self.fine = self.fine & flags.all()

    @contextmanager
    def named(self, prefix: str) -> Iterator[None]:
        """Put a prefix before the names of what is judged within."""
        self._prefix = prefix
        yield
        self._prefix = ""

    def report(self, signals: Mapping[str, Tensor], metrics: Mapping[str, Tensor]) -> UpdateReport:
        """Put signals [T, B], metrics, and what was judged into one row.

        They are those of all windows, whichever process has learned from them.
        """
        metrics, others = {**metrics, **self._scales}, together()
        signals = {name: others.gather(signal, 1) for name, signal in signals.items()}
        values = others.mean(torch.stack([*metrics.values()]))
        rows = [torch.cat(self._flags), values, *signals.values()]
        return UpdateReport(
            torch.cat([row.detach().float().flatten() for row in rows]),
            self._names,
            [*metrics],
            {name: signal.shape for name, signal in signals.items()},
        )


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Copy to the host as float32, in the same shape."""
    return tensor.detach().float().cpu().numpy()
