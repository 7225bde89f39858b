"""Plays environments and prints a fingerprint of all they returned, for comparison.

As a program: `trajectories.py [--camera NAME] [--reverse] [--save] NAME ...` prints, for each
environment, the fingerprint of a course, the camera, and with `--save` the fingerprints of the same
course saved and loaded half-way and at the end of an episode.
"""

import argparse
import hashlib
import json

import numpy as np

from curious_replay.envs import find, make

SEED = 3


def to_json(value):
    """JSON text of a state or info; what is neither JSON nor a NumPy array of numbers fails."""

    def encode(item):
        if isinstance(item, np.generic):
            return encode(np.asarray(item))
        if not isinstance(item, np.ndarray) or item.dtype.kind not in "biuf":
            raise TypeError(f"neither JSON nor an array of numbers: {item!r}")
        return {"dtype": item.dtype.str, "shape": item.shape, "bytes": item.tobytes().hex()}

    return json.dumps(value, default=encode)


def from_json(text):
    def decode(item):
        if item.keys() != {"dtype", "shape", "bytes"}:
            return item
        flat = np.frombuffer(bytes.fromhex(item["bytes"]), item["dtype"])
        return flat.reshape(item["shape"]).copy()

    return json.loads(text, object_hook=decode)


def make_repeatable(name, **kwargs):
    """The environment, with the arguments under which it is meant to repeat itself."""
    return make(name, **({"deterministic": True} if find(name).nondeterministic else {}), **kwargs)


def course_steps(name):
    """Length of the first episode; Crafter needs more until its creatures are counted."""
    return 300 if "crafter" in find(name).tags else 16


def fingerprint(name, env, *, save_at=None, other=None):
    """Hash of all returned by: a reset, an episode, a reset, an episode half as long.

    Environments that change are put shortly before their first change, so that it is part of the
    course: at once in the assay, with the second reset in the control suite. At step `save_at` the
    environment is saved to text, and `other` goes on from there.
    """
    steps = course_steps(name)
    env.action_space.seed(SEED)
    actions = [env.action_space.sample() for _ in range(steps + steps // 2)]
    sha = hashlib.sha256()

    def note(observation, *others):
        sha.update(observation["image"].tobytes())
        sha.update(to_json(others).encode())

    note(*env.reset(seed=SEED))
    if "changes" in find(name).tags:
        env.set_frame(env.clock.schedule.changes[1][0] - 9)
    for step, action in enumerate(actions):
        if step == save_at:
            other.set_state(from_json(to_json(env.get_state())))
            env = other
        outcome = env.step(action)
        note(*outcome)
        if step == steps - 1 or outcome[2] or outcome[3]:
            note(*env.reset())
    return sha.hexdigest()


def report(name, save, **kwargs):
    """Fingerprints of one environment."""
    env = make_repeatable(name, **kwargs)
    found = {"straight": fingerprint(name, env), "camera": getattr(env, "camera_name", None)}
    if save:
        other = make_repeatable(name, **kwargs)
        # The first time it was never reset before, the second time it has a past of its own.
        for moment in (course_steps(name) // 2, course_steps(name)):
            found[f"saved at {moment}"] = fingerprint(name, env, save_at=moment, other=other)
        other.close()
    env.close()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+")
    parser.add_argument("--camera")
    parser.add_argument("--reverse", action="store_true")
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    camera = {"camera": asked.camera} if asked.camera else {}
    order = reversed(asked.names) if asked.reverse else asked.names
    print(json.dumps({name: report(name, asked.save, **camera) for name in order}))


if __name__ == "__main__":
    main()
