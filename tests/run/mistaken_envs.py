"""Environments whose authors made the mistakes that are made most."""

import gymnasium
import numpy as np
from own_envs import Numbers


class Mistaken(Numbers):
    """Its author made a mistake, in a way to be chosen."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        if how == "init":
            {}.foo  # noqa: B018  # line of init

    def reset(self, **kwargs):
        observation, info = super().reset(**kwargs)
        if self.how == "reset":
            np.zeros(3) + np.zeros(4)  # line of reset
        if self.how == "key":
            return info["pos"], info  # line of key
        if self.how == "library":
            return np.concatenate([]), info  # line of library
        wrong = {"old": observation, "three": (observation, 0, info), "none": (observation, None)}
        return wrong.get(self.how, (observation, info))

    def step(self, action):
        assert self.how != "step"  # line of step
        return (*super().step(action)[:-1], None if self.how == "info" else {})

    def close(self):
        raise RuntimeError("never opened")


class OldReset(Numbers):
    """Does not know seeds, as environments of old Gym."""

    def reset(self):
        return self._see(), {}


class NoSpace(gymnasium.Env):
    observation_space = Numbers.observation_space
