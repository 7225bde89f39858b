"""A plugin by which the second process of a run dies in the update that DIES_AT names."""

import itertools
import os

from curious_replay import launch
from curious_replay.run import following

_count = itertools.count(1)
_join_in = following.join_in


def join_in(agent, order):
    if next(_count) == int(os.environ.get("DIES_AT", "0")):
        raise RuntimeError("planted in the second process")
    _join_in(agent, order)


if launch.number() == 1:
    following.join_in = join_in
