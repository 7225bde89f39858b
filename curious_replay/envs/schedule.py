"""Phases by frame: the only notion of change in the project.

A `Schedule` says which phase begins at which frame; a `PhaseClock` counts the frames of one
environment and answers in which phase it is. Frames are counted over all parallel environments:
each environment counts its own and multiplies by `parallel`, so four environments reach frame
500,000 after 125,000 frames each. A driver that keeps the true total (environments may run out of
step) writes it with `set_frame`. `reset(seed=...)` begins a new history at frame 0, `reset()`
counts on.

What every environment of this package offers, whatever it simulates:

- keyword-only constructor arguments, among them `schedule`, `parallel` and `phase` if it changes;
- observation `{"image": uint8 [height, width, 3]}`;
- an `info` dictionary with the same keys at every step; `phase` is the name of the phase that the
  picture shows, `frame` the clock's count, and values under `log_*` (scalars or small arrays) are
  meant to be stored with the step in replay;
- `get_state() -> dict` and `set_state(dict)`: strings, numbers and NumPy arrays from which the
  environment goes on bit for bit, physics, generators and frame counter included;
- `set_phase(name)` holds the environment in one phase, as evaluation needs it; `set_phase(None)`
  hands it back to the schedule.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from curious_replay.errors import UsageError


@dataclass(frozen=True)
class Schedule:
    """Which phase begins at which frame: `Schedule(((0, "empty"), (500_000, "ball")))`."""

    changes: tuple[tuple[int, str], ...]

    def __post_init__(self) -> None:
        frames = [frame for frame, _ in self.changes]
        if not frames or frames[0] != 0:
            raise UsageError(f"a schedule begins with frame 0, this one is {self.changes}")
        if any(late <= early for early, late in pairwise(frames)):
            raise UsageError(f"the frames of a schedule must increase, these do not: {frames}")

    @classmethod
    def of(cls, changes: "ScheduleLike") -> "Schedule":
        """Return a schedule as it is, or one from pairs as configuration files hold them."""
        if isinstance(changes, Schedule):
            return changes
        return cls(tuple((int(frame), str(name)) for frame, name in changes))

    @property
    def phases(self) -> tuple[str, ...]:
        """Names of all phases, each once, in order of first appearance."""
        return tuple(dict.fromkeys(name for _, name in self.changes))

    def at(self, frame: int) -> str:
        """Name of the phase at this frame."""
        if frame < 0:
            raise ValueError(f"frames count from 0, got {frame}")
        return [name for start, name in self.changes if start <= frame][-1]


ScheduleLike = Schedule | Sequence[tuple[int, str]]


class PhaseClock:
    """Counts the frames of one environment and tells its phase.

    `known` are the phases the environment can be put into; a schedule may use some of them only.
    """

    def __init__(
        self,
        schedule: Schedule,
        known: Collection[str],
        parallel: int = 1,
        phase: str | None = None,
    ) -> None:
        if parallel < 1:
            raise ValueError(f"parallel counts environments, so it is at least 1, got {parallel}")
        self.schedule = schedule
        self.known = tuple(known)
        self.parallel = parallel
        self.frame = 0
        self.forced: str | None = None
        for name in schedule.phases:
            self._check(name)
        self.force(phase)

    @property
    def phase(self) -> str:
        """The forced phase if there is one, else that of the schedule at the present frame."""
        return self.schedule.at(self.frame) if self.forced is None else self.forced

    def advance(self, frames: int = 1) -> None:
        """Count simulated frames of this environment."""
        self.frame += frames * self.parallel

    def set_frame(self, frame: int) -> None:
        """Take over the total number of frames over all environments."""
        if frame < 0:
            raise ValueError(f"frames count from 0, got {frame}")
        self.frame = int(frame)

    def force(self, phase: str | None) -> None:
        """Stay in this phase whatever the frame; None follows the schedule again."""
        if phase is not None:
            self._check(phase)
        self.forced = phase

    def get_state(self) -> dict[str, Any]:
        """Return frame counter and forced phase."""
        return {"frame": self.frame, "forced": self.forced}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from `get_state()`."""
        self.set_frame(state["frame"])
        self.force(state["forced"])

    def _check(self, phase: str) -> None:
        if phase not in self.known:
            raise UsageError(f"unknown phase {phase!r}, this environment has {list(self.known)}")


class Clocked:
    """Part of an environment that has a `clock`: others may set it."""

    clock: PhaseClock

    def set_phase(self, phase: str | None) -> None:
        """Hold the world in this phase, or follow the schedule again (None)."""
        self.clock.force(phase)
        self._follow_clock()

    def set_frame(self, frame: int) -> None:
        """Take over the number of frames over all environments."""
        self.clock.set_frame(frame)
        self._follow_clock()

    def _follow_clock(self) -> object:
        """Change what must change at once with the clock; by default nothing."""
