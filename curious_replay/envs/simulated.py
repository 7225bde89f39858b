"""What all MuJoCo environments share: pixels, action repeat, phases, and exact save and load."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

from curious_replay.envs.drawing.camera import Camera, Image, make_camera
from curious_replay.envs.interface import METADATA, image_space
from curious_replay.envs.schedule import Clocked, PhaseClock
from curious_replay.errors import UsageError

Observation = dict[str, Image]
Info = dict[str, Any]
Action = NDArray[np.float64]

ACTION_TOLERANCE = 1e-3  # actions may leave [-1, 1] by rounding


class SimulatedEnv(Clocked, gymnasium.Env[Any, NDArray[np.float32]]):
    """Repeats each action for `action_repeat` frames and shows what the camera then sees.

    A subclass builds its model, calls `__init__`, and says how an episode begins (`_begin`), what
    one frame does (`_frame`) and what analyses may know (`_facts`). Anything it keeps between
    frames outside of MuJoCo's state goes through `_extra_state` and `_restore`.
    """

    metadata = METADATA

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        clock: PhaseClock,
        *,
        view: int,
        actions: int,
        frame_seconds: float,
        image_size: int = 64,
        action_repeat: int = 2,
        camera: str = "auto",
        shadows: bool = False,
        episode_frames: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if action_repeat < 1:
            raise UsageError(f"action_repeat must be at least 1 frame, got {action_repeat}")
        if episode_frames is not None and episode_frames < 1:
            raise UsageError(f"episode_frames must be at least 1, got {episode_frames}")
        if render_mode not in (None, "rgb_array"):
            raise UsageError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.model, self.data = model, data
        self.clock = clock
        self.action_repeat = action_repeat
        self.episode_frames = episode_frames
        self.render_mode = render_mode
        self.metadata = METADATA | {"render_fps": max(round(1 / frame_seconds / action_repeat), 1)}
        self._camera: Camera = make_camera(camera, model, view, image_size, shadows)
        self._episode_frame = 0
        self._started = False
        self._shown_phase = clock.phase  # in force in the world; subclasses say when it changes
        self.observation_space = image_space(image_size)
        self.action_space = gymnasium.spaces.Box(-1, 1, (actions,), np.float32)

    @property
    def camera_name(self) -> str:
        """The camera in use, "auto" resolved: part of a run's record."""
        return self._camera.name

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begin an episode. The schedule's frames count on, unless a seed begins a new history."""
        super().reset(seed=seed, options=options)
        if seed is not None:
            self.clock.set_frame(0)
        self._episode_frame = 0
        self._started = True
        self._begin(seed)
        observation = self._observe()
        return observation, self._info(observation) | {"camera": self.camera_name}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Hold `action` for `action_repeat` frames; rewards add up."""
        control = self._checked(action)
        total, terminated, truncated = 0.0, False, False
        self._begin_step()
        for _ in range(self.action_repeat):
            reward, terminated = self._frame(control)
            total += reward
            self.clock.advance()
            self._episode_frame += 1
            self._follow_clock()
            truncated = self._episode_frame == self.episode_frames
            if terminated or truncated:
                break
        observation = self._observe()
        return observation, total, terminated, truncated, self._info(observation)

    def render(self) -> Image | None:
        """Return the agent's own view of the present state, drawn anew."""
        return self._observe()["image"] if self.render_mode else None

    def close(self) -> None:
        """Free the camera."""
        self._camera.close()

    def get_state(self) -> dict[str, Any]:
        """Return all that decides what comes next, as numbers, strings and arrays."""
        size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_INTEGRATION)
        physics = np.empty(size)
        mujoco.mj_getState(self.model, self.data, physics, mujoco.mjtState.mjSTATE_INTEGRATION)
        return {
            "physics": physics,
            "clock": self.clock.get_state(),
            "generator": self.np_random.bit_generator.state,
            "episode_frame": self._episode_frame,
            "started": self._started,
            "shown_phase": self._shown_phase,
            "camera": self.camera_name,
            **self._extra_state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from `get_state()` of an environment built with the same arguments."""
        if state["camera"] != self.camera_name:
            raise ValueError(
                f"this state was saved with camera {state['camera']!r}, not {self.camera_name!r}: "
                "pixels would differ, so build the environment with the camera of the state"
            )
        physics = np.asarray(state["physics"], np.float64)
        size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_INTEGRATION)
        if physics.shape != (size,):
            raise ValueError(f"the state holds {physics.shape} numbers, this model needs ({size},)")
        self.clock.set_state(state["clock"])
        self.np_random.bit_generator.state = state["generator"]
        self._episode_frame = int(state["episode_frame"])
        self._started = bool(state["started"])
        self._shown_phase = state["shown_phase"]
        self._restore(state)
        mujoco.mj_setState(self.model, self.data, physics, mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_step1(self.model, self.data)  # positions that the camera and contacts need

    @abstractmethod
    def _begin(self, seed: int | None) -> None:
        """Put the world into the first state of an episode."""

    @abstractmethod
    def _frame(self, action: Action) -> tuple[float, bool]:
        """Simulate one frame; return its reward and whether the episode is over for good."""

    @abstractmethod
    def _facts(self, image: Image) -> Info:
        """Return what analyses may know about the step just made, as `log_*` values."""

    def _begin_step(self) -> None:
        """Prepare a step; called before its frames."""

    def _extra_state(self) -> dict[str, Any]:
        return {}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take back `_extra_state()`; MuJoCo's own state follows afterwards."""

    def _info(self, observation: Observation) -> Info:
        return {
            "phase": self._shown_phase,
            "log_phase": self.clock.known.index(self._shown_phase),
            "frame": self.clock.frame,
            **self._facts(observation["image"]),
        }

    def _observe(self) -> Observation:
        return {"image": self._camera.render(self.data)}

    def _checked(self, action: NDArray[np.float32]) -> Action:
        if not self._started:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        control = np.asarray(action, np.float64)
        if control.shape != self.action_space.shape:
            raise ValueError(f"an action has shape {self.action_space.shape}, got {control.shape}")
        if not (np.abs(control) <= 1 + ACTION_TOLERANCE).all():
            raise ValueError(f"actions lie in [-1, 1], got {control}")
        return np.clip(control, -1, 1)
