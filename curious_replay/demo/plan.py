"""Sizes of the demo."""

from dataclasses import dataclass

from curious_replay.agents.dreamer_v3_config import SizeName


@dataclass(frozen=True)
class Plan:
    """What one seed does; the defaults are the demo, `QUICK` is for tests."""

    before: int = 2_000
    """Steps in the empty arena."""
    visits: int = 40
    """How often each of them is trained on, on average, before the ball appears."""
    updates: int = 400
    """Of each branch, after that."""
    new_steps: int = 2
    """That arrive before each of these updates."""
    windows: int = 12
    """In a batch."""
    length: int = 12
    """Of a window, in steps."""
    size: SizeName = "nano"
    """Of the networks, by its name in DreamerV3's sizes."""
    learning_rate: float = 1e-3
    test_every: int = 20
    """Updates between two tests."""
    test_steps: int = 1_500
    """Of the drive that test windows are taken from."""
    test_windows: int = 48
    seen: int = 5
    """Steps of a test window that the model sees."""
    ahead: int = 6
    """Steps it then predicts from the actions alone."""

    @property
    def after(self) -> int:
        """Steps from after the ball appeared."""
        return self.updates * self.new_steps

    @property
    def shared_updates(self) -> int:
        """Updates before the ball appears."""
        return -(-self.before * self.visits // (self.windows * self.length))

    @property
    def all_updates(self) -> int:
        """Updates of one seed, both branches together."""
        return self.shared_updates + 2 * self.updates


QUICK = Plan(
    before=60, visits=2, updates=6, new_steps=20, windows=4, length=6, size="debug", test_every=3,
    test_steps=400, test_windows=3, seen=3, ahead=2,
)  # fmt: skip
