"""Which of the processes that torchrun started this is.

It tells them by variables of the environment. Without it a process is alone.
"""

import os

STARTED = "TORCHELASTIC_RUN_ID"  # by torchrun, not by something else with the same variables


def processes() -> int:
    """Return how many processes there are, on all machines."""
    return _told("WORLD_SIZE", 1)


def number() -> int:
    """Return the number of this one; the first, 0, leads."""
    return _told("RANK", 0)


def processes_here() -> int:
    """Return how many processes there are on this machine."""
    return _told("LOCAL_WORLD_SIZE", 1)


def number_here() -> int:
    """Return the number of this one among those of its machine."""
    return _told("LOCAL_RANK", 0)


def _told(name: str, alone: int) -> int:
    return int(os.environ.get(name, alone)) if STARTED in os.environ else alone
