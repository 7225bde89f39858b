"""Environments as users write them, good ones and bad ones."""

import os
import time
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv


class Numbers(gymnasium.Env):
    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, length=10):
        self.length, self.count = length, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._see(), {}

    def step(self, action):
        self.count += 1
        return self._see(), 1.0, self.count >= self.length, False, {}

    def _see(self):
        return np.array([self.count, 1, 2], np.float64)


class Phases(Numbers):
    """Changes after thirty steps, which it does not tell beforehand."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0], {"phase": "late" if self.total > 30 else "early"}

    def step(self, action):
        self.total += 1
        return (*super().step(action)[:-1], {"phase": "late" if self.total > 30 else "early"})


class Saves(Numbers):
    def get_state(self):
        return {"count": self.count, "random": self.np_random.bit_generator.state}

    def set_state(self, state):
        self.count = state["count"]
        self.np_random.bit_generator.state = state["random"]


class Turns(Saves):
    """Any number is an action: those of agents that have learned otherwise differ."""

    action_space = spaces.Box(-1, 1, (2,))


gymnasium.register(
    "SavesLimited-v0", "own_envs:Saves", max_episode_steps=10, kwargs={"length": 100}
)


class Gray(Numbers):
    observation_space = spaces.Box(0, 255, (48, 80), np.uint8)

    def _see(self):
        return np.full((48, 80), self.count, np.uint8)


class Colour(Gray):
    observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)

    def _see(self):
        return np.full((64, 64, 3), self.count, np.uint8)


class Dictionary(Numbers):
    PICTURE = np.random.default_rng(0).integers(0, 256, (64, 96, 3), np.uint8)
    observation_space = spaces.Dict(
        b=spaces.Box(-9, 9, (2,), np.float32),
        a=spaces.Box(-9, 9, (3,), np.int64),
        view=spaces.Box(0, 255, PICTURE.shape, np.uint8),
    )

    def _see(self):
        return {
            "b": np.array([4, 5], np.float32),
            "a": np.array([1, 2, 3]),
            "view": self.PICTURE,
        }


class NoEnvironment:
    pass


class Lies(Numbers):
    observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)

    def _see(self):
        return np.zeros((64, 64, 3))


class Outside(Numbers):
    observation_space = spaces.Box(5, 9, (3,), np.float64)


class NoReward(Numbers):
    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, None, *rest


class TextLog(Numbers):
    def reset(self, **kwargs):
        observation, _ = super().reset(**kwargs)
        return observation, {"log_name": "text"}


class TellsOnce(Numbers):
    """Has an entry in the info of one method only."""

    def __init__(self, method, key):
        super().__init__()
        self.method, self.told = method, {key: 1}

    def reset(self, **kwargs):
        return super().reset(**kwargs)[0], self.told if self.method == "reset" else {}

    def step(self, action):
        return (*super().step(action)[:-1], self.told if self.method == "step" else {})


class Touches(Numbers):
    """Logs counts of many kinds at each frame, a place, and now and then an event."""

    def reset(self, **kwargs):
        return super().reset(**kwargs)[0], self._info()

    def step(self, action):
        outcome = super().step(action)
        event = {"log_event": 1} if self.count % 3 == 1 else {}
        return (*outcome[:-1], {**self._info(), **event, "frame": 10 * self.count})

    def _info(self):
        return {
            "log_touches": 1,
            "log_near": np.bool_(True),
            "log_bytes": np.uint8(200),
            "log_share": np.float32(0.5),
            "log_place": [self.count, 0],
            "log_phase": 3,
            "frame": 0,
        }


class Distances(Numbers):
    """Logs a whole number at first, and fractions after it."""

    def reset(self, **kwargs):
        return super().reset(**kwargs)[0], {"log_distance": 0}

    def step(self, action):
        return (*super().step(action)[:-1], {"log_distance": 0.75})


class Reshaped(Distances):
    """Logs one number at first, and two after it."""

    def step(self, action):
        return (*super().step(action)[:-1], {"log_distance": np.zeros(2)})


class Breaks(Saves):
    """Goes wrong at its fifth step, in a way to be chosen: always, or until a file is there."""

    def __init__(self, how="", until=""):
        super().__init__()
        self.how, self.until, self.steps = how, Path(until) if until else None, 0

    def step(self, action):
        self.steps += 1
        observation, *rest = super().step(action)
        if self.steps != 5 or (self.until and self.until.exists()):
            return observation, *rest
        if self.until:
            self.until.touch()
        if self.how == "raise":
            raise RuntimeError("lost its way")
        if self.how == "crash":
            os._exit(7)
        if self.how == "hang":
            time.sleep(1000)
        wrong = {
            "nan": np.array([np.nan, 1, np.inf]),
            "shape": np.zeros(2),
            "dtype": np.array(["a", "b", "c"]),
        }
        if self.how == "reward":
            rest[0] = np.nan
        if self.how == "four":
            rest.pop()
        if self.how == "log":
            rest[-1] = {"log_x": np.zeros(3)}
        if self.how == "fraction":
            rest[-1] = {"log_whole": 0.5}
        return wrong.get(self.how, observation), *rest

    def reset(self, **kwargs):
        observation, info = super().reset(**kwargs)
        return observation, info | {"log_x": 1.0, "log_whole": 1}


class BreaksImage(Breaks):
    """The same with a picture, which may lose its size, its colours or its kind of numbers."""

    observation_space = spaces.Dict(view=spaces.Box(0, 255, (32, 32, 3), np.uint8))

    def _see(self):
        size = 16 if self.how == "size" and self.steps == 5 else 32
        dtype = float if self.how == "float" and self.steps == 5 else np.uint8
        view = np.zeros((size, size, 3), dtype)
        return {"sight" if self.how == "name" and self.steps == 5 else "view": view}


class Talkative(Saves):
    """Its infos hold what cannot be saved, and a log that only steps have."""

    def step(self, action):
        info = {"visited": {1, 2}, "when": np.datetime64("2023-07-23"), "log_count": self.count}
        return (*super().step(action)[:-1], info)


class Dated(Saves):
    def get_state(self):
        return {**super().get_state(), "when": np.datetime64("2023-07-23")}


class Scheduled(Numbers):
    """Counts frames over episodes, from 0 on after a reset with a seed; has no state."""

    def __init__(self):
        super().__init__()
        self.frame = 0

    def reset(self, *, seed=None, options=None):
        self.frame = self.frame if seed is None else 0
        return super().reset(seed=seed)[0], self._info()

    def step(self, action):
        self.frame += 1
        return (*super().step(action)[:-1], self._info())

    def _info(self):
        return {"phase": "late" if self.frame > 30 else "early", "frame": self.frame}


class Steered(Scheduled):
    """Can be put to a frame."""

    def set_frame(self, frame):
        self.frame = frame


class Stumbles(Scheduled):
    """Fails once, at frame 35, and cannot be put to a frame."""

    def __init__(self, until=""):
        super().__init__()
        self.until = Path(until)

    def step(self, action):
        if self.frame == 35 and not self.until.exists():
            self.until.write_text("now")
            raise RuntimeError("stumbled")
        return super().step(action)


class Placed(Numbers):
    """Logs two numbers where others log one."""

    def reset(self, **kwargs):
        return super().reset(**kwargs)[0], {"log_distance": np.zeros(2)}


class Heavy(CartPoleEnv):
    """A pole ten times as heavy."""

    def __init__(self):
        super().__init__()
        self.masspole *= 10
        self.total_mass = self.masspole + self.masscart
        self.polemass_length = self.masspole * self.length


class Drawn(Numbers):
    """Renders when it is told to; its pictures are lighter the further it is."""

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode

    def render(self):
        picture = np.full((40, 60, 3), 20 * self.count, np.uint8)
        return picture if self.render_mode == "rgb_array" else None


class DrawnAnyway(Numbers):
    """Renders without being told how."""

    def render(self):
        return np.zeros((40, 60, 3), np.uint8)


class DrawnBadly(Numbers):
    """Renders numbers between 0 and 1."""

    def render(self):
        return np.zeros((40, 60), float)
