"""A tiny world with pictures and continuous actions, for tests of whole runs."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Steered(gymnasium.Env):
    """A bright column goes where it is steered; the reward is how far to the right it is."""

    SIDE = 32

    def __init__(self):
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)
        shape = (self.SIDE, self.SIDE, 3)
        self.observation_space = spaces.Dict({"image": spaces.Box(0, 255, shape, np.uint8)})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.SIDE / 2
        return self._seen(), {}

    def step(self, action):
        self.place = float(np.clip(self.place + action[0], 0, self.SIDE - 1))
        return self._seen(), self.place / self.SIDE, False, False, {}

    def _seen(self):
        image = np.zeros((self.SIDE, self.SIDE, 3), np.uint8)
        image[:, int(self.place)] = 255
        return {"image": image}
