"""Frames per second of the environments on one core, next to dm_control's own rendering.

    python bench/envs.py [--seconds 1] [--rounds 5] [--out out/bench]

Contestants take turns, each in a process of its own, all bound to the same core, and medians are
compared. A frame is one call of the simulator. With `every=1` a picture is drawn for every frame,
with `every=2` for every second one, as the agents see them.
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from curious_replay.envs.control import ControlSuite
from curious_replay.envs.drawing.camera import OPENGL, camera_problems
from curious_replay.envs.object_interaction import ObjectInteraction

Work = Callable[[], object]
SIZE = 64
TASK = "walker_walk"


def dm_control_work(opengl: str, every: int) -> Work:
    """dm_control's environment and renderer with their defaults, one picture per `every` frames."""
    os.environ["MUJOCO_GL"] = opengl
    from dm_control import suite  # noqa: PLC0415 (its renderer is chosen at import)

    env = suite.load(*TASK.split("_"))
    spec = env.action_spec()
    rng = np.random.default_rng(0)

    def step() -> None:
        action = rng.uniform(spec.minimum, spec.maximum)
        for _ in range(every):
            env.step(action)
        env.physics.render(SIZE, SIZE, camera_id=0)

    env.reset()
    return step


def our_work(kind: str, every: int, camera: str, shadows: bool) -> Work:
    """One step of an environment with a random action."""
    options: dict[str, Any] = {"image_size": SIZE, "camera": camera, "shadows": shadows}
    env: gymnasium.Env[Any, Any] = (
        ControlSuite(task=TASK, action_repeat=every, **options)
        if kind == "control"
        # The ball is there: the costlier phase.
        else ObjectInteraction(variant="unchanging", action_repeat=every, **options)
    )
    env.reset(seed=0)
    env.action_space.seed(0)

    def step() -> None:
        *_, truncated, _ = env.step(env.action_space.sample())
        if truncated:
            env.reset()

    return step


def contestants(every: int, opengl: str | None) -> dict[str, Callable[[], Work]]:
    """What is timed when a picture is drawn per `every` frames, and how to make it."""
    makers: dict[str, Callable[[], Work]] = {}
    if opengl is not None:
        makers[f"dm_control {TASK}, {opengl}"] = partial(dm_control_work, opengl, every)
    for name, kind in ((f"control/{TASK}", "control"), ("object-interaction", "assay")):
        if opengl is not None:
            shadows = partial(our_work, kind, every, opengl, True)
            makers[f"{name}, {opengl} with shadows"] = shadows
            makers[f"{name}, {opengl}"] = partial(our_work, kind, every, opengl, False)
        makers[f"{name}, ray"] = partial(our_work, kind, every, "ray", False)
    return makers


def serve(make: Callable[[], Work], pipe: Connection) -> None:
    """In its own process: make the work, then answer each number of seconds with a rate."""
    work = make()
    work()
    while (seconds := pipe.recv()) is not None:
        calls, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            work()
            calls += 1
        pipe.send(calls / passed)


def rates(makers: dict[str, Callable[[], Work]], rounds: int, seconds: float) -> dict[str, float]:
    """Calls per second: the median over `rounds` turns of `seconds` each."""
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for name, make in makers.items():
        pipes[name], theirs = context.Pipe()
        context.Process(target=serve, args=(make, theirs), daemon=True).start()
    measured: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(rounds):
        for name, pipe in pipes.items():
            pipe.send(seconds)
            measured[name].append(pipe.recv())
    for pipe in pipes.values():
        pipe.send(None)
    return {name: statistics.median(values) for name, values in measured.items()}


def main() -> None:
    """Measure, print, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a turn")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--out", type=Path, help="folder for envs.json")
    arguments = parser.parse_args()
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    opengl = next((name for name in OPENGL if camera_problems()[name] is None), None)
    if opengl is None:
        print("no OpenGL here: only rays are timed", file=sys.stderr)
    results: dict[str, dict[str, float]] = {}
    for every in (1, 2):
        measured = rates(contestants(every, opengl), arguments.rounds, arguments.seconds)
        frames = {name: rate * every for name, rate in measured.items()}
        results[f"every={every}"] = frames
        print(f"\nframes/s, one core, {SIZE}x{SIZE}, a picture every {every} frames")
        reference = next((rate for name, rate in frames.items() if "dm_control" in name), None)
        for name, rate in frames.items():
            ratio = f"{rate / reference:8.1f}x" if reference and TASK in name else ""
            print(f"  {name:45}{rate:10,.0f}{ratio}")
    if arguments.out:
        packages = {name: version(name) for name in ("mujoco", "dm-control", "numpy")}
        record = {"python": platform.python_version(), "packages": packages, "frames/s": results}
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "envs.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
