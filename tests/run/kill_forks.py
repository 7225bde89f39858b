"""Fork a run again and again, killed with SIGKILL before each of its operations on files.

python kill_forks.py PARENT FOLDER WHOLE STEP EVERY: children, one after the other, fork PARENT at
STEP into FOLDER, and each is killed before the first, 1 + EVERY-th, ... operation that changes
files. After each there must be no FOLDER, or one that is as WHOLE, which is made first, in peace.
Prints how often each was so, and what is left beside FOLDER.
"""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers import fake_agent  # noqa: F401  # makes the agent known

from curious_replay.run import fork

CHANGES = {"open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate"}


def content(folder):
    """Names and bytes of all files, but for what says when and how."""
    kept = (path for path in folder.rglob("*") if path.is_file() and path.name != "meta.json")
    return {path.relative_to(folder): path.read_bytes() for path in kept}


def die_before(number):
    """Kill this process with SIGKILL before so many changes of files were made."""
    left = [number]

    def hook(event, arguments):
        writes = event != "open" or (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        if event in CHANGES and writes:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    sys.addaudithook(hook)


def attempt(parent, folder, step, number):
    """Fork in a child that dies; returns whether it came to the end."""
    child = os.fork()
    if not child:
        die_before(number)
        fork(parent, logdir=folder, at=step)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status == 0


def main(parent, folder, whole, step, every):
    fork(parent, logdir=whole, at=step)
    expected, counts, number = content(whole), {"nothing": 0, "whole": 0}, 0
    while True:
        ended = attempt(parent, folder, step, number)
        there = folder.exists()
        counts["whole" if there else "nothing"] += 1
        if there:
            assert content(folder) == expected, f"torn before change {number}"
            done = folder.rename(folder.with_name("done"))
            for path in sorted(done.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
            done.rmdir()
        if ended:
            break
        number += every
    left = [path.name for path in folder.parent.iterdir()]
    print(counts["nothing"], counts["whole"], *left, flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), *map(int, sys.argv[4:]))
