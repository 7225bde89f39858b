"""When something is due, counted in steps."""

from collections.abc import Sequence
from fractions import Fraction


class Ratio:
    """How many updates are due: `first` to begin with, then `ratio / batch_steps` for each step.

    `ratio` is the train ratio, replayed steps per step, and `batch_steps` the steps in a batch.
    Counted in fractions, so that after any number of steps not one update is missing or too many.
    """

    def __init__(self, ratio: float, batch_steps: int, first: int = 1) -> None:
        self.updates_per_step = Fraction(ratio).limit_denominator(10**6) / batch_steps
        self.first = first
        self.start: int | None = None  # the step of the first update
        self.done = 0

    def __call__(self, step: int) -> int:
        """Return the updates that are due at this step and count them as done."""
        if not self.updates_per_step:
            return 0
        if self.start is None:
            self.start = step
        due = self.first + int((step - self.start) * self.updates_per_step) - self.done
        self.done += due
        return due

    def get_state(self) -> dict[str, int | None]:
        """Return the first step and the updates so far."""
        return {"start": self.start, "done": self.done}

    def set_state(self, state: dict[str, int | None]) -> None:
        """Go on from `get_state()`."""
        self.start, self.done = state["start"], int(state["done"] or 0)

    def state_for_another(self, step: int) -> dict[str, int | None]:
        """Return the state from which another ratio goes on.

        It counts from `step`, and what is due stays so. Less than an update, which this ratio would
        have brought a little later, is forgotten.
        """
        if self.start is None:
            return self.get_state()
        due = self.first + int((step - self.start) * self.updates_per_step) - self.done
        return {"start": step, "done": self.first - due}


class Every:
    """Due at the first step it is asked about, then every `every` steps; never if that is 0.

    With `last=0` it is due at step `every` first. Asking changes nothing: who has done what was
    due calls `done`, so what a stop prevented is still due afterwards.
    """

    def __init__(self, every: int, last: int | None = None) -> None:
        self.every = every
        self.last = last

    def due(self, step: int) -> bool:
        """Return whether it is time."""
        if not self.every:
            return False
        return self.last is None or step >= self.last + self.every

    def done(self, step: int) -> None:
        """Count what was due as done. Steps that come in leaps do not shift the beat."""
        if self.last is None:
            self.last = step
        else:
            self.last += (step - self.last) // self.every * self.every


class Reached:
    """Which of some steps have been reached, told once for each.

    Steps up to `last` count as passed: they are not told of any more.
    """

    def __init__(self, steps: Sequence[int], last: int = 0) -> None:
        self.steps = sorted(steps)
        self.last = last

    def __call__(self, step: int) -> tuple[int, ...]:
        """Return the steps that were reached since the last call."""
        reached = tuple(each for each in self.steps if self.last < each <= step)
        self.last = step
        return reached
