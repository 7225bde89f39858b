"""A plugin by which a process of a run dies in the middle of an update.

DIES is the process, the update, and how: "1 5 error", "0 5 SIGKILL". The others are in that update.
"""

import itertools
import os
import signal

from curious_replay import launch
from curious_replay.run.loop import crew

_count = itertools.count(1)
_learn = crew._learn
_number, _update, _how = os.environ.get("DIES", "-1 0 error").split()


def learn(*arguments):
    if next(_count) == int(_update):
        if _how == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError(f"planted in process {_number}")
    return _learn(*arguments)


if launch.number() == int(_number):
    crew._learn = learn
