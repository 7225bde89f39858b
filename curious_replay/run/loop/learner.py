"""Updates of the agent from replay, and what becomes of those that fail.

The next batch is drawn while the agent learns from the present one. The draw is always complete
before the feedback of the present batch changes priorities, so the course of events does not
depend on which of the two is faster (`Prefetch`). The batch that is next is part of a checkpoint.
Where the agent learns on a graphics card, it is copied there under the present update (`send`).
"""

import io
import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from curious_replay.agents.interface import Agent, Arrays, NonFiniteError, Stream
from curious_replay.durable import write_bytes
from curious_replay.replay import Batch, Prefetch, ReplayBuffer
from curious_replay.run.loop.crew import Crew

Array = np.ndarray


class TrainingFailedError(RuntimeError):
    """Training cannot go on; the message says why and where the evidence is."""


class Averages:
    """Means of named numbers since they were last taken, without those that are not finite.

    These are counted: `nonfinite_values` says how many there were, if any.
    """

    def __init__(self) -> None:
        self.nonfinite = 0
        self.sums: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    def add(self, values: Mapping[str, float]) -> None:
        """Add one value of each."""
        for name, value in values.items():
            if math.isfinite(value):
                self.sums[name] = self.sums.get(name, 0.0) + float(value)
                self.counts[name] = self.counts.get(name, 0) + 1
            else:
                self.nonfinite += 1

    def take(self) -> dict[str, float]:
        """Return the means and begin anew."""
        means = self.means()
        if self.nonfinite:
            means["nonfinite_values"] = self.nonfinite
        self.sums, self.counts, self.nonfinite = {}, {}, 0
        return means

    def means(self) -> dict[str, float]:
        """Return the means so far."""
        return {name: total / self.counts[name] for name, total in self.sums.items()}

    def get_state(self) -> dict[str, Any]:
        """Return sums and counts."""
        counts = {"counts": dict(self.counts), "nonfinite": self.nonfinite}
        return {"sums": dict(self.sums), **counts}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from `get_state()`."""
        self.sums, self.counts = dict(state["sums"]), dict(state["counts"])
        self.nonfinite = state.get("nonfinite", 0)  # older checkpoints do not tell


class Drawn(NamedTuple):
    """A batch of replay, and the same for the agent, perhaps on its way to the device."""

    batch: Batch
    sent: Arrays


class Learner:
    """Trains `agent` from `replay`, one batch ahead.

    Signals that are `unread` the agent may leave out where they cost.
    """

    def __init__(
        self,
        agent: Agent,
        replay: ReplayBuffer,
        batch_size: int,
        batch_length: int,
        *,
        skip_nonfinite: bool,
        nonfinite_limit: int,
        folder: Path,
        replayed: Callable[[Array], None],
        crew: Crew | None = None,
        unread: Collection[str] = (),
    ) -> None:
        self.replayed = replayed
        """Is told the ids [B, T] of each batch that was learned from."""
        self.agent, self.replay, self.unread = agent, replay, unread
        self.crew = crew or Crew()
        self.batch = Stream(batch_size, batch_length)
        self.skip_nonfinite, self.nonfinite_limit = skip_nonfinite, nonfinite_limit
        self.folder = folder
        self.averages = Averages()
        self.updates = 0
        self.skipped = 0
        self.batches = Prefetch(self._draw, replay.lock, self._send)
        self._skipped_in_a_row = 0
        self._failed: Batch | None = None  # its update had no memory, and is to be made again

    def update(self) -> None:
        """Make one gradient update and tell replay about it.

        Where memory is used up, the batch is kept for who goes on.
        """
        if self._failed is None:
            batch, sent = next(self.batches)
        else:
            batch, sent = self._send(self._failed)
            self._failed = None
        try:
            feedback = self.crew.update(self.agent, sent, self.unread)
        except torch.OutOfMemoryError:
            self._failed = batch
            raise
        except NonFiniteError as error:
            feedback = None
            self._fail(batch, error)
        if feedback is not None:
            if feedback.signals:
                self.replay.update(batch.ids, feedback.signals)
                self.replayed(batch.ids)
            self.averages.add({**feedback.metrics, "replay/distinct": batch.distinct})
            self.updates += 1
            self._skipped_in_a_row = 0

    def close(self) -> None:
        """End the thread."""
        self.batches.close()

    def get_state(self) -> dict[str, Any]:
        """Return counters, averages, the batch that is next, and one that has failed before it."""
        return {
            "averages": self.averages.get_state(),
            "updates": self.updates,
            "skipped": self.skipped,
            "skipped_in_a_row": self._skipped_in_a_row,
            "next": _state_of(self.next_batch),
            "failed": _state_of(self._failed),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from `get_state()`."""
        self.averages.set_state(state["averages"])
        self.updates, self.skipped = state["updates"], state["skipped"]
        self._skipped_in_a_row = state["skipped_in_a_row"]
        batch, failed = state["next"], state.get("failed")  # which older checkpoints do not have
        self.batches.ahead = None if batch is None else self._send(Batch(**batch))
        self._failed = None if failed is None else Batch(**failed)

    @property
    def next_batch(self) -> Batch | None:
        """The batch that comes next, as it is on the host; None if it is yet to be drawn."""
        ahead = self.batches.ahead
        return None if ahead is None else ahead.batch

    def forget_next_batch(self) -> None:
        """Draw the next batch when it is its turn, from what is stored then."""
        self.batches.ahead = self._failed = None

    def _draw(self) -> Batch:
        """Draw a batch, with the windows of the agent's other streams.

        `ids` are those of the batch.
        """
        batch = self.replay.sample(self.batch.windows, self.batch.length)
        for name, stream in self.agent.streams.items():
            more = self.replay.sample(stream.windows, stream.length)
            batch |= {f"{name}/{field}": array for field, array in more.items()}
        return batch

    def _send(self, batch: Batch) -> Drawn:
        return Drawn(batch, self.crew.send(self.agent, batch))

    def _fail(self, batch: Batch, error: NonFiniteError) -> None:
        """Count a skipped update, or stop with the batch saved."""
        self.skipped += 1
        self._skipped_in_a_row += 1
        if self.skip_nonfinite and self._skipped_in_a_row <= self.nonfinite_limit:
            return
        path = self.folder / f"nonfinite-update-{self.updates}.npz"
        arrays = {name.replace("/", "-"): array for name, array in batch.items()}
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, **arrays, ids=batch.ids)
        write_bytes(path, content.getvalue())
        advice = (
            f"{self._skipped_in_a_row} updates in a row failed (--train.nonfinite-limit "
            f"{self.nonfinite_limit})"
            if self.skip_nonfinite
            else "resume with --train.nonfinite skip to pass over such batches"
        )
        raise TrainingFailedError(
            f"update {self.updates}: {error.term} is not finite. The batch is in {path}; {advice}"
        ) from error


def _state_of(batch: Batch | None) -> dict[str, Any] | None:
    """Return what a batch is made of."""
    if batch is None:
        return None
    return {
        "fields": dict(batch),
        "ids": batch.ids,
        "probabilities": batch.probabilities,
        "distinct": batch.distinct,
    }
