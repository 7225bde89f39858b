"""Sizes of the demo."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """What one seed does; the defaults are the demo, `QUICK` is for tests."""

    arenas: int = 8
    """That are driven through side by side."""
    before: int = 200
    """Steps in each while it is empty."""
    visits: int = 40
    """How often each step is trained on, on average, before the balls appear."""
    updates: int = 250
    """Of each branch, after that."""
    updates_per_step: int = 3
    """In each arena one step is made every so many of these updates."""
    windows: int = 16
    """In a batch."""
    length: int = 8
    """Of a window, in steps."""
    learning_rate: float = 4e-3
    test_every: int = 10
    """Updates between two tests."""
    test_steps: int = 200
    """In each of as many other arenas, where test windows are taken from."""
    test_windows: int = 48
    seen: int = 4
    """Steps of a window that the model looks at."""
    ahead: int = 4
    """Steps of a test window that it then predicts from the actions alone."""

    shown_ahead: int = 2
    """Which of these the pictures below the curves show."""

    @property
    def shown(self) -> int:
        """That picture's place in a test window."""
        return self.seen + self.shown_ahead - 1

    @property
    def after(self) -> int:
        """Steps in each arena from after the ball appeared."""
        return -(-self.updates // self.updates_per_step)

    @property
    def old_steps(self) -> int:
        """Steps of all arenas from before."""
        return self.arenas * self.before

    @property
    def shared_updates(self) -> int:
        """Updates before the balls appear."""
        return -(-self.old_steps * self.visits // (self.windows * self.length))

    @property
    def all_updates(self) -> int:
        """Updates of one seed, both branches together."""
        return self.shared_updates + 2 * self.updates


QUICK = Plan(
    arenas=2, before=30, visits=2, updates=6, updates_per_step=1, windows=4, length=5,
    test_every=3, test_steps=200, test_windows=3, seen=3, ahead=2,
)  # fmt: skip
