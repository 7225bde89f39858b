"""Faults of DreamerV3 that its updates could be recorded with, and would then be wrong or fail."""

import torch

from curious_replay.agents.blocks import heads, maths
from curious_replay.agents.blocks.returns import ReturnScale
from curious_replay.agents.dreamer_v3 import DreamerV3


def read_a_number(monkeypatch):
    monkeypatch.setattr(heads, "symlog", lambda x: maths.symlog(x) if x.max() < 1e9 else x)


def choose_by_the_batch(monkeypatch):
    """Of which the agent has what was `shown` to it."""
    load = DreamerV3.load
    monkeypatch.setattr(
        DreamerV3, "load", lambda self, batch, known=None: load(self, batch, self.shown)
    )


def replace_a_tensor(monkeypatch):
    def update(self, returns, fine):
        self.high = self.high + 1  # another tensor
        return self.high

    monkeypatch.setattr(ReturnScale, "update", update)


def renew_a_constant(monkeypatch):
    """The number is the same in each update, its memory is not."""
    update, train = DreamerV3.update, DreamerV3.train_world_model

    def renewing(self, batch, unread=()):
        self.one = torch.ones((), device=self.device)
        return update(self, batch, unread)

    def multiplying(self, replayed):
        return train(self, replayed._replace(reward=replayed.reward * self.one))

    monkeypatch.setattr(DreamerV3, "update", renewing)
    monkeypatch.setattr(DreamerV3, "train_world_model", multiplying)


def copy_the_generator(monkeypatch):
    monkeypatch.setattr(DreamerV3, "foresees", lambda self, unread: True)
    monkeypatch.setattr(DreamerV3, "refuse_foresight", lambda self, unread: None)


def draw_from_a_second_generator(monkeypatch):
    make, train = DreamerV3.__init__, DreamerV3.train_world_model

    def making(self, *args):
        make(self, *args)
        self.second = torch.Generator(self.device).manual_seed(1)

    def drawing(self, replayed):
        first, self.generator = self.generator, self.second
        try:
            return train(self, replayed)
        finally:
            self.generator = first

    monkeypatch.setattr(DreamerV3, "__init__", making)
    monkeypatch.setattr(DreamerV3, "train_world_model", drawing)


def count_on_the_host(monkeypatch):
    train = DreamerV3.train_world_model

    def counting(self, replayed):
        self.made = getattr(self, "made", 0) + 1
        return train(self, replayed._replace(reward=replayed.reward * self.made))

    monkeypatch.setattr(DreamerV3, "train_world_model", counting)
