"""Environments as users write them, good ones and bad ones."""

import gymnasium
import numpy as np
from gymnasium import spaces


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


class NoReward(Numbers):
    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, None, *rest


class TextLog(Numbers):
    def reset(self, **kwargs):
        observation, _ = super().reset(**kwargs)
        return observation, {"log_name": "text"}
