"""The object-interaction assay: will an agent without reward turn to a ball that is new?

An agent rolls through an empty arena with black walls. At frame 500,000 a magenta ball drops in
near the centre, and is there to be found, pushed and understood. The world goes on without resets.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import mujoco
import numpy as np

from curious_replay.envs.arena import (
    MAGENTA,
    YELLOW,
    ArenaConfig,
    RollingBody,
    Sphere,
    build_model,
)
from curious_replay.envs.drawing.camera import Image
from curious_replay.envs.schedule import PhaseClock, Schedule, ScheduleLike
from curious_replay.envs.simulated import Action, Info, SimulatedEnv
from curious_replay.errors import UsageError

Variant = Literal["changing", "unchanging", "removal", "two-balls", "two-balls-reversed"]
Scale = Literal["paper", "mini"]

BALLS: dict[str, Sphere] = {"yellow": YELLOW, "magenta": MAGENTA}
PHASES: dict[str, tuple[str, ...]] = {  # which balls are in the arena
    "empty": (),
    "ball": ("magenta",),
    "yellow": ("yellow",),
    "both": ("yellow", "magenta"),
}
# Where a ball appears, in cells from the arena's centre.
APPEARS: dict[str, tuple[float, float]] = {"magenta": (2.5, -2.5), "yellow": (2.5, 2.5)}
PARKING: dict[str, int] = {"yellow": 1, "magenta": 2}

APPEAR_FRAME: dict[str, int] = {"paper": 500_000, "mini": 20_000}
REMOVE_FRAME: dict[str, int] = {"paper": 1_500_000, "mini": 60_000}
MINI_SIDE = 9
COLOR_MARGIN = 45  # how far a ball's strong channels exceed its weak one, in bytes


def variant_schedule(variant: Variant, scale: Scale = "paper") -> Schedule:
    """Return the published phases of a variant, or their short form for two CPU cores."""
    appear, remove = APPEAR_FRAME[scale], REMOVE_FRAME[scale]
    schedules = {
        "changing": ((0, "empty"), (appear, "ball")),
        "unchanging": ((0, "ball"),),
        "removal": ((0, "empty"), (appear, "ball"), (remove, "empty")),
        "two-balls": ((0, "yellow"), (appear, "both")),
        "two-balls-reversed": ((0, "ball"), (appear, "both")),
    }
    if variant not in schedules:
        raise UsageError(f"variant must be one of {list(schedules)}, got {variant!r}")
    return Schedule(schedules[variant])


@dataclass(frozen=True)
class Scene:
    """A fixed start for testing what a world model knows: metres, and radians of `steer`."""

    agent: tuple[float, float]
    ball: tuple[float, float]
    steer: float = 1.5 * math.pi  # the camera faces +y

    def within(self, arena: ArenaConfig) -> "Scene":
        """Return the scene of an arena of another size: places keep their share of its width."""
        published = ArenaConfig()
        shrink = arena.side / published.side

        def moved(place: tuple[float, float]) -> tuple[float, float]:
            (px, py), (x, y) = published.center, arena.center
            return (x + shrink * (place[0] - px), y + shrink * (place[1] - py))

        return replace(self, agent=moved(self.agent), ball=moved(self.ball))


SCENES: dict[int, Scene] = {
    1: Scene((0.0, -11.2), (0.0, 5.6)),
    2: Scene((0.0, -11.2), (1.4, 5.6)),
    3: Scene((0.0, -4.2), (0.0, 5.6)),
    4: Scene((0.0, 1.4), (0.0, 5.6)),
    5: Scene((-7.0, -8.4), (0.0, 5.6)),
    6: Scene((-7.0, -8.4), (0.0, 5.6), 3.3 * math.pi / 2),
    7: Scene((-7.0, -8.4), (0.0, 5.6), 3.32 * math.pi / 2),
    8: Scene((0.0, -11.2), (2.1, 0.0)),
}


class ObjectInteraction(SimulatedEnv):
    """The assay. Actions are (roll, steer): roll -1 drives forward, steer +1 turns right.

    `info` counts, for each ball and summed over the frames of a step, contact points at the end of
    a frame (`log_<ball>_contacts`, as released) and interactions, which begin only after agent and
    ball were apart for a frame (`log_<ball>_interactions`); `log_contacts` and `log_interactions`
    add the balls up. Positions are metres `[3]` of the spheres' centres.

    As published, a ball appears in its place wherever the agent is, so it may fall onto it. With
    `appears="away"` it appears there or mirrored about the centre, where it is farthest from the
    agent and other balls: in the mini arena, at least 4.9 m from the agent.

    Further arguments are those of `SimulatedEnv`.
    """

    def __init__(
        self,
        *,
        variant: Variant = "changing",
        scale: Scale = "paper",
        schedule: ScheduleLike | None = None,
        reward: Literal["none", "released"] = "none",
        appears: Literal["fixed", "away"] = "fixed",
        replay_episode_steps: int | None = None,
        scene: int | None = None,
        arena: ArenaConfig | None = None,
        parallel: int = 1,
        phase: str | None = None,
        **simulated: Any,
    ) -> None:
        self.arena = arena or _arena_of(scale)
        self.scene = _scene_of(scene, self.arena)
        if reward not in ("none", "released"):
            raise UsageError(f"reward must be 'none' or 'released', got {reward!r}")
        if appears not in ("fixed", "away"):
            raise UsageError(f"appears must be 'fixed' or 'away', got {appears!r}")
        if replay_episode_steps is not None and replay_episode_steps < 1:
            raise UsageError(f"replay_episode_steps must be positive, got {replay_episode_steps}")
        self._shaped_reward = reward == "released"
        self._cut_steps = replay_episode_steps
        self._away = appears == "away"
        phases = Schedule.of(schedule or variant_schedule(variant, scale))
        self.balls = _balls_of(phases)
        known = [name for name, shown in PHASES.items() if set(shown) <= set(self.balls)]
        model = build_model(self.arena, {name: BALLS[name] for name in self.balls})
        super().__init__(
            model,
            mujoco.MjData(model),
            PhaseClock(phases, known, parallel, phase),
            view=model.camera("agent/eye").id,
            actions=model.nu,
            frame_seconds=self.arena.frame,
            **simulated,
        )
        self._bodies = {name: RollingBody(model, name) for name in ("agent", *self.balls)}
        self._walls = frozenset(g for g in range(model.ngeom) if model.geom(g).name[:4] == "wall")
        self._touching = dict.fromkeys(self.balls, False)
        self._counts = self._zero_counts()
        self._cut_step = 0
        self._was_cut = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Image], Info]:
        """Begin anew, unless an episode was just cut for replay: then the world goes on as it is.

        A seed always begins anew.
        """
        go_on, self._was_cut, self._cut_step = self._was_cut and seed is None, False, 0
        if not go_on:
            return super().reset(seed=seed, options=options)
        self._begin_step()
        observation = self._observe()
        return observation, self._info(observation) | {"camera": self.camera_name}

    def step(self, action: Any) -> tuple[dict[str, Image], float, bool, bool, Info]:
        """Simulate one step; with `replay_episode_steps`, pretend that the episode ended."""
        observation, reward, terminated, truncated, info = super().step(action)
        self._cut_step += 1
        self._was_cut = self._cut_step == self._cut_steps and not truncated
        return observation, reward, terminated, truncated or self._was_cut, info

    def _begin(self, seed: int | None) -> None:
        mujoco.mj_resetData(self.model, self.data)
        x, y = self.scene.agent if self.scene else self.arena.center
        self._bodies["agent"].put(self.data, x, y, self.arena.spawn_height)
        for body in self._bodies.values():
            body.turn(self.data, self.np_random.uniform(0, 2 * math.pi))
        if self.scene:
            self._bodies["agent"].turn(self.data, self.scene.steer)
        self._touching = dict.fromkeys(self.balls, False)
        self._shown_phase = self.clock.phase
        for name in self.balls:
            self._place(name)
        mujoco.mj_forward(self.model, self.data)
        self._begin_step()

    def _begin_step(self) -> None:
        self._counts = self._zero_counts()

    def _frame(self, action: Action) -> tuple[float, bool]:
        for name in self.balls:
            if not self._is_shown(name):
                self._park(name)
        self.data.ctrl[:] = action
        for _ in range(self.arena.substeps):
            # Split this way round, positions and contacts are those of the end of the frame.
            mujoco.mj_step2(self.model, self.data)
            mujoco.mj_step1(self.model, self.data)
        self._count_contacts()
        return self._reward(), False

    def _follow_clock(self) -> None:
        """Let balls come and go between two frames."""
        before, self._shown_phase = self._shown_phase, self.clock.phase
        moved = set(PHASES[before]) ^ set(PHASES[self._shown_phase])
        for name in sorted(moved):
            self._place(name)
        if moved:
            mujoco.mj_step1(self.model, self.data)

    def _is_shown(self, ball: str) -> bool:
        return ball in PHASES[self._shown_phase]

    def _place(self, ball: str) -> None:
        """Drop a ball into the arena if its phase has come, else put it out of the way."""
        if not self._is_shown(ball):
            self._park(ball)
            return
        x, y = self.scene.ball if self.scene else self._appears_at(ball)
        # As released, the root goes to the height of the resting sphere, 0.2 m too high.
        self._bodies[ball].put(self.data, x, y, BALLS[ball].radius)
        self._bodies[ball].set_solid(self.model, True)

    def _park(self, ball: str) -> None:
        """Hold a ball in the hidden corridor, which is narrower than it: no contacts there."""
        x, y = self.arena.parking(PARKING[ball])
        self._bodies[ball].put(self.data, x, y, BALLS[ball].radius)
        self._bodies[ball].set_solid(self.model, False)

    def _appears_at(self, ball: str) -> tuple[float, float]:
        dx, dy = (cells * self.arena.cell for cells in APPEARS[ball])
        x, y = self.arena.center
        if not self._away:
            return (x + dx, y + dy)
        mujoco.mj_kinematics(self.model, self.data)  # at a reset, bodies were just put elsewhere
        others = [name for name in self.balls if name != ball and self._is_shown(name)]
        taken = [self._bodies[name].center(self.data)[:2] for name in ("agent", *others)]

        def room(place: tuple[float, float]) -> float:
            return round(min(math.dist(place, other) for other in taken), 6)

        places = [(x + i * dx, y + j * dy) for i, j in ((1, 1), (-1, 1), (1, -1), (-1, -1))]
        return max(places, key=room)  # of equally good ones the first, which is the published one

    def _count_contacts(self) -> None:
        agent = self._bodies["agent"].shell
        shells = {self._bodies[name].shell: name for name in self.balls}
        points = dict.fromkeys(self.balls, 0)
        for pair in self.data.contact.geom:
            if agent in pair:
                other = int(pair[0] + pair[1] - agent)
                if other in shells:
                    points[shells[other]] += 1
                self._counts["log_wall_contacts"] += other in self._walls
        for name, count in points.items():
            began = count > 0 and not self._touching[name]
            self._touching[name] = count > 0
            for key, amount in (("contacts", count), ("interactions", int(began))):
                self._counts[f"log_{name}_{key}"] += amount
                self._counts[f"log_{key}"] += amount

    def _zero_counts(self) -> dict[str, int]:
        names = ["contacts", "interactions", "wall_contacts"]
        names += [f"{ball}_{key}" for ball in self.balls for key in ("contacts", "interactions")]
        return dict.fromkeys((f"log_{name}" for name in names), 0)

    def _reward(self) -> float:
        if not self._shaped_reward:
            return 0.0
        return released_reward(float(np.abs(self.data.sensor("acceleration").data).max()))

    def _facts(self, image: Image) -> Info:
        facts: Info = dict(self._counts)
        for name, body in self._bodies.items():
            facts[f"log_{name}_position"] = body.center(self.data)
        facts["log_agent_heading"] = self._bodies["agent"].heading(self.data)
        for name in self.balls:
            facts[f"log_{name}_pixels"] = np.count_nonzero(ball_pixels(image, BALLS[name]))
        return facts

    def _extra_state(self) -> dict[str, Any]:
        return {
            "touching": dict(self._touching),
            "cut_step": self._cut_step,
            "was_cut": self._was_cut,
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._touching = {name: bool(state["touching"][name]) for name in self.balls}
        self._cut_step, self._was_cut = int(state["cut_step"]), bool(state["was_cut"])
        for name in self.balls:
            self._bodies[name].set_solid(self.model, self._is_shown(name))


def released_reward(acceleration: float) -> float:
    """Return the released code's reward of a frame.

    `acceleration` is the largest component in m/s² (9.81 at rest).
    """
    excess = max(acceleration - 50, 0) / 500
    return 0.01 + 50 * (math.pow(0.1, excess**2) - 1)


def ball_pixels(image: Image, ball: Sphere) -> np.ndarray:
    """Return where an image has the colour of `ball`, lit or shaded: bool.

    The image is uint8 [..., H, W, 3].
    """
    weak = ball.colors[0].index(0.0)
    first, second = (image[..., channel] for channel in range(3) if channel != weak)
    strength = np.minimum(first, second).astype(np.int16) - image[..., weak]
    return strength > COLOR_MARGIN


def _arena_of(scale: str) -> ArenaConfig:
    if scale not in APPEAR_FRAME:
        raise UsageError(f"scale must be one of {list(APPEAR_FRAME)}, got {scale!r}")
    return ArenaConfig() if scale == "paper" else ArenaConfig(side=MINI_SIDE)


def _balls_of(schedule: Schedule) -> tuple[str, ...]:
    """Return the balls a schedule ever shows, in the order of `BALLS`; magenta if it shows none."""
    shown = {ball for phase in schedule.phases for ball in PHASES.get(phase, ())}
    return tuple(name for name in BALLS if name in shown) or ("magenta",)


def _scene_of(number: int | None, arena: ArenaConfig) -> Scene | None:
    if number is None:
        return None
    if number not in SCENES:
        raise UsageError(f"scene must be one of {list(SCENES)}, got {number}")
    return SCENES[number].within(arena)
