"""A task with continuous actions that is learned in a minute: keep a number near 0."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Steering(gymnasium.Env):
    """A number within 1 that an action moves by up to 0.4; less than 1 is paid for each step."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)
    steps = 10

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.count = self.np_random.uniform(-1, 1), 0
        return self._see(), {}

    def step(self, action):
        self.place = float(np.clip(self.place + 0.4 * action[0], -1, 1))
        self.count += 1
        return self._see(), 1 - abs(self.place), False, self.count == self.steps, {}

    def _see(self):
        return np.array([self.place], np.float32)
