"""The Constrained Control Suite: bodies whose joints are held for half a million frames.

Narrow joint limits are written into dm_control's own models and lifted when the schedule says so,
at the start of the next episode. Initial states are dm_control's, so the cup's ball still spawns
above its limit and is drawn down by it within a fraction of a second.
"""

import math
from typing import ClassVar, NamedTuple

import mujoco

from curious_replay.envs.control import ControlSuite
from curious_replay.envs.schedule import Schedule
from curious_replay.errors import UsageError


class Limit(NamedTuple):
    """Range of one joint (metres or radians) while constrained and after; None is no limit."""

    joint: str
    constrained: tuple[float, float]
    free: tuple[float, float] | None


def _degrees(low: float, high: float) -> tuple[float, float]:
    return (math.radians(low), math.radians(high))


LIMITS: dict[str, tuple[Limit, ...]] = {
    "cup_catch": (Limit("ball_z", (-0.151, -0.091), None),),
    "cartpole_swingup_sparse": (Limit("hinge_1", _degrees(175, 185), None),),
    "cheetah_run": (
        Limit("bthigh", _degrees(50, 60), _degrees(-30, 60)),
        Limit("fthigh", _degrees(-57, -52), _degrees(-57, 0.4)),
        Limit("fshin", _degrees(-70, -60), _degrees(-70, 50)),
        Limit("ffoot", _degrees(-28, -26), _degrees(-28, 28)),
    ),
}


class ConstrainedControl(ControlSuite):
    """A control-suite task in the phases "constrained" and "free"."""

    PHASES: ClassVar[tuple[str, ...]] = ("constrained", "free")
    SCHEDULE: ClassVar[Schedule] = Schedule(((0, "constrained"), (500_000, "free")))

    def _edit_model(self, model: mujoco.MjModel) -> None:
        if self.task not in LIMITS:
            raise UsageError(f"no limits are known for {self.task!r}, choose one of {list(LIMITS)}")
        self._limits = [(model.joint(limit.joint).id, limit) for limit in LIMITS[self.task]]

    def _apply_phase(self) -> None:
        for joint, limit in self._limits:
            held = self._shown_phase == "constrained"
            between = limit.constrained if held else limit.free
            self.model.jnt_limited[joint] = between is not None
            self.model.jnt_range[joint] = between or (0, 0)
