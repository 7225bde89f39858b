"""`python -m curious_replay` is `curious`; torchrun starts it so, once per graphics card."""

import os
import sys

from curious_replay import launch
from curious_replay.cli import main

if __name__ == "__main__":
    code = main()
    if launch.processes() > 1:
        # Everything is closed by now. Threads that gloo has left may abort a process (SIGABRT)
        # which takes its time to end, and torchrun would call a complete run a failure.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
