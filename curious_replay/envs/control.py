"""Tasks of the DeepMind Control Suite from pixels, without OpenGL if need be.

Models, rewards and episodes (1000 frames) are dm_control's own. Drawing is ours, and by default
leaves out what makes software rendering slow: shadows, reflections and multisampling.
"""

import importlib
import os
from collections.abc import Mapping
from typing import Any, ClassVar

import mujoco

from curious_replay.envs.drawing.camera import Image
from curious_replay.envs.schedule import PhaseClock, Schedule, ScheduleLike
from curious_replay.envs.simulated import Action, Info, SimulatedEnv
from curious_replay.envs.tasks import CONTROL
from curious_replay.errors import UsageError

# Fields of the model that tasks write when an episode begins (targets, damping, visibility).
EPISODE_FIELDS = ("dof_damping", "geom_pos", "geom_size", "site_pos", "site_rgba", "site_size")


def split_task(task: str) -> tuple[str, str]:
    """Return dm_control's domain and task of a short name.

    "cup_catch" is ("ball_in_cup", "catch").
    """
    if task not in CONTROL:
        raise UsageError(f"unknown task {task!r}, choose one of {list(CONTROL)}")
    domain, _, name = task.partition("_")
    return ("ball_in_cup" if domain == "cup" else domain), name


def load_task(task: str) -> Any:
    """Return dm_control's environment of a task."""
    return _import_suite().load(*split_task(task))


def _import_suite() -> Any:
    """Import dm_control's suite without its renderer.

    dm_control looks for OpenGL when it is first imported, which prints warnings or fails without a
    display. A process that wants dm_control's own renderer imports dm_control first.
    """
    before = os.environ.get("MUJOCO_GL")
    os.environ["MUJOCO_GL"] = "disabled"
    try:
        return importlib.import_module("dm_control.suite")
    finally:
        if before is None:
            del os.environ["MUJOCO_GL"]
        else:
            os.environ["MUJOCO_GL"] = before


class ControlSuite(SimulatedEnv):
    """A task of the control suite; episodes end by their time limit only (truncated).

    Subclasses change the model: `_edit_model` once, `_apply_phase` when an episode begins. A phase
    that comes during an episode waits for the next one. Further arguments are those of
    `SimulatedEnv`.
    """

    PHASES: ClassVar[tuple[str, ...]] = ("constant",)
    SCHEDULE: ClassVar[Schedule] = Schedule(((0, "constant"),))

    def __init__(
        self,
        *,
        task: str = "walker_walk",
        schedule: ScheduleLike | None = None,
        episode_frames: int = 1000,
        parallel: int = 1,
        phase: str | None = None,
        **simulated: Any,
    ) -> None:
        clock = PhaseClock(
            Schedule.of(self.SCHEDULE if schedule is None else schedule),
            self.PHASES,
            parallel,
            phase,
        )
        suite = load_task(task)
        self.task = task
        self._task, self._physics = suite.task, suite.physics
        self._substeps = round(suite.control_timestep() / self._physics.timestep())
        self._seeded = False
        bounds = suite.action_spec()
        self._middle = (bounds.maximum + bounds.minimum) / 2
        self._reach = (bounds.maximum - bounds.minimum) / 2
        model = self._physics.model.ptr
        self._edit_model(model)
        super().__init__(
            model,
            self._physics.data.ptr,
            clock,
            view=2 if task.startswith("quadruped") else 0,
            actions=model.nu,
            frame_seconds=suite.control_timestep(),
            episode_frames=episode_frames,
            **simulated,
        )

    def _edit_model(self, model: mujoco.MjModel) -> None:
        """Change the compiled model for good, before the camera reads it."""

    def _apply_phase(self) -> None:
        """Make the model what `_shown_phase` says."""

    def _begin(self, seed: int | None) -> None:
        if seed is not None or not self._seeded:
            self._task.random.seed(int(self.np_random.integers(2**32)))
            self._seeded = True
        self._shown_phase = self.clock.phase
        self._apply_phase()
        with self._physics.reset_context():
            self._task.initialize_episode(self._physics)

    def _frame(self, action: Action) -> tuple[float, bool]:
        self._task.before_step(self._middle + self._reach * action, self._physics)
        self._physics.step(self._substeps)
        self._task.after_step(self._physics)
        over = self._task.get_termination(self._physics) is not None
        return float(self._task.get_reward(self._physics)), over

    def _facts(self, image: Image) -> Info:
        return {}

    def _extra_state(self) -> dict[str, Any]:
        fields = {name: getattr(self.model, name).copy() for name in EPISODE_FIELDS}
        task_generator = self._task.random.get_state(legacy=False)
        return {"model": fields, "task_generator": task_generator, "seeded": self._seeded}

    def _restore(self, state: Mapping[str, Any]) -> None:
        for name in EPISODE_FIELDS:
            getattr(self.model, name)[:] = state["model"][name]
        self._task.random.set_state(state["task_generator"])
        self._seeded = bool(state["seeded"])
        self._apply_phase()
