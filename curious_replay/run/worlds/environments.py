"""Environments for a run, ours and the user's own, and what one look at them tells."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from curious_replay.agents.spaces import Spaces
from curious_replay.envs import registry
from curious_replay.envs.saved import can_save
from curious_replay.envs.schedule import PhaseClock
from curious_replay.envs.switch import Switch
from curious_replay.envs.vectors.pool import DEFAULT_RESTARTS
from curious_replay.envs.vectors.vector import RestartingVectorEnv
from curious_replay.run.record.serialize import pack
from curious_replay.run.settings.env_base import EnvConfig
from curious_replay.run.settings.env_config import SwitchConfig, family_of, is_user_env
from curious_replay.run.worlds.spaces import Actions, UnfitEnvironmentError, read_spaces
from curious_replay.run.worlds.switched import worlds_of
from curious_replay.run.worlds.transition import WHEN, WHEN_BYTES
from curious_replay.run.worlds.user_env import (
    DRAWN,
    Adapted,
    make_rendering,
    make_user_env,
    merge_infos,
)
from curious_replay.run.worlds.user_env_checks import check_reset, check_step
from curious_replay.run.worlds.user_env_errors import calling

Array = np.ndarray
Calls = Callable[[str], AbstractContextManager[Any]]
"""What surrounds a call of an environment's method: users' errors are told, ours speak plainly."""


@dataclass(frozen=True)
class EnvFacts:
    """What one look at an environment tells."""

    spaces: Spaces
    actions: Actions
    logs: dict[str, Array]
    """A value of each `log_*` entry of its info: dtype and shape of what is stored."""
    can_save: bool
    """Whether it has get_state and set_state; without them a resumed run begins a new episode."""
    has_phases: bool
    phases: tuple[str, ...]
    """Those it can be put into, where it tells."""
    schedule: tuple[tuple[int, str], ...] | None
    """Frames and the phases that begin there; None: it has phases, but does not tell when."""
    fps: float
    """Steps a second in a video."""
    camera: str | None

    @property
    def step_bytes(self) -> int:
        """Bytes that one step takes in replay."""
        height, width = self.spaces.image or (0, 0)
        numbers = self.spaces.vector + self.spaces.actions + 1  # and the reward
        logs = sum(array.nbytes for name, array in self.logs.items() if name not in WHEN)
        return height * width * 3 + 4 * numbers + 3 + logs + WHEN_BYTES


def make_env(
    name: str, config: EnvConfig, parallel: int = 1, render: bool = False
) -> gymnasium.Env:
    """Make one environment as an agent sees it; `parallel` of them count frames together.

    With `render` it is asked to draw what `render()` returns.
    """
    if isinstance(config, SwitchConfig):
        return _switch(config, parallel, render)
    arguments = config.arguments()
    if is_user_env(name):
        itself = make_rendering(name, arguments) if render else make_user_env(name, arguments)
        return Adapted(itself, config.image_size, config.frames_per_step)
    if render and "render_mode" in registry.arguments(name):
        arguments["render_mode"] = DRAWN
    if "parallel" in registry.arguments(name):
        arguments["parallel"] = parallel
    return registry.make(name, **arguments)


def _switch(config: SwitchConfig, parallel: int, render: bool) -> Switch:
    """Make the worlds of all phases, each as if it were alone; errors say which it was."""
    worlds: dict[str, gymnasium.Env] = {}
    for phase, (world, settings) in worlds_of(config).items():
        with _naming(f"the world of {phase!r}, {world}, "):
            worlds[phase] = make_env(world, settings, render=render)
    return Switch(
        worlds, config.schedule or (), at=config.at, frames_per_step=config.frames_per_step,
        parallel=parallel,
    )  # fmt: skip


@contextmanager
def _naming(world: str) -> Iterator[None]:
    """Say of which world it is that it cannot be used."""
    try:
        yield
    except UnfitEnvironmentError as error:
        raise UnfitEnvironmentError(f"{world}cannot be used: {error}") from error


def make_envs(
    name: str, config: EnvConfig, num_envs: int, render: bool = False
) -> RestartingVectorEnv:
    """Make environments side by side, each in a process if the settings say so."""
    # Processes know no names that were registered in this one.
    if isinstance(config, SwitchConfig):
        worlds = {phase: registry.ALIASES.get(w, w) for phase, w in config.worlds().items()}
        config = replace(config, phases=tuple(f"{p}={w}" for p, w in worlds.items()))
    make = partial(make_env, registry.ALIASES.get(name, name), config, num_envs, render)
    # What modules of others do when they are imported nobody knows: they are left to the workers.
    ours = [] if family_of(name) in ("user", "switch") else [registry.find(name).module]
    return RestartingVectorEnv(
        [make] * num_envs,
        restarts=replace(DEFAULT_RESTARTS, in_all=config.max_restarts),
        processes=config.processes,
        preload=[__name__, *ours],
    )


def inspect_env(name: str, config: EnvConfig) -> EnvFacts:
    """Make one, try it, and tell what it is; whatever is wrong is said with its name."""
    with _naming(f"{name} "):
        env = make_env(name, config)
        try:
            return _facts(name, env)
        finally:
            with suppress(Exception):  # what went wrong before is to be told, not what follows
                env.close()


def check_renders(name: str, config: EnvConfig) -> None:
    """Refuse an environment whose `render()` returns no picture; what is wrong is said."""
    env = make_env(name, config, render=True)
    try:
        with calling("reset()"):
            env.reset(seed=0)
        with calling("render()"):
            picture = np.asarray(env.render())
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[-1] != 3:
            raise UnfitEnvironmentError(
                f"render() returns {picture.dtype} {list(picture.shape)}; right would be a "
                "picture, uint8 [height, width, 3]"
            )
    except UnfitEnvironmentError as error:
        raise UnfitEnvironmentError(f"video: {name} shows no image, and {error}") from error
    finally:
        with suppress(Exception):
            env.close()


def _facts(name: str, env: gymnasium.Env) -> EnvFacts:
    itself = env.env if isinstance(env, Adapted) else env
    calls: Calls = calling if family_of(name) in ("user", "switch") else nullcontext
    infos = _look_into(env, calls) if isinstance(env, Switch) else _look(env, calls)
    info = {key: value for _, each in reversed(infos) for key, value in each.items()}
    logs = {key: _log(key, infos) for key in info if key.startswith("log_")}
    clock = getattr(env.unwrapped, "clock", None)
    if can_save(env):
        _check_state(itself, calls)
    return EnvFacts(
        spaces=read_spaces(env.observation_space, env.action_space),
        actions=Actions.of(env.action_space),
        logs=logs,
        can_save=can_save(env),
        has_phases=env.has_wrapper_attr("set_phase") and "phase" in info,
        phases=clock.known if isinstance(clock, PhaseClock) else (),
        schedule=_schedule(name, clock, info),
        fps=float(env.metadata.get("render_fps") or 10),
        camera=info.get("camera"),
    )


Told = list[tuple[str, dict[str, Any]]]
"""Infos, each with when it was given."""


def _look(env: gymnasium.Env, calls: Calls) -> Told:
    """Try an environment; return what it told after reset() and step(), as it will be stored."""
    opened, stepped = _try(env.env if isinstance(env, Adapted) else env, calls)
    _check_both(opened, stepped)
    if isinstance(env, Adapted):
        with calling("reading its log_*"):
            opened, stepped = merge_infos([opened]), merge_infos([stepped])
    return [("after reset()", opened), ("after step()", stepped)]


def _look_into(switch: Switch, calls: Calls) -> Told:
    """Try the worlds of all phases, and the switch in each of them."""
    infos: Told = []
    for phase, world in switch.worlds.items():
        with _naming(f"the world of {phase!r} "):
            _look(world, calls)
            switch.set_phase(phase)
            infos += [(f"{when} in {phase!r}", info) for when, info in _look(switch, calls)]
    switch.set_phase(None)
    return infos


def _schedule(name: str, clock: Any, info: dict[str, Any]) -> tuple[tuple[int, str], ...] | None:
    """Return what an environment follows: its schedule, or the one phase it is held in."""
    if isinstance(clock, PhaseClock):
        return clock.schedule.changes if clock.forced is None else ((0, clock.forced),)
    return None if is_user_env(name) and "phase" in info else ()


def _check_both(opened: dict[str, Any], stepped: dict[str, Any]) -> None:
    """Refuse a phase or a frame of which only one of reset and step tells."""
    without = {
        "phase": "each new episode would be taken for a change of the world",
        "frame": "each new episode would lose count of the frames",
    }
    for key, harm in without.items():
        if (key in opened) != (key in stepped):
            silent, telling = ("step", "reset") if key in opened else ("reset", "step")
            raise UnfitEnvironmentError(
                f"{telling}() gives info[{key!r}] and {silent}() does not, "
                f"so {harm}; right would be both of them, or neither"
            )


def _log(key: str, infos: Told) -> Array:
    """Return a value of a log, of the shape that all infos give it and a dtype that holds all."""
    values = [(when, np.asarray(info[key])) for when, info in infos if key in info]
    first, like = values[0]
    for when, value in values:
        if value.dtype.kind not in "biuf":
            raise UnfitEnvironmentError(
                f"info[{key!r}] is {value!r}; what is stored with a step (log_*) must be numbers"
            )
        if value.shape != like.shape:
            raise UnfitEnvironmentError(
                f"info[{key!r}] has the shape {like.shape} {first} "
                f"and {value.shape} {when}; right would be one shape"
            )
    # A count that begins as 0 may go on as 0.7, which must not become whole.
    return like.astype(np.result_type(*(value.dtype for _, value in values)))


def _try(env: gymnasium.Env, calls: Calls) -> tuple[dict[str, Any], dict[str, Any]]:
    """Try one reset and one step, as the environment itself is; return the two infos."""
    with calls("reset()"):
        opened = env.reset(seed=0)
    check_reset(opened, env.observation_space)
    if not env.observation_space.contains(opened[0]):
        raise UnfitEnvironmentError(
            "the observation that reset() returns is not in its observation_space "
            f"{env.observation_space}"
        )
    actions = Actions.of(env.action_space)
    action = actions.to_env(actions.random(np.random.default_rng(0), 1))[0]
    with calls("step()"):
        outcome = env.step(action)
    check_step(outcome, env.observation_space)
    return opened[1], outcome[4]


def _check_state(env: gymnasium.Env, calls: Calls) -> None:
    """Refuse a state that could not be written to checkpoints."""
    with calls("get_state()"):
        state = env.get_wrapper_attr("get_state")()
    try:
        pack(state, {}, "get_state()")
    except TypeError as error:
        raise UnfitEnvironmentError(str(error)) from None
