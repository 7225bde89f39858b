"""The object-interaction assay for tests: small pictures, short schedules, a driver."""

import math

import numpy as np

from curious_replay.envs.object_interaction import ObjectInteraction
from curious_replay.envs.schedule import Schedule

STAY = np.zeros(2, np.float32)
FORWARD = np.array([-1, 0], np.float32)


def make(**options):
    return ObjectInteraction(**{"camera": "ray", "image_size": 32} | options)


def soon(*changes):
    return Schedule(changes)


def ball_position(info):
    return info["log_magenta_position"]


def drive(env, target, steps):
    """Steer at a point (or, with target None, circle on the spot); return the infos."""
    infos = []
    for _ in range(steps):
        x, y, _ = env.data.geom("agent/shell").xpos
        action = np.array([0, 0.3], np.float32)
        if target is not None:
            heading = -env.data.qpos[env.model.joint("agent/steer").qposadr[0]]
            turn = -env.data.qvel[env.model.joint("agent/steer").dofadr[0]]
            tx, ty, _ = env.data.geom(target).xpos
            error = (math.atan2(ty - y, tx - x) - heading + math.pi) % (2 * math.pi) - math.pi
            steer = np.clip(-(2 * error - 0.5 * turn), -1, 1)
            action = np.array([-0.6 * math.cos(error), steer], np.float32)
        infos.append(env.step(action)[-1])
    return infos


def total(infos, key):
    return sum(info[key] for info in infos)
