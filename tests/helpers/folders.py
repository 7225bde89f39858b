"""Small run folders made by hand, for tests of the analyses."""

import json

import numpy as np

from curious_replay.replay import Curious, ReplayBuffer


def write_run(folder, *, metrics=(), episodes=(), probes=(), replay="curious", env="toy/two-rooms",
              agent="dreamerv3", seed=0, steps=1000, meta=None, **settings):  # fmt: skip
    """A folder with the given lines; groups of settings are given as env_settings={...}."""
    folder.mkdir(parents=True)
    config = {
        "choice": {"env": env, "agent": agent, "replay": replay, "scale": "mini"},
        "seed": seed,
        "env": settings.get("env_settings", {}),
        "replay": settings.get("replay_settings", {}),
        "train": {"steps": steps},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "meta.json").write_text(json.dumps({"seed": seed, **(meta or {})}))
    for name, lines in (("metrics", metrics), ("episodes", episodes), ("probe", probes)):
        if lines:
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    return folder


def counters(step, repeat=1):
    return {"frame": step * repeat, "step": step, "update": step // 2}


def write_checkpoint(folder, fields, *, num_envs=1, capacity=1000, updates=0, repeat=1, serial=1):
    """A checkpoint whose replay holds `fields` {name: [T, num_envs, ...]}, all of one episode.

    Each step takes `repeat` frames, in all environments.
    """
    count = len(next(iter(fields.values())))
    buffer = ReplayBuffer(capacity, 4, num_envs=num_envs, rule=Curious(), seed=1)
    for t in range(count):
        first = np.full(num_envs, t == 0)
        flags = {"is_first": first, "is_last": ~first & False, "is_terminal": ~first & False}
        when = {"log_frame": np.full(num_envs, t * num_envs * repeat)}
        buffer.add({**flags, **when, **{name: np.asarray(v[t]) for name, v in fields.items()}})
    for _ in range(updates):
        batch = buffer.sample(2)
        buffer.update(batch.ids, {"model": np.ones(batch.ids.shape)})
    step = count * num_envs
    path = folder / "checkpoints" / f"{serial:06d}-step-{step}"
    buffer.save(path / "replay")
    state = {"counters": {"frame": step * repeat, "step": step, "update": updates}}
    (path / "state.json").write_text(json.dumps(state))
    return buffer


def write_snapshot(folder, step, *, ids, visits, priorities, **others):
    """A snapshot as `curious train` leaves it; frames are two for each step."""
    count, priorities = len(ids), np.asarray(priorities)
    values = {
        "ids": np.asarray(ids),
        "visits": np.asarray(visits),
        "priorities": priorities,
        "totals": priorities.sum(1),
        "drawable": np.count_nonzero(priorities[0]),
        "fraction": 0.0,
        "num_envs": 1,
        "phase": np.zeros(count, int),
        "phases": np.array(["only"]),
        "step": step,
        "frame": 2 * step,
        **others,
    }
    (folder / "snapshots").mkdir(exist_ok=True)
    np.savez(folder / "snapshots" / f"{step:09d}.npz", **values)
