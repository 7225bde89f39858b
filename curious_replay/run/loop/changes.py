"""When the world last changed, in stored steps, and how much of what is replayed is newer.

Each environment has a phase at every step. Where its name differs from that of the step before, the
world has changed. The steps of environment e are stored under the ids t · N + e at t = 0, 1, ...
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
NEVER = np.iinfo(np.int64).max


class Changes:
    """The phases of N environments so far, and how much of what is replayed is new."""

    def __init__(self, num_envs: int) -> None:
        self._seen = 0  # steps of each environment
        self._begun: list[list[tuple[int, str]]] = [[] for _ in range(num_envs)]
        self._new = self._replayed = 0

    def see(self, phases: Sequence[str]) -> int:
        """Take the phases [N] of the step that is stored next, of all environments at once.

        Returns the number of the change, from 1, that all environments have now gone through, if
        the last of them did so at this step; else 0.
        """
        before = self.complete
        for begun, phase in zip(self._begun, phases, strict=True):
            if not begun or begun[-1][1] != phase:
                begun.append((self._seen, str(phase)))
        self._seen += 1
        now = self.complete
        return now if now > before else 0

    def replayed(self, ids: Ints) -> None:
        """Count steps that were trained on, ids of any shape."""
        time, env = np.divmod(ids, len(self._begun))
        last = [begun[-1][0] if len(begun) > 1 else NEVER for begun in self._begun]
        self._new += int(np.count_nonzero(time >= np.array(last)[env]))
        self._replayed += ids.size

    def take_share(self) -> dict[str, float]:
        """Return the share of what was replayed since the last time that is newer than the change.

        Nothing as long as nothing has changed, or nothing was replayed.
        """
        new, replayed = self._new, self._replayed
        self._new = self._replayed = 0
        changed = any(len(begun) > 1 for begun in self._begun)
        return {"replay/share_after_change": new / replayed} if changed and replayed else {}

    def get_state(self) -> dict[str, Any]:
        """Return all of it: counts of steps, and when each phase began."""
        return {
            "seen": self._seen,
            "begun": [list(begun) for begun in self._begun],
            "new": self._new,
            "replayed": self._replayed,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_state()`."""
        self._seen, self._begun = state["seen"], [list(begun) for begun in state["begun"]]
        self._new, self._replayed = state["new"], state["replayed"]

    @property
    def complete(self) -> int:
        """Changes that all environments have gone through."""
        return min(map(len, self._begun)) - 1
