"""What a training run is doing right now, told through a file that outlives it.

The run's process maps a small file into its memory and notes there which activity it enters and
leaves. Such a note costs no call of the operating system, and it stands when the process is killed:
so the soak knows exactly what a kill interrupted. The soak may ask the process to stop itself (as
by SIGSTOP) when it enters some activity, in order to kill it a moment later.
"""

import mmap
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

STARTING, ELSEWHERE = "starting", "elsewhere"
ACTIVITIES = (
    STARTING, "collecting", "updating", "saving", "evaluating", "filming", "writing logs",
    ELSEWHERE,
)  # fmt: skip
"""Starting includes reading the checkpoint; elsewhere is between the others and at the end."""
_HEAD = struct.Struct("bbi")  # activity, aim (-1: none), how many more times the aim is let pass
_SECONDS = struct.Struct(f"{len(ACTIVITIES)}d")  # how long each activity took at most
_SECONDS_AT = 8


class Trace:
    """The notes of one process, open for reading and writing."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_SECONDS_AT + _SECONDS.size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    def begin(self, aim: str | None, passes: int) -> None:
        """Before the process starts: it is to stop itself when it enters `aim` once more often."""
        self._put(STARTING, aim, passes)

    @property
    def activity(self) -> str:
        """What the process does, or did when it died."""
        return ACTIVITIES[_HEAD.unpack_from(self._map)[0]]

    @property
    def reached(self) -> bool:
        """Whether the process came to what was aimed at, where it stops itself."""
        return bool(_HEAD.unpack_from(self._map)[1] < 0)

    def seconds(self, activity: str) -> float:
        """How long this activity took at most; 0 if it was never seen whole."""
        return float(_SECONDS.unpack_from(self._map, _SECONDS_AT)[ACTIVITIES.index(activity)])

    def enter(self, activity: str) -> None:
        """Note that an activity begins; stop if that is what was aimed at."""
        _, aim, passes = _HEAD.unpack_from(self._map)
        aimed = aim == ACTIVITIES.index(activity)
        if aimed and passes == 0:
            self._put(activity, None, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            self._put(activity, None if aim < 0 else ACTIVITIES[aim], passes - aimed)

    @contextmanager
    def during(self, activity: str) -> Iterator[None]:
        """Note an activity and how long it takes; the one around it goes on afterwards."""
        around, began = self.activity, time.monotonic()
        self.enter(activity)
        try:
            yield
        finally:
            longest = max(self.seconds(activity), time.monotonic() - began)
            at = _SECONDS_AT + 8 * ACTIVITIES.index(activity)
            struct.pack_into("d", self._map, at, longest)
            _, aim, passes = _HEAD.unpack_from(self._map)
            self._put(around, None if aim < 0 else ACTIVITIES[aim], passes)

    def note(self, owner: Any, method: str, activity: str) -> None:
        """Let a method of a class, or a function of a module, be known as this activity."""
        setattr(owner, method, self._noted(getattr(owner, method), activity))

    def _noted(self, act: Callable[..., Any], activity: str) -> Callable[..., Any]:
        @wraps(act)
        def noted(*args: Any, **kwargs: Any) -> Any:
            with self.during(activity):
                return act(*args, **kwargs)

        return noted

    def _put(self, activity: str, aim: str | None, passes: int) -> None:
        target = -1 if aim is None else ACTIVITIES.index(aim)
        _HEAD.pack_into(self._map, 0, ACTIVITIES.index(activity), target, passes)
